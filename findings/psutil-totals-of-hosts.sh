#!/bin/bash
# One would guess that psutil.net_io_counters(), "system-wide network I/O statistics", of a host whose
# container uploads 10 MB to another machine has 10 MB sent, and next to nothing received.
#
# It adds up all devices: the container's veth and the bridge have received the 10 MB, too, and the
# host seems to have received 20 MB, of which none came to it over its card. Monitors that show the
# sum (without pernic=True) show a container's uploads as downloads.
#
# psutil 7.2.2 (PyPI), iproute2 6.1.0-3 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get psutil==7.2.2
deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
cat >send.py <<'PY'
import socket
with socket.create_connection(("10.2.0.2", 80)) as c:
    c.sendall(bytes(10_000_000))
    c.shutdown(socket.SHUT_WR)
    c.recv(1)
PY
cat >receive.py <<'PY'
import socket
listener = socket.create_server(("10.2.0.2", 80))
open("listens", "w").close()
c, _ = listener.accept()
while c.recv(1 << 20):
    pass
PY
cat >run.sh <<'END'
other() {  # other NAME ADDRESS GATEWAY makes a network namespace
	unshare -n sleep 100 &
	until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.1; done
	ip link add $1 type veth peer name eth0 netns $!
	nsenter -t $! -n sh -ec "ip addr add $2/24 dev eth0; ip link set eth0 up
		ip route add default via $3"
}
ip link add br0 type bridge
other veth0 10.1.0.2 10.1.0.1 && container=$!
other card0 10.2.0.2 10.2.0.1 && machine=$!
ip link set veth0 master br0
ip addr add 10.1.0.1/24 dev br0
ip addr add 10.2.0.1/24 dev card0
for device in br0 veth0 card0; do ip link set $device up; done
echo 1 >/proc/sys/net/ipv4/ip_forward
nsenter -t $machine -n python3 receive.py &
until [ -e listens ]; do sleep 0.1; done
nsenter -t $container -n python3 send.py
py/bin/python -c '
import psutil
mb = lambda n: "%.0f MB" % (n.bytes_sent / 1e6) + " and %.0f MB" % (n.bytes_recv / 1e6)
print(mb(psutil.net_io_counters()))
print(mb(psutil.net_io_counters(pernic=True)["card0"]))'
kill $container $machine
END
own_network run.sh >seen
expect "sent and received, all" "10 MB and 20 MB" "$(sed -n 1p seen)"
expect "sent and received, the card" "10 MB and 0 MB" "$(sed -n 2p seen)"
