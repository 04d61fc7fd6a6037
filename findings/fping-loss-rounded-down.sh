#!/bin/bash
# One would guess that fping's "%loss" is 0% only if no echo was lost.
#
# It drops what is below the point: one echo of 150 lost is "0%", and 149 of 150 lost are 99%. ping
# of iputils says 0.666667%. Monitors that read fping's summary see no loss below 1 %.
#
# fping 5.1-1, iputils-ping 20221126-1+deb12u1, nftables 1.0.6-2+deb12u2 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get fping=5.1-1 iputils-ping=3:20221126-1+deb12u1 nftables=1.0.6-2+deb12u2 \
	libnftables1=1.0.6-2+deb12u2 libnftnl11=1.2.4-2 libmnl0=1.0.4-3 iproute2=6.1.0-3 \
	libbpf1=1:1.1.2-0+deb12u1
cat >run.sh <<'END'
ip link set lo up
nft 'table ip t { chain c { type filter hook input priority 0; }; }'
nft 'add rule ip t c icmp type echo-request icmp sequence 5 drop'
root/usr/bin/fping -q -c 150 -p 10 127.0.0.1 2>&1 | grep -o 'xmt.*%,'
ping -q -c 150 -i 0.01 -W 1 127.0.0.1 | grep -o '[0-9.]*% packet loss'
nft flush chain ip t c
nft 'add rule ip t c icmp type echo-request icmp sequence != 5 drop'
root/usr/bin/fping -q -c 150 -p 10 127.0.0.1 2>&1 | grep -o 'xmt.*%,'
END
own_network run.sh >seen
expect "fping, one lost" "xmt/rcv/%loss = 150/149/0%," "$(sed -n 1p seen)"
expect "ping, one lost" "0.666667% packet loss" "$(sed -n 2p seen)"
expect "fping, all but one lost" "xmt/rcv/%loss = 150/1/99%," "$(sed -n 3p seen)"
