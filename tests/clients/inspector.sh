#!/bin/sh
# Tests Tiro's MCP server with the MCP Inspector's command line, in both generations of the protocol.
#
# Usage: inspector.sh BINARY [ARGUMENT ...]    (without arguments the server is started as `BINARY serve --structured`)
#
# Needs Node 22.19 or newer and the Inspector, both on npm:
#     npm install node@22 @modelcontextprotocol/inspector@2 && export PATH="$PWD/node_modules/.bin:$PATH"
# Works in an empty temporary home and project, and removes both.
set -eu

if [ $# -eq 0 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    exit 2
fi
binary=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
[ $# -gt 0 ] || set -- serve --structured
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
mkdir "$home/project"

# inspect ERA INSPECTOR-ARGUMENT ... prints the result as JSON.
inspect() {
    era=$1
    shift
    mcp-inspector --cli "$binary" $server_arguments \
        -e HOME="$home" -e XDG_DATA_HOME="$home/data" -e XDG_STATE_HOME="$home/state" \
        -e XDG_CACHE_HOME="$home/cache" -e XDG_CONFIG_HOME="$home/config" \
        --cwd "$home/project" --protocol-era "$era" --format json --quiet "$@"
}

# holds WHAT TEXT PATTERN fails unless TEXT holds PATTERN.
holds() {
    case $2 in
        *"$3"*) ;;
        *) printf 'FAIL  %s: no %s in\n%s\n' "$1" "$3" "$2" >&2; exit 1 ;;
    esac
}

server_arguments=$*
for era in legacy modern; do
    listed=$(inspect "$era" --method tools/list --strict)
    for tool in search_project_memory store_memory save_messages mark_important forget_context expand_detail \
        list_sessions; do
        holds "$era tools/list" "$listed" "\"$tool\""
    done

    stored=$(inspect "$era" --method tools/call --tool-name store_memory \
        --tool-args-json "{\"text\": \"The numbat$era index is rebuilt at night.\", \"type\": \"fact\"}")
    id=$(printf '%s' "$stored" | sed -n 's/.*"id": *"\([^"]*\)".*/\1/p' | head -n 1)
    holds "$era store_memory" "id:$id" "id:m"
    saved=$(inspect "$era" --method tools/call --tool-name save_messages --tool-args-json \
        "{\"session_id\": \"night $era\", \"messages\": [{\"role\": \"user\", \"text\": \"When is the numbat$era index rebuilt?\"}]}")
    holds "$era save_messages" "$saved" '"ids"'
    found=$(inspect "$era" --method tools/call --tool-name search_project_memory --tool-arg "query=numbat$era")
    holds "$era search_project_memory" "$found" "$id"
    holds "$era expand_detail" "$(inspect "$era" --method tools/call --tool-name expand_detail --tool-arg "id=$id")" \
        "numbat$era"
    marked=$(inspect "$era" --method tools/call --tool-name mark_important --tool-args-json "{\"ids\": [\"$id\"]}")
    holds "$era mark_important" "$marked" "$id"
    holds "$era list_sessions" "$(inspect "$era" --method tools/call --tool-name list_sessions)" "night $era"
    holds "$era resources/list" "$(inspect "$era" --method resources/list)" "tiro://session/night%20$era"
    holds "$era resources/templates/list" "$(inspect "$era" --method resources/templates/list)" "tiro://memory/{id}"
    holds "$era resources/read" "$(inspect "$era" --method resources/read --uri "tiro://memory/$id")" "numbat$era"
    # A failure is a result that says what to do, whatever status the Inspector ends with.
    wrong=$(inspect "$era" --method tools/call --tool-name search_project_memory --tool-arg "qery=x" 2>&1 || true)
    holds "$era wrong argument" "$wrong" "there are no arguments"
    forgotten=$(inspect "$era" --method tools/call --tool-name forget_context --tool-args-json "{\"ids\": [\"$id\"]}")
    holds "$era forget_context" "$forgotten" "$id"
    echo "ok    Inspector, $era: lists, calls and reads"
done
