#!/bin/bash
# One would guess that a server with a thread for each client takes 100 clients that connect at the
# same time within some milliseconds.
#
# cheroot, which CherryPy uses, and Python's http.server listen with a backlog of 5. What comes
# before they have accepted the kernel drops, and the client's tries again after a second: of the
# 100, tens wait that long. No log or metric of the server says so, but ListenDrops of the kernel
# does. Node's and uvicorn's backlogs are 511 and more, and nothing is dropped.
#
# cheroot 11.1.2, uvicorn 0.54.0 (PyPI), Python 3.11, Node 20, iproute2 6.1.0-3 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get cheroot==11.1.2 uvicorn==0.54.0
deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
cat >serve.py <<'END'
import sys
which, port = sys.argv[1], int(sys.argv[2])

def wsgi(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]

if which == "cheroot":
    from cheroot.wsgi import Server
    Server(("127.0.0.1", port), wsgi).start()
elif which == "http.server":
    import http.server
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
        def log_message(self, *_):
            pass
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
elif which == "uvicorn":
    import uvicorn
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", lifespan="off")
END
cat >serve.cjs <<'END'
require('http').createServer((_, r) => r.end('ok')).listen(+process.argv[2], '127.0.0.1')
END
cat >ask.py <<'END'
"""ask.py PORT connects 100 times at once; prints the backlog and what the kernel dropped."""
import socket, subprocess, sys, time

def drops():
    names, values = [l.split() for l in open("/proc/net/netstat") if l.startswith("TcpExt:")]
    return int(values[names.index("ListenDrops")])

port = int(sys.argv[1])
while True:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
time.sleep(1)
before, clients = drops(), []
for _ in range(100):
    c = socket.socket()
    c.setblocking(False)
    c.connect_ex(("127.0.0.1", port))
    clients.append(c)
time.sleep(0.5)
listening = subprocess.run(["ss", "-ltnH", f"sport = {port}"], capture_output=True, text=True)
print(listening.stdout.split()[2], drops() - before)
END
cat >run.sh <<'END'
ip link set lo up
port=8000
for which in cheroot http.server uvicorn node; do
	port=$((port + 1))
	if [ $which = node ]; then
		node serve.cjs $port &
	else
		py/bin/python serve.py $which $port &
	fi
	echo "$which $(python3 ask.py $port)"
	kill $!
done
END
own_network run.sh >seen
echo "backlogs, and how many packets of 100 connections at once the kernel dropped there"
for which in cheroot http.server uvicorn node; do
	read -r backlog dropped < <(sed -n "s/^$which //p" seen)
	echo "$which: $backlog; $dropped"
	case $which in
	cheroot | http.server) holds "  backlog 5, over 10 dropped" "$backlog == 5 && $dropped > 10" ;;
	*) holds "  backlog over 500, none" "$backlog > 500 && $dropped == 0" ;;
	esac
done
