# The image that users get: one static program, no shell, nobody's rights. It writes nothing, so that it runs with a
# read-only root filesystem.
FROM scratch
COPY portal /portal
USER 65532:65532
ENTRYPOINT ["/portal"]
