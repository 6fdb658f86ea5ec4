# Keeps a throw-away PostgreSQL: keep.sh BIN FOLDER ROOT
#
# Makes a cluster in FOLDER with the programs in BIN, starts it with a socket there, and prints "ready". It ends when stdin
# is closed: then the server is stopped, and FOLDER and ROOT are removed. The program that starts this script holds the
# other end of stdin, so the server ends with the program, however the program ends.
bin=$1 folder=$2 root=$3

# Signals end the commands of this script, and so the wait, but not the script.
trap : HUP INT TERM
trap '' PIPE

leave() {
    cd / && rm -rf "$folder" "$root" 2>/dev/null
    exit "$1"
}

cd "$folder" || exit 1
"$bin/initdb" -D "$folder/cluster" -U postgres -A trust -E UTF8 --no-locale --no-sync --no-instructions \
    >"$folder/log" 2>&1 || { tail -n 3 "$folder/log"; leave 1; }
# Nothing of it is kept, so nothing is synced. Nobody but its user enters the folder of the socket.
"$bin/pg_ctl" -D "$folder/cluster" -w -t 60 -s -l "$folder/log" start -o "-c listen_addresses= \
    -c unix_socket_directories='$folder' -c fsync=off -c full_page_writes=off -c synchronous_commit=off" \
    >/dev/null 2>&1 || { tail -n 3 "$folder/log"; leave 1; }
echo ready
cat >/dev/null
"$bin/pg_ctl" -D "$folder/cluster" -m immediate -s stop >/dev/null 2>&1
leave 0
