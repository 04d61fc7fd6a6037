#!/bin/bash
# One would guess that with four streams iperf3's -n and -b are limits of the same kind: both of
# each stream, as in iperf 2, or both of all streams together.
#
# -n is what all streams send together, -b the rate of each: -n 4M -P 4 sends 4 MiB, -b 10M -P 4 is
# 40 Mbit/s. In iperf 2 both are of each stream, and -n 4M -P 4 sends 16 MiB. iperf3's manual says
# that -b is applied to each stream, and of -n "number of bytes to transmit". Who compares how long
# -n takes with one and with four streams compares like amounts in iperf3, unlike ones in iperf 2.
#
# iperf3 3.12-1+deb12u2, iperf 2.1.8+dfsg-1 (Debian), 2026-12-01
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iperf3=3.12-1+deb12u2 libiperf0=3.12-1+deb12u2 libsctp1=1.0.19+dfsg-2 iperf=2.1.8+dfsg-1
three=$(free_port)
debian iperf3 -s -B 127.0.0.1 -p "$three" >server3 2>&1 &
wait_port "$three"
two=$(free_port)
debian iperf -s -B 127.0.0.1 -p "$two" >server2 2>&1 &
wait_port "$two"
ask3() {
	sleep 0.5
	debian iperf3 -c 127.0.0.1 -p "$three" -J "$@" >out
	python3 -c 'import json
s = json.load(open("out"))["end"]["sum_sent"]
print("%.2f %.1f" % (s["bytes"] / 2**20, s["bits_per_second"] / 1e6))'
}
# iperf 2 prints a line of values for each stream: bytes and bits a second are the last ones.
ask2() { debian iperf -c 127.0.0.1 -p "$two" -y C -P 4 "$@" 2>err | awk -F , '$6 > 0' >out; }

expect "iperf3 -n 4M, MiB sent" 4.00 "$(ask3 -n 4M | cut -d ' ' -f 1)"
expect "iperf3 -n 4M -P 4, MiB sent" 4.00 "$(ask3 -n 4M -P 4 | cut -d ' ' -f 1)"
read -r _ one < <(ask3 -b 10M -t 2)
read -r _ four < <(ask3 -b 10M -t 2 -P 4)
echo "iperf3 -b 10M: $one Mbit/s; with -P 4: $four Mbit/s"
holds "it is the rate of each" "$four / $one > 3.5 && $four / $one < 4.5"
ask2 -n 4M
sent=$(awk -F , '{ n += $8 } END { printf "%.2f", n / 2^20 }' out)
expect "iperf -n 4M -P 4, MiB sent" 16.00 "$sent"
ask2 -b 10M -t 2
four=$(awk -F , '{ n += $9 } END { printf "%.1f", n / 1e6 }' out)
echo "iperf -b 10M -P 4: $four Mbit/s"
holds "it is the rate of each" "$four > 35 && $four < 50"
