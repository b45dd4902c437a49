#!/usr/bin/env bash
# Checks the Go modules below tests/: check-go.sh format|vet|test
set -euo pipefail

cd "$(dirname "$0")"
cache=${PORTAL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/portal}
export GOPATH=$cache/go GOCACHE=$cache/go/build GOMODCACHE=$cache/go/mod GOFLAGS='-buildvcs=false -trimpath -modcacherw' GOTOOLCHAIN=local CGO_ENABLED=0

case ${1:-} in
    format)
        unformatted=$(gofmt -l .)
        [ -z "$unformatted" ] || { echo "not formatted, run gofmt -w: $unformatted" >&2; exit 1; }
        ;;
    # The module of Kubernetes itself is left out: vetting it would compile all of Kubernetes a second time.
    vet)
        for module in responder oracles/*; do
            (cd "$module" && go vet ./...)
        done
        ;;
    test) cd responder && go test ./... ;;
    *) echo "usage: check-go.sh format|vet|test" >&2; exit 64 ;;
esac
