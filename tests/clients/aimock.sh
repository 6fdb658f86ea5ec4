#!/bin/sh
# Calls aimock, an independent mock of model services, in each dialect that Tiro supports: with whole answers, with
# streamed ones, and with a function call; then with a mock that misbehaves.
#
# Usage: aimock.sh BINARY
#
# Needs Node 20 or newer and aimock, on npm:
#     npm install @copilotkit/aimock && export PATH="$PWD/node_modules/.bin:$PATH"
# A test of this checkout makes the calls, so Cargo is needed too. Works in an empty temporary home and project, and
# removes both.
set -eu

if [ $# -ne 1 ]; then
    sed -n '2,11s/^# \{0,1\}//p' "$0"
    exit 2
fi
binary=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
sources=$(cd "$(dirname "$0")/../.." && pwd)
home=$(mktemp -d)
servers=
trap 'for each in $servers; do kill "$each" 2>/dev/null || true; done; rm -rf "$home"' EXIT
mkdir "$home/project"

cat >"$home/fixtures.json" <<'END'
{"fixtures": [
    {"match": {"toolName": "look"}, "response": {"toolCalls": [{"name": "look", "arguments": {"at": "burrow"}}]}},
    {"match": {}, "response": {"content": "Seven wombats live in the burrow, and three beside it.",
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}}}
]}
END

# start NAME ARGUMENT ... starts a mock on a free port and sets `address`.
start() {
    name=$1
    shift
    llmock --port 0 --fixtures "$home/fixtures.json" "$@" >"$home/$name.log" 2>&1 &
    servers="$servers $!"
    address=
    for _ in $(seq 100); do
        address=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$home/$name.log")
        [ -z "$address" ] || return 0
        sleep 0.1
    done
    printf 'FAIL  aimock does not start:\n' >&2
    cat "$home/$name.log" >&2
    exit 1
}

# tiro ARGUMENT ... runs the program in the empty home.
tiro() {
    (
        cd "$home/project"
        HOME=$home XDG_DATA_HOME=$home/data XDG_STATE_HOME=$home/state XDG_CACHE_HOME=$home/cache \
            XDG_CONFIG_HOME=$home/config "$binary" "$@"
    )
}

start good
named=
for each in "openai /v1 gpt-4.1" "openai-responses /v1 gpt-4.1" "openai-compatible /v1 some-model" \
    "anthropic /v1 claude-sonnet-4-5" "gemini /v1beta gemini-2.5-flash" "ollama / llama3.2"; do
    # shellcheck disable=SC2086
    set -- $each
    named="$named${named:+,}$1 $address$2 $3 no-key"
    tiro provider add "mock-$1" --service "$1" --endpoint "$address$2" --model "$3" >/dev/null
    tiro provider test "mock-$1" >"$home/answer.txt" || { cat "$home/answer.txt" >&2; exit 1; }
    echo "ok    tiro provider test, $1"
done
(cd "$sources" && TIRO_LIVE=$named cargo test --quiet --lib llm::tests::live -- --ignored)
echo "ok    six dialects: whole, in pieces, with a function"

for each in "--chaos-drop" "--chaos-malformed" "--chaos-disconnect" "--chaos-ratelimit"; do
    start "bad$each" "$each" 1
    tiro provider add "mock$each" --service openai --endpoint "$address/v1" --model gpt-4.1 >/dev/null
    if tiro provider test "mock$each" >"$home/answer.txt" 2>&1; then
        printf 'FAIL  %s went unnoticed:\n' "$each" >&2
        cat "$home/answer.txt" >&2
        exit 1
    fi
    grep -q "mock$each" "$home/answer.txt" || { cat "$home/answer.txt" >&2; exit 1; }
    echo "ok    $each is reported"
done
