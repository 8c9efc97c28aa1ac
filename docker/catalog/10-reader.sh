#!/bin/sh
# Run once, when the catalog's database is made: a role for all who only read (manager, clients).
set -eu
psql -v ON_ERROR_STOP=1 -v password="$CATALOG_READER_PASSWORD" -v owner="$POSTGRES_USER" \
    --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE ROLE reader LOGIN PASSWORD :'password';
GRANT USAGE ON SCHEMA public TO reader;
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA public GRANT SELECT ON TABLES TO reader;
SQL
