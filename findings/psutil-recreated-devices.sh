#!/bin/bash
# One would guess that net_io_counters(pernic=True) has the bytes that the kernel has counted for a
# device, as `ip -s link` shows them.
#
# A device that was deleted and made again under its name between two calls, as a bridge's, a
# tunnel's or a container's veth is, has the bytes of the old one on top for as long as the process
# lives: psutil takes the smaller counter for one that wrapped at 32 bits (`nowrap`, on by default).
# A rate over that time counts the new bytes alone, a total is too large.
#
# psutil 7.2.2 (PyPI), iproute2 6.1.0-3 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get psutil==7.2.2
deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
cat >run.py <<'END'
import socket, subprocess
import psutil

def device():
    subprocess.run(["sh", "-ec", "ip link add v0 type veth peer v1; ip link set v1 up; "
                    "ip link set v0 up"], check=True)

def send(n):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind(("v0", 0))
        for _ in range(n):
            s.send(b"\xff" * 12 + b"\x88\xb5" + bytes(986))

def show(what):
    lines = open("/proc/net/dev").read().splitlines()
    kernel = next(int(l.split()[9]) for l in lines if l.split()[0] == "v0:")
    print(what, kernel // 1000, psutil.net_io_counters(pernic=True)["v0"].bytes_sent // 1000,
          psutil.net_io_counters(pernic=True, nowrap=False)["v0"].bytes_sent // 1000, sep=";")

open("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w").write("1")
device()
send(500)
show("500 frames of 1 kB")
subprocess.run(["ip", "link", "del", "v0"], check=True)
device()
send(20)
show("the device made again, 20 frames")
send(20)
show("20 more")
END
echo 'py/bin/python run.py' >run.sh
own_network run.sh >seen
echo "kB sent: of the kernel; psutil; psutil with nowrap=False"
expect "500 frames of 1 kB" "500;500;500" "$(sed -n '1s/^[^;]*;//p' seen)"
expect "the device made again, 20 frames" "20;520;20" "$(sed -n '2s/^[^;]*;//p' seen)"
expect "20 more" "40;540;40" "$(sed -n '3s/^[^;]*;//p' seen)"
