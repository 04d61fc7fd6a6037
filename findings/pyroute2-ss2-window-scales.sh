#!/bin/bash
# One would guess that pyroute2's ss2, "a complete and convenient surrogate" of ss, lists the TCP
# sockets that ss lists, with their figures.
#
# Its rcv_wscale is a copy of snd_wscale: both are taken from the same four bits of a byte. Where a
# server has a small receive buffer, ss shows two different scales. Sockets of IPv6 are missing.
#
# pyroute2 0.9.7, psutil 7.2.2 (PyPI), iproute2 6.1.0-3 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
pip_get pyroute2==0.9.7 psutil==7.2.2
cat >sockets.py <<'END'
import socket, subprocess
open_sockets = []
for family, address in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
    server = socket.socket(family)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    server.bind((address, 8000))
    server.listen()
    client = socket.create_connection((address, 8000))
    open_sockets += [server, client, server.accept()[0]]
subprocess.run("ss -Htin >ss; py/bin/ss2 -t >ss2.json", shell=True, check=True)
END
cat >compare.py <<'END'
import json, re
ss = open("ss").read()
scales = {tuple(map(int, m)) for m in re.findall(r"wscale:(\d+),(\d+)", ss)}
flows = json.load(open("ss2.json"))[0]["TCP"]["flows"]
flows = [f for f in flows if f["tcp_info"]["state"] == "established"]
found = {(f["tcp_info"]["snd_wscale"], f["tcp_info"]["rcv_wscale"]) for f in flows}
print(ss.count("ESTAB"), all(a != b for a, b in scales))
print(len(flows), all(a == b for a, b in found))
print("ss", sorted(scales), "ss2", sorted(found))
END
printf 'ip link set lo up\npython3 sockets.py\n' >run.sh
own_network run.sh
python3 compare.py >out
expect "ss: connected sockets, scales differ" "4 True" "$(sed -n 1p out)"
expect "ss2: connected sockets, scales equal" "2 True" "$(sed -n 2p out)"
sed -n 3p out
