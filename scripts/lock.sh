#!/bin/sh
# Regenerates the requirements*.lock files from pyproject.toml: one answer for every supported Python and
# system, with hashes. Pins that still satisfy pyproject.toml stay; `scripts/lock.sh --upgrade` moves them all forward.
set -eu
cd "$(dirname "$0")/.."

uv=$(command -v uv) || {
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    python3 -m venv "$tmp"
    "$tmp/bin/pip" install --quiet --disable-pip-version-check uv
    uv=$tmp/bin/uv
}

compile() {
    "$uv" pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-header "$@"
}

# The runtime lock is held to the versions that are tested.
compile --group dev --all-extras --output-file requirements-dev.lock ${1+"$@"}
compile --extra prices --extra web --extra mcp --extra acp --extra telegram --extra slack --constraint requirements-dev.lock --output-file requirements.lock ${1+"$@"}
"$uv" pip compile --group homeserver --quiet --universal --python-version 3.11 --generate-hashes --no-header \
    --output-file requirements-homeserver.lock ${1+"$@"}
