#!/bin/bash
# One would guess that pgbench's "latency average" is the mean of its transactions' latencies, as that
# of `pgbench --progress` and as the mean of what `--log` writes.
#
# By default it measures none, and prints the run's duration x clients / transactions, which is the
# mean only if all clients are busy to the end. Four clients make ten transactions each (-t 10), one
# of which takes 4 s and the others about a ms: the mean is 0.1 s, "latency average" 0.4 s.
#
# postgresql-15 15.20 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get postgresql-15=15.20-0+deb12u1 libpq5=15.20-0+deb12u1
cat >serve.py <<'PY'
"""serve.py PORT speaks PostgreSQL's protocol, and answers the first query after 4 s."""
import socket, socketserver, struct, sys, time

def message(kind, body=b""):
    return kind + struct.pack(">I", len(body) + 4) + body

first = [True]

class Session(socketserver.StreamRequestHandler):
    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        def read():
            size = self.rfile.read(4)
            return self.rfile.read(struct.unpack(">I", size)[0] - 4) if size else b""
        if not read():
            return
        self.wfile.write(message(b"R", bytes(4)) + message(b"S", b"server_version\0" b"15.20\0")
                         + message(b"Z", b"I"))
        while self.rfile.read(1) == b"Q":
            read()
            if first:
                first.clear()
                time.sleep(4)
            self.wfile.write(message(b"C", b"SELECT 0\0") + message(b"Z", b"I"))

class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

Server(("127.0.0.1", int(sys.argv[1])), Session).serve_forever()
PY
echo 'SELECT;' >script.sql
export PGSSLMODE=disable PGGSSENCMODE=disable
for option in --log --progress=60; do
	port=$(free_port)
	python3 serve.py "$port" &
	wait_port "$port"
	debian pgbench -h 127.0.0.1 -p "$port" -U u -n -f script.sql -c 4 -t 10 $option d >said 2>&1
	average=$(sed -n 's/^latency average = \(.*\) ms$/\1/p' said)
	[ $option = --log ] || { holds "with --progress: $average ms" "$average < 300" && continue; }
	mean=$(awk '{ sum += $3 } END { print sum / NR / 1000 }' pgbench_log.*)
	holds "mean of $(cat pgbench_log.* | wc -l) logged latencies: $mean ms" "$mean < 300"
	holds "latency average: $average ms, over twice the mean" "$average > 2 * $mean"
done
