#!/bin/bash
# One would guess that 50 clients that connect at the same time to a port that slirp4netns publishes
# are served as quickly as 50 that come one after another: the server has room for 1024.
#
# A quarter to nearly all wait for a second: slirp4netns listens with a backlog of 1, so the kernel
# drops what comes before it has accepted, and the clients try again after a second. `ss -ltn` shows
# the backlog as Send-Q. Next to the server, 50 are served at once.
#
# slirp4netns 1.2.0-1, libslirp0 4.7.0-1 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get slirp4netns=1.2.0-1 libslirp0=4.7.0-1 iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 \
	libmnl0=1.0.4-3
cat >serve.py <<'END'
"""serve.py answers each byte on port 80 with a byte."""
import socket, threading
listener = socket.create_server(("0.0.0.0", 80), backlog=1024)
open("listening", "w").close()
def serve(c):
    with c:
        c.sendall(c.recv(1))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
END
cat >ask.py <<'END'
"""ask.py ADDRESS PORT prints how many of 50 requests take over 0.9 s: one by one, and at once."""
import selectors, socket, sys, time
address = sys.argv[1], int(sys.argv[2])

def together(n):
    waiting, start = selectors.DefaultSelector(), time.monotonic()
    for _ in range(n):
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex(address)
        waiting.register(c, selectors.EVENT_WRITE)
    late = n
    while n and time.monotonic() - start < 3:
        for key, events in waiting.select(1):
            if events & selectors.EVENT_WRITE:
                key.fileobj.send(b"!")
                waiting.modify(key.fileobj, selectors.EVENT_READ)
                continue
            assert key.fileobj.recv(1) == b"!"
            late -= time.monotonic() - start < 0.9
            waiting.unregister(key.fileobj)
            key.fileobj.close()
            n -= 1
    return late

print(sum(together(1) for _ in range(50)), together(50))
END
cat >run.sh <<'END'
ip link set lo up
PATH=$PWD/root/usr/bin:$PATH
unshare -n python3 serve.py &
server=$!
trap 'kill $server $slirp' EXIT
until [ -e listening ]; do sleep 0.1; done
slirp4netns --configure --api-socket api "$server" tap0 >log 2>&1 &
slirp=$!
until [ -S api ]; do sleep 0.1; done
python3 - <<'PYTHON'
import json, socket
with socket.socket(socket.AF_UNIX) as api:
    api.connect("api")
    api.sendall(json.dumps({"execute": "add_hostfwd", "arguments": {
        "proto": "tcp", "host_addr": "127.0.0.1", "host_port": 8080, "guest_port": 80}}).encode())
    api.shutdown(socket.SHUT_WR)
    assert b"return" in api.recv(1000)
PYTHON
ss -ltnH 'sport = 8080' | awk '{ print $3 }'
python3 ask.py 127.0.0.1 8080
nsenter -n -t "$server" python3 ask.py 127.0.0.1 80 | cut -d " " -f 2
END
own_network run.sh >seen
read -r backlog alone together inside < <(paste -sd ' ' seen)
echo "backlog $backlog; of 50 requests over 0.9 s: one by one $alone, at once $together," \
	"at once next to the server $inside"
expect "backlog" 1 "$backlog"
holds "one by one, and at once next to the server, fewer than 3" "$alone < 3 && $inside < 3"
holds "at once over 10" "$together > 10"
