#!/bin/bash
# One would guess that asyncpg, given two servers as libpq may be, asks the second if the first does
# not answer, as libpq does after connect_timeout ("for each host", says its manual).
#
# It spends all of `timeout` on the first, and raises TimeoutError without a word to the second,
# however long the timeout is: a database that is failed over for a machine that vanished, or
# stalls, cannot be reached until its name is taken out of the list. One that refuses connections is
# passed over.
#
# asyncpg 0.32.0, psycopg 3.3.9 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get asyncpg==0.32.0 'psycopg[binary]==3.3.9'
cat >ask.py <<'END'
import asyncio, socket, struct, threading, time
import asyncpg, psycopg

asked = 0

def message(kind, body):
    return kind + struct.pack(">I", len(body) + 4) + body

def accept(server):  # speaks as far as the start of a session
    global asked
    held = []
    while True:
        client = server.accept()[0]
        asked += 1
        held.append(client)
        if client.recv(8)[4:] == struct.pack(">I", 80877103):  # asks for TLS
            client.sendall(b"N")
        client.recv(4096)
        client.sendall(message(b"R", struct.pack(">I", 0))
                       + message(b"S", b"server_version\x0015.0\0")
                       + message(b"S", b"client_encoding\0UTF8\0")
                       + message(b"K", struct.pack(">II", 1, 1)) + message(b"Z", b"I"))

def report(library, start, error):
    print(library, "connected" if error is None else type(error).__name__,
          round(time.monotonic() - start), asked, sep=", ")

async def with_asyncpg(ports, timeout):
    global asked
    asked, start, error = 0, time.monotonic(), None
    try:
        await asyncpg.connect(host=["127.0.0.1"] * 2, port=ports, user="u", password="p",
                              database="d", timeout=timeout)
    except Exception as e:
        error = e
    report("asyncpg", start, error)

def with_psycopg(ports, timeout):
    global asked
    asked, start, error = 0, time.monotonic(), None
    try:
        psycopg.connect(host="127.0.0.1,127.0.0.1", port=",".join(map(str, ports)), user="u",
                        password="p", dbname="d", connect_timeout=timeout)
    except Exception as e:
        error = e
    report("psycopg", start, error)

silent = socket.create_server(("127.0.0.1", 0))
refusing = socket.create_server(("127.0.0.1", 0))
refused = refusing.getsockname()[1]
refusing.close()
good = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=accept, args=(good,), daemon=True).start()
last = good.getsockname()[1]
asyncio.run(with_asyncpg([refused, last], 2))
asyncio.run(with_asyncpg([silent.getsockname()[1], last], 2))
asyncio.run(with_asyncpg([silent.getsockname()[1], last], 6))
with_psycopg([silent.getsockname()[1], last], 2)
END
py/bin/python ask.py >seen
expect "first refuses, 2 s" "asyncpg, connected, 0, 1" "$(sed -n 1p seen)"
expect "first is silent, 2 s" "asyncpg, TimeoutError, 2, 0" "$(sed -n 2p seen)"
expect "first is silent, 6 s" "asyncpg, TimeoutError, 6, 0" "$(sed -n 3p seen)"
expect "first is silent, 2 s" "psycopg, connected, 2, 1" "$(sed -n 4p seen)"
