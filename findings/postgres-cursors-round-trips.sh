#!/bin/bash
# One would guess that 10,000 rows, read with a cursor so that they do not fill the memory at once,
# take about as many round trips with one PostgreSQL client as with another.
#
# psycopg2 takes 10, SQLAlchemy on top of it 31, pg-query-stream and psycopg 3 over 100, asyncpg
# over 200, and postgres.js 10,004: its cursor() fetches one row at a time unless it is told how
# many (others: 50, 100 or 2000; SQLAlchemy begins with few and fetches more and more). Over a path
# with a round trip of 1 ms a loop over postgres.js' cursor takes 10 s, one over psycopg2's 10 ms.
#
# psycopg2-binary 2.9.13, psycopg 3.3.9, asyncpg 0.32.0, SQLAlchemy 2.1.9 (PyPI), pg 8.23.1,
# pg-query-stream 4.17.0, postgres 3.4.9 (npm), postgresql-15 15.20-0+deb12u1 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get postgresql-15=15.20-0+deb12u1 libpq5=15.20-0+deb12u1
pip_get psycopg2-binary==2.9.13 'psycopg[binary]==3.3.9' asyncpg==0.32.0 sqlalchemy==2.1.9
npm_get pg@8.23.1 pg-query-stream@4.17.0 postgres@3.4.9
server=$(free_port) port=$(free_port)
cat >count.py <<'END'
"""count.py PORT TO passes connections on; a line "count" on one gets the round trips since."""
import asyncio, sys
trips = 0

async def serve(reader, writer):
    global trips
    first = await reader.read(1 << 16)
    if first == b"count\n":
        writer.write(b"%d\n" % trips)
        trips = 0
        writer.close()
        return
    asking = True
    there = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))
    there[1].write(first)

    async def pump(reader, writer, question):
        global trips
        nonlocal asking
        while data := await reader.read(1 << 16):
            trips += question and not asking
            asking = question
            writer.write(data)
        writer.close()
    await asyncio.gather(pump(reader, there[1], True), pump(there[0], writer, False))

async def listen():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()

asyncio.run(listen())
END
as=()
if [ "$(id -u)" = 0 ]; then
	chmod 755 "$dir"
	as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
install -d "${as[@]:+-o65534}" data
bin=$(echo root/usr/lib/postgresql/15/bin)
export LD_LIBRARY_PATH=$(echo "$dir"/root/usr/lib/*-linux-gnu)
"${as[@]}" $bin/initdb -D data -A trust -U u --no-sync -L "$dir/root/usr/share/postgresql/15" \
	>init.log 2>&1 || { cat init.log; exit 1; }
"${as[@]}" $bin/postgres -D data -h 127.0.0.1 -p "$server" -k '' -c jit=off -c fsync=off 2>pg.log &
unset LD_LIBRARY_PATH
python3 count.py "$port" "$server" &
wait_port "$server" && wait_port "$port"
cat >read.py <<'END'
import asyncio, sys
which, port = sys.argv[1:]
url = f"postgresql://u@127.0.0.1:{port}/postgres"
query = "select generate_series(1, 10000)"
if which == "psycopg2":
    import psycopg2
    cursor = psycopg2.connect(url).cursor("c")
elif which == "psycopg":
    import psycopg
    cursor = psycopg.connect(url).cursor("c")
if which.startswith("psycopg"):
    cursor.execute(query)
    n = sum(1 for _ in cursor)
elif which == "sqlalchemy":
    import sqlalchemy
    with sqlalchemy.create_engine(url.replace(":", "+psycopg2:", 1)).connect() as connection:
        n = sum(1 for _ in connection.execution_options(stream_results=True).execute(
            sqlalchemy.text(query)))
else:
    import asyncpg
    async def main():
        connection = await asyncpg.connect(url)
        async with connection.transaction():
            return len([row async for row in connection.cursor(query)])
    n = asyncio.run(main())
assert n == 10000
END
cat >read.mjs <<'END'
import pg from 'pg'
import QueryStream from 'pg-query-stream'
import postgres from 'postgres'
const [which, port] = process.argv.slice(2)
const url = `postgresql://u@127.0.0.1:${port}/postgres`, query = 'select generate_series(1, 10000)'
let n = 0
if (which === 'pg-query-stream') {
	const client = new pg.Client(url)
	await client.connect()
	for await (const _ of client.query(new QueryStream(query))) n++
	await client.end()
} else {
	const sql = postgres(url)
	for await (const rows of sql.unsafe(query).cursor()) n += rows.length
	await sql.end()
}
if (n !== 10000) process.exit(1)
END
trips() {
	python3 -c '
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as c:
    c.sendall(b"count\n")
    print(c.recv(100).decode().strip())' "$port"
}
trips >before
for which in psycopg2 sqlalchemy psycopg asyncpg pg-query-stream postgres; do
	if [ -e "node_modules/$which" ]; then
		node read.mjs $which "$port"
	else
		py/bin/python read.py $which "$port"
	fi
	found=$(trips)
	echo "$which: round trips: $found"
	case $which in
	psycopg2) holds "  under 20" "$found < 20" ;;
	sqlalchemy) holds "  under 50" "$found < 50" ;;
	psycopg | pg-query-stream) holds "  over 100" "$found > 100 && $found < 130" ;;
	asyncpg) holds "  over 200" "$found > 200 && $found < 230" ;;
	postgres) holds "  over 10000" "$found > 10000" ;;
	esac
done
