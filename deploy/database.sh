#!/bin/sh
# Prepares a new database, as its superuser: the extension, and a user who may only make Tiro's schema. Row security
# doesn't bind superusers, so the servers connect as this user.
set -eu
psql --set ON_ERROR_STOP=1 --username postgres --dbname tiro --set password="$TIRO_PASSWORD" <<'SQL'
CREATE EXTENSION vector;
CREATE ROLE tiro LOGIN PASSWORD :'password';
GRANT CREATE ON DATABASE tiro TO tiro;
SQL
