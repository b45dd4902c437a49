#!/usr/bin/env bash
# Checks for what the given needs take, and installs what is missing. Run by make; safe to run at any time.
#   setup.sh NEED...     needs: rust go node image checks site
# Debian packages are installed when this runs as root; otherwise it prints the exact command and stops.
set -euo pipefail

cd "$(dirname "$0")/.."
cache=${PORTAL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/portal}

# Kubernetes is the one big thing: its build cache, its modules and the Rust target folder together.
min_free_gb=${PORTAL_MIN_FREE_GB:-12}
go_minimum=1.26
cargo_deny_version=0.20.2

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
    if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}"; } >"$log" 2>&1; then
        tail -20 "$log" >&2
        rm -f "$log"
        fail "apt-get could not install ${packages[*]}"
    fi
    rm -f "$log"
    packages=()
}

check_disk() {
    mkdir -p "$cache" || fail "cannot make the cache folder $cache: set PORTAL_CACHE to a folder that can be written to"
    # A Kubernetes that is built already needs no more room.
    compgen -G "$cache/programs/kubernetes-*/kubectl" >/dev/null && return
    local free_gb
    free_gb=$(df --output=avail -BG "$cache" | tail -1 | tr -dc 0-9)
    [ "$free_gb" -ge "$min_free_gb" ] ||
        fail "$free_gb GB are free at $cache, and building Kubernetes takes up to $min_free_gb GB: free some, or set PORTAL_CACHE to a folder on a larger disk"
}

setup_rust() {
    command -v cargo >/dev/null 2>&1 || fail "cargo is missing: install Rust with rustup, see rust-toolchain.toml for the version"
    need cc gcc
    install_packages
    # Without rustup the toolchain is whoever installed it's business.
    command -v rustup >/dev/null 2>&1 || return 0
    local channel
    channel=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
    if ! rustup component list --toolchain "$channel" --installed 2>/dev/null | grep -q '^clippy'; then
        say "installing Rust $channel"
        rustup toolchain install "$channel" --profile minimal --component clippy --component rustfmt --no-self-update >&2 ||
            fail "rustup could not install Rust $channel"
    fi
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
        need buildah buildah
        install_packages
    fi
    if command -v rustup >/dev/null 2>&1; then
        local target
        target=$(uname -m)-unknown-linux-musl
        rustup target list --installed | grep -qx "$target" || { say "installing the Rust target $target"; rustup target add "$target" >&2; }
    fi
}

setup_checks() {
    need shellcheck shellcheck
    install_packages
    if ! "$cache/tools/bin/cargo-deny" --version 2>/dev/null | grep -qx "cargo-deny $cargo_deny_version"; then
        say "building cargo-deny $cargo_deny_version, which takes some minutes"
        cargo install --quiet --locked --no-default-features --root "$cache/tools" --version "$cargo_deny_version" cargo-deny ||
            fail "cargo-deny could not be built"
    fi
}

setup_site() {
    command -v python3 >/dev/null 2>&1 || fail "python3 is missing: install Python 3.11 or newer"
    python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
    install_packages
    # A folder that was made from another list, or only half, is made anew.
    if ! cmp --silent docs/requirements.txt "$cache/python/requirements.txt"; then
        say "installing the documentation's Python packages"
        rm -rf "$cache/python"
        python3 -m venv "$cache/python"
        "$cache/python/bin/pip" install --quiet --disable-pip-version-check --requirement docs/requirements.txt ||
            fail "pip could not install what docs/requirements.txt names"
        cp docs/requirements.txt "$cache/python/requirements.txt"
    fi
}

[ $# -gt 0 ] || fail "say what is needed: rust go node image checks site"
for what in "$@"; do
    case $what in
        rust | go | node | image | checks | site) "setup_$what" ;;
        *) fail "$what is not something that can be set up: choose from rust go node image checks site" ;;
    esac
done
