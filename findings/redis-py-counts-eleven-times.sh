#!/bin/bash
# One would guess that incr() that times out has added 1 at most: `retry_on_timeout` is False by
# default.
#
# redis-py sends it again ten times, over new connections, before it raises TimeoutError: a server
# whose answers come late has added 11. `retry_on_timeout=False` changes nothing (a warning of its
# deprecation says that "TimeoutError is included by default"); a `Retry` of 0 times does.
#
# redis 8.1.0 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get redis==8.1.0
cat >count.py <<'END'
import inspect, socket, threading, time
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

added = 0

def answer(client):  # increments at once, and says so after half a second
    global added
    lines = client.makefile("rb")
    while line := lines.readline():
        words = []
        for _ in range(int(line[1:])):
            lines.readline()
            words.append(lines.readline().strip())
        if words[0] == b"INCRBY":
            added += 1
            time.sleep(0.5)
        try:
            client.sendall(b":%d\r\n" % added if words[0] == b"INCRBY" else b"+OK\r\n")
        except OSError:
            return

def accept(server):
    while True:
        threading.Thread(target=answer, args=server.accept()[:1], daemon=True).start()

def count(**options):
    global added
    added = 0
    client = redis.Redis(port=port, protocol=2, **options)
    try:
        client.incr("key")
        return f"no error, {added}"
    except redis.TimeoutError:
        time.sleep(0.1)
        return f"TimeoutError, {added}"

server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]
threading.Thread(target=accept, args=(server,), daemon=True).start()
print(inspect.signature(redis.Redis).parameters["retry_on_timeout"].default)
print(count(socket_timeout=5))
print(count(socket_timeout=0.1))
print(count(socket_timeout=0.1, retry_on_timeout=False))
print(count(socket_timeout=0.1, retry=Retry(NoBackoff(), 0)))
END
py/bin/python -W ignore count.py >found
expect "default of retry_on_timeout" False "$(sed -n 1p found)"
expect "added by incr(), timeout of 5 s" "no error, 1" "$(sed -n 2p found)"
expect "timeout of 0.1 s" "TimeoutError, 11" "$(sed -n 3p found)"
expect "and retry_on_timeout=False" "TimeoutError, 11" "$(sed -n 4p found)"
expect "and a Retry of 0 times" "TimeoutError, 1" "$(sed -n 5p found)"
