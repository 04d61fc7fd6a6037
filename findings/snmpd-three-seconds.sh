#!/bin/bash
# One would guess that Net-SNMP's agent answers with the bytes that the kernel has counted so far, and
# that what a device sends in a second is the difference of two answers a second apart.
#
# It reads the kernel's counters once in three seconds. Of a device that sends 100 kB in each second
# a graph by seconds shows 0, 0 and 300 kB by turns: pauses and peaks that are not there. The
# agent's nsCacheTimeout of the table of interfaces says so.
#
# snmpd and snmp 5.9.3+dfsg-2+deb12u1 (Debian), 2026-12-01
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get snmpd=5.9.3+dfsg-2+deb12u1 snmp=5.9.3+dfsg-2+deb12u1 libsnmp40=5.9.3+dfsg-2+deb12u1 \
	iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3 libpci3=1:3.9.0-4 \
	libsensors5=1:3.6.0-7.1
cat >ask.py <<'PY'
import socket, subprocess, threading, time
index = socket.if_nametoindex("v0")

def send():
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind(("v0", 0))
        while True:
            s.send(b"\xff" * 12 + b"\x88\xb5" + bytes(986))
            time.sleep(0.01)

def kernel():
    lines = open("/proc/net/dev").read().splitlines()
    return next(int(l.split()[9]) for l in lines if l.split()[0] == "v0:")

def agent(oid):
    said = subprocess.run(["root/usr/bin/snmpget", "-v2c", "-c", "c", "-Oqv", "127.0.0.1", oid],
                          capture_output=True, text=True).stdout.strip()
    return int(said) if said.isdigit() else None

octets = f".1.3.6.1.2.1.31.1.1.1.10.{index}"  # ifHCOutOctets
while agent(octets) is None:  # until it listens
    time.sleep(0.1)
threading.Thread(target=send, daemon=True).start()
start, seen, times = time.monotonic(), [], []
for i in range(14):
    time.sleep(max(0, start + 1 + i - time.monotonic()))
    seen.append((agent(octets), kernel()))
    times.append(time.monotonic() - start)
steps = [[b[k] - a[k] for a, b in zip(seen, seen[1:])] for k in (0, 1)]
print(*(n // 1000 for n in steps[0]))
print(*(n // 1000 for n in steps[1]))
print(*(sum(n > 0 for n in kind) for kind in steps), int(times[-1] - times[0]) // 3 + 2)
print(agent(".1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.2.2"))
PY
cat >run.sh <<'END'
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add v0 type veth peer v1
for device in lo v0 v1; do ip link set $device up; done
printf 'agentaddress udp:127.0.0.1:161\nrocommunity c 127.0.0.1\n' >snmpd.conf
export SNMP_PERSISTENT_DIR=$PWD/state SNMPCONFPATH=$PWD MIBS=
snmpd -C -c snmpd.conf -f -Lf snmpd.log &
trap 'kill $!' EXIT
python3 ask.py
END
own_network run.sh >seen
echo "kB in each second, of the agent: $(sed -n 1p seen)"
echo "kB in each second, of the kernel: $(sed -n 2p seen)"
read -r agent kernel most < <(sed -n 3p seen)
expect "steps in which the kernel counted" 13 "$kernel"
holds "in which the agent did: $agent, at most one in three seconds" "$agent > 1 && $agent <= $most"
expect "nsCacheTimeout of the interfaces" 3 "$(sed -n 4p seen)"
