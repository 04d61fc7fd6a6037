#!/bin/bash
# One would guess that ifstat's "Kbps" are thousands of bits a second, as a link's rate is told, and
# as bwm-ng counts.
#
# They are 1024 bits: 8 Mbit/s are 7812 Kbps. Who compares them with the link's rate, or with what
# another tool says, is 2.3 % off. ifstat's manual says "kbits/sec".
#
# ifstat 1.1-8.2, bwm-ng 0.6.3-2+b1 (Debian), 2026-12-01
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get ifstat=1.1-8.2 bwm-ng=0.6.3-2+b1 libsnmp40=5.9.3+dfsg-2+deb12u1 \
	libstatgrab10=0.92.1-1.1 iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
cat >send.py <<'END'
"""send.py sends 8000 datagrams of 1000 bytes with the headers, within some seconds."""
import socket, time
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("127.0.0.1", 9))
source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(800):
    for _ in range(10):
        source.sendto(bytes(972), ("127.0.0.1", 9))
    time.sleep(0.005)
END
cat >run.sh <<'END'
export PATH=$PWD/root/usr/bin:$PATH
ip link set lo up
ifstat -b -i lo 30 1 >ifstat &
bwm-ng -o csv -t 30000 -c 1 -I lo >bwm-ng &
sleep 6
python3 send.py
wait
END
own_network run.sh
ifstat=$(tail -1 ifstat | awk '{ print $1 }')
read -r bits packets < <(awk -F ';' '$2 == "lo" { print $4 * 8, $9 }' bwm-ng)
echo "bwm-ng: $bits bit/s, $packets packets/s; ifstat: $ifstat Kbps"
holds "bwm-ng's bits are those of 1000 bytes a packet" \
	"$bits / $packets > 7990 && $bits / $packets < 8010"
holds "ifstat's are of 1024 bits" \
	"$bits / $ifstat / 1024 > 0.99 && $bits / $ifstat / 1024 < 1.01"
