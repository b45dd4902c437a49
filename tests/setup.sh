#!/usr/bin/env bash
# Checks for what the given needs take, and installs what is missing. Run by make; safe to run at any time.
#   setup.sh NEED...     needs: rust go node image checks site fuzz bench
# Debian packages are installed when this runs as root; otherwise it prints the exact command and stops.
set -euo pipefail

cd "$(dirname "$0")/.."
cache=${PORTAL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/portal}
# The Python of the documentation must not be the one that makes it anew.
PATH=${PATH//"$cache/python/bin:"/}

# Kubernetes is the one big thing: its build cache, its modules and the Rust target folder together.
min_free_gb=${PORTAL_MIN_FREE_GB:-12}
kubernetes_version=${KUBERNETES_VERSION:-1.36.4}
go_minimum=1.26
cargo_deny_version=0.20.2
cargo_fuzz_version=0.13.2

say() { printf '%s\n' "$*" >&2; }
fail() { say "error: $*"; exit 1; }

packages=()
# need COMMAND PACKAGE: the package is missing when the command is.
need() { command -v "$1" >/dev/null 2>&1 || packages+=("$2"); }

install_packages() {
    [ ${#packages[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null 2>&1 ||
        fail "missing programs, and this is not Debian: install what these packages hold: ${packages[*]}"
    if [ "$(id -u)" -ne 0 ]; then
        say "error: missing programs; install them with"
        say "  sudo apt-get install --no-install-recommends ${packages[*]}"
        exit 1
    fi
    say "installing Debian packages: ${packages[*]}"
    local log
    log=$(mktemp)
    # Another run of apt-get, such as an upgrade by night, is waited for.
    if ! { apt-get update &&
        DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${packages[@]}"; } >"$log" 2>&1; then
        tail -20 "$log" >&2
        rm -f "$log"
        fail "apt-get could not install ${packages[*]}"
    fi
    rm -f "$log"
    packages=()
}

check_disk() {
    # A Kubernetes that is built already needs no more room.
    compgen -G "$cache/programs/kubernetes-${kubernetes_version#v}-*/kubectl" >/dev/null && return
    # What an interrupted build left there counts: it need not be made again.
    local free_gb used_gb=0
    [ ! -d "$cache/go" ] || used_gb=$(du --summarize --block-size=G "$cache/go" | tr -dc '0-9\t' | cut -f1)
    free_gb=$(df --output=avail -BG "$cache" | tail -1 | tr -dc 0-9)
    [ $((free_gb + used_gb)) -ge "$min_free_gb" ] ||
        fail "$free_gb GB are free at $cache, and building Kubernetes takes up to $min_free_gb GB: free some, or set PORTAL_CACHE to a folder on a larger disk"
}

# The folder of built programs is shared by all clones, so that a new one need not compile every dependency again. Cargo
# tells clones apart by nothing but the age of files, so what another clone built of this workspace is forgotten.
claim_target() {
    local target=${CARGO_TARGET_DIR:-target}
    [ "$(cat "$target/clone" 2>/dev/null)" != "$PWD" ] || return 0
    exec 7>"$cache/locks/test"
    flock --nonblock 7 || { say "waiting for another clone's run to end"; flock 7; }
    rm -rf "$target"/*/.fingerprint/portal-* "$target"/*/*/.fingerprint/portal-*
    mkdir -p "$target"
    printf '%s' "$PWD" >"$target/clone"
    exec 7>&-
}

setup_rust() {
    command -v cargo >/dev/null 2>&1 || fail "cargo is missing: install Rust with rustup, see rust-toolchain.toml for the version"
    need cc gcc
    [ -e /usr/include/stdio.h ] || packages+=(libc6-dev)
    install_packages
    # Without rustup the toolchain is whoever installed it's business.
    if command -v rustup >/dev/null 2>&1; then
        local channel installed
        channel=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
        installed=$(rustup component list --toolchain "$channel" --installed 2>/dev/null || true)
        if [[ $installed != *clippy* || $installed != *rustfmt* ]]; then
            say "installing Rust $channel"
            rustup toolchain install "$channel" --profile minimal --component clippy --component rustfmt --no-self-update >&2 ||
                fail "rustup could not install Rust $channel"
        fi
    fi
    # Everything, for tests too: they run without the network.
    cargo fetch --locked --quiet || fail "cargo could not download the dependencies"
}

setup_go() {
    command -v go >/dev/null 2>&1 || fail "go is missing: install Go $go_minimum or newer"
    local version
    version=$(GOTOOLCHAIN=local go env GOVERSION)
    [ "$(printf '%s\n' "go$go_minimum" "$version" | sort -V | head -1)" = "go$go_minimum" ] ||
        fail "Go is $version, but Kubernetes needs Go $go_minimum or newer"
    check_disk
}

setup_node() {
    [ "$(id -u)" -eq 0 ] || fail "a cluster with a node needs root: run it with sudo, or choose SIZE=control"
    need containerd containerd
    need runc runc
    need ip iproute2
    need iptables iptables
    need conntrack conntrack
    [ -x /usr/lib/cni/bridge ] || packages+=(containernetworking-plugins)
    install_packages
}

setup_image() {
    if ! docker info >/dev/null 2>&1; then
        [ "$(id -u)" -eq 0 ] || fail "building an image without a Docker daemon needs root: run it with sudo, or start Docker"
        need buildah buildah
        install_packages
    fi
    # The allocator is written in C.
    need musl-gcc musl-tools
    install_packages
    if command -v rustup >/dev/null 2>&1; then
        local target installed
        target=$(uname -m)-unknown-linux-musl
        installed=$(rustup target list --installed)
        [[ $installed == *$target* ]] || { say "installing the Rust target $target"; rustup target add "$target" >&2; }
    fi
}

setup_checks() {
    need shellcheck shellcheck
    # A replica whose clock is an hour off.
    need faketime faketime
    install_packages
    if [ "$("$cache/tools/bin/cargo-deny" --version 2>/dev/null)" != "cargo-deny $cargo_deny_version" ]; then
        say "building cargo-deny $cargo_deny_version, which takes some minutes"
        cargo install --locked --no-default-features --root "$cache/tools" --version "$cargo_deny_version" cargo-deny ||
            fail "cargo-deny could not be built"
    fi
}

setup_fuzz() {
    need c++ g++
    install_packages
    # libFuzzer needs what only a nightly compiler has.
    if ! cargo +nightly --version >/dev/null 2>&1; then
        command -v rustup >/dev/null 2>&1 || fail "a nightly Rust is missing: install rustup, which brings one"
        say "installing nightly Rust"
        rustup toolchain install nightly --profile minimal --no-self-update >&2 || fail "rustup could not install nightly Rust"
    fi
    if [ "$("$cache/tools/bin/cargo-fuzz" --version 2>/dev/null)" != "cargo-fuzz $cargo_fuzz_version" ]; then
        say "building cargo-fuzz $cargo_fuzz_version"
        cargo install --locked --root "$cache/tools" --version "$cargo_fuzz_version" cargo-fuzz ||
            fail "cargo-fuzz could not be built"
    fi
    cargo +nightly fetch --locked --quiet --manifest-path tests/fuzz/libfuzzer/Cargo.toml ||
        fail "cargo could not download the dependencies of the fuzzing programs"
}

setup_site() {
    command -v python3 >/dev/null 2>&1 || fail "python3 is missing: install Python 3.11 or newer"
    python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
    install_packages
    # A folder that was made from another list, or only half, is made anew.
    if ! cmp --silent docs/requirements.txt "$cache/python/requirements.txt" || ! "$cache/python/bin/mkdocs" --version >/dev/null 2>&1; then
        say "installing the documentation's Python packages"
        rm -rf "$cache/python"
        python3 -m venv "$cache/python"
        "$cache/python/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check --requirement docs/requirements.txt ||
            fail "pip could not install what docs/requirements.txt names"
        cp docs/requirements.txt "$cache/python/requirements.txt"
    fi
}

setup_bench() {
    need valgrind valgrind
    install_packages
    cargo fetch --locked --quiet --manifest-path tests/bench/Cargo.toml || fail "cargo could not download what is raced against"
}

mkdir -p "$cache/locks" || fail "cannot make the cache folder $cache: set PORTAL_CACHE to a folder that can be written to"
exec 8>"$cache/locks/setup"
flock --nonblock 8 || { say "waiting for another set-up to end"; flock 8; }

[ $# -gt 0 ] || fail "say what is needed: rust go node image checks site fuzz bench"
for what in "$@"; do
    case $what in
        rust | go | node | image | checks | site | fuzz | bench) "setup_$what" ;;
        *) fail "$what is not something that can be set up: choose from rust go node image checks site fuzz bench" ;;
    esac
done

# Only now, and without the lock of the set-up: the run of another clone that is waited for may be about to test this script.
exec 8>&-
case " $* " in
    *" rust "*) claim_target ;;
esac
