#!/bin/sh
# Tests `tiro serve --http` with MCP's own conformance suite, by the requirements of two revisions of the protocol.
#
# Usage: conformance.sh BINARY
#
# Needs Node 22 or newer and the suite, both on the PATH:
#     npm install node@22 @modelcontextprotocol/conformance@0.2.0-alpha.12 && export PATH="$PWD/node_modules/.bin:$PATH"
# What the suite may find is in conformance-REVISION.yml beside this script. Works in an empty temporary home and project,
# and removes both.
set -eu

if [ $# -ne 1 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    exit 2
fi
binary=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
here=$(cd "$(dirname "$0")" && pwd)
home=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$home"' EXIT
mkdir "$home/project"
cd "$home/project"

env HOME="$home" XDG_DATA_HOME="$home/data" XDG_STATE_HOME="$home/state" XDG_CACHE_HOME="$home/cache" \
    XDG_CONFIG_HOME="$home/config" "$binary" serve --http 127.0.0.1:0 >"$home/address" 2>"$home/log" &
server=$!
tries=0
until [ -s "$home/address" ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 100 ] || ! kill -0 "$server"; then
        printf 'FAIL  the server did not start\n' >&2
        cat "$home/log" >&2
        exit 1
    fi
    sleep 0.1
done
address=$(head -n 1 "$home/address")
for revision in 2026-07-28 2025-11-25; do
    if ! conformance server --url "$address" --requirements "$revision" \
        --expected-failures "$here/conformance-$revision.yml" --output-dir "$home/results" >"$home/found" 2>&1; then
        printf 'FAIL  the requirements of %s\n' "$revision" >&2
        cat "$home/found" >&2
        exit 1
    fi
    echo "ok    conformance, $revision: $(sed -n 's/^Total: //p' "$home/found")"
done
