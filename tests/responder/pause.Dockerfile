# The sandbox image of a pod. It is the same program, so that a cluster without internet needs only one binary.
FROM scratch
COPY responder /responder
USER 65535:65535
ENTRYPOINT ["/responder","pause"]
