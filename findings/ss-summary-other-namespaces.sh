#!/bin/bash
# One would guess that `ss -s` in a container counts the container's sockets.
#
# In a network namespace without any socket it counts hundreds as TCP, all of them "closed": one of
# the figures in /proc/net/sockstat, "alloc", is of the whole machine, another, "inuse", is of the
# namespace, and ss takes the difference for sockets that are closed, but not released. It looks
# like a leak; `ss -a` lists none.
#
# iproute2 6.1.0-3 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
cat >hold.py <<'END'
import socket, subprocess
server = socket.create_server(("127.0.0.1", 0), backlog=300)
held = [server]
for _ in range(150):
    held.append(socket.create_connection(server.getsockname()))
    held.append(server.accept()[0])
subprocess.run(["unshare", "-n", "sh", "-c", "ss -s | grep ^TCP: ; ss -Hta | wc -l"], check=True)
END
printf 'ip link set lo up\npython3 hold.py\n' >run.sh
own_network run.sh >seen
echo "without sockets, while another namespace has 301: $(sed -n 1p seen)"
holds "TCP over 300" "$(sed -nE '1s/^TCP: +([0-9]+) .*/\1/p' seen) > 300"
holds "closed over 300" "$(sed -nE '1s/.*closed ([0-9]+),.*/\1/p' seen) > 300"
expect "established" "estab 0" "$(sed -n 1p seen | grep -o 'estab [0-9]*')"
expect "sockets that ss lists" 0 "$(sed -n 2p seen)"
