#!/bin/bash
# One would guess that connect_timeout=2 in the URL of a PostgreSQL server ends an attempt to
# connect to a server that accepts the connection and says nothing: it is a parameter of such URLs
# (PostgreSQL's documentation, "Connection URIs"), which programs in several languages share.
#
# psycopg and postgres.js give up after 2 s. node-postgres ignores the parameter and waits without
# end. asyncpg sends it to the server, as a setting that PostgreSQL does not have, and waits for
# its own timeout, 60 s by default.
#
# psycopg 3.3.9, asyncpg 0.32.0 (PyPI), pg 8.23.1, postgres 3.4.9 (npm), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get 'psycopg[binary]==3.3.9' asyncpg==0.32.0
npm_get pg@8.23.1 postgres@3.4.9
cat >connect.py <<'END'
import asyncio, sys, asyncpg, psycopg
name, url = sys.argv[1:]
psycopg.connect(url) if name == "psycopg" else asyncio.run(asyncpg.connect(url))
END
cat >connect.mjs <<'END'
import pg from 'pg'
import postgres from 'postgres'
const [name, url] = process.argv.slice(2)
await (name == 'pg' ? new pg.Client(url).connect() : postgres(url)`select 1`)
END
cat >silent.py <<'END'
"""silent.py PORT accepts connections, and prints what clients send, which it does not answer."""
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
kept = []
while True:
    kept.append(server.accept()[0])
    print(kept[-1].recv(1000), flush=True)
END
port=$(free_port)
python3 silent.py "$port" >sent &
wait_port "$port"
url="postgresql://u@127.0.0.1:$port/d?connect_timeout=2&sslmode=disable"
# gives_up COMMAND… prints whether a command ends within 15 s.
gives_up() {
	local status=0
	timeout 15 "$@" >log 2>&1 || status=$?
	[ $status = 124 ] && echo no || echo yes
}
expect "psycopg gives up" yes "$(gives_up py/bin/python connect.py psycopg "$url")"
expect "postgres.js gives up" yes "$(gives_up node connect.mjs postgres "$url")"
expect "node-postgres gives up" no "$(gives_up node connect.mjs pg "$url")"
expect "asyncpg gives up" no "$(gives_up py/bin/python connect.py asyncpg "$url")"
expect "clients that send the word connect_timeout" 1 "$(grep -c connect_timeout sent)"
