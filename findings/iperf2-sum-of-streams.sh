#!/bin/bash
# One would guess that the line [SUM] of two streams has the sum of their rates.
#
# With -n (a number of bytes) the line's interval is a fraction of the streams', some tenths of a
# millisecond instead of tens: two streams of 2 MByte at some hundred Mbit/s each have a sum of tens
# of Gbit/s. With -t the sum is right.
#
# iperf 2.1.8+dfsg-1 (Debian), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iperf=2.1.8+dfsg-1
port=$(free_port)
debian iperf -s -B 127.0.0.1 -p "$port" >/dev/null &
wait_port "$port"
for limit in -n2M -t2; do
	debian iperf -c 127.0.0.1 -p "$port" -P 2 -f k "$limit" | grep sec | tee out
	streams=$(sed -nE '/^\[ *[0-9]/s/.* ([0-9.]+) Kbits.*/\1/p' out | paste -sd+)
	sum=$(sed -nE '/^\[SUM/s/.* ([0-9.]+) Kbits.*/\1/p' out)
	case $limit in
	-n*) holds "$limit: the sum is over five times the streams'" "$sum > 5 * ($streams)" ;;
	*) holds "$limit: the sum is within 20 % of the streams'" \
		"$sum < 1.2 * ($streams) && $sum > 0.8 * ($streams)" ;;
	esac
done
