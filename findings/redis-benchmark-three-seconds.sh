#!/bin/bash
# One would guess that redis-benchmark reports the time that a command took.
#
# It reports at most 3.0 s: a command of 4 s has an average, a p50 and a maximum of 3.0 s, while the
# rate, a command in 4 s, is right. A latency measured on a stalled network looks better than it is,
# and the more so the longer the stall. The manual page names no limit.
#
# redis-tools 7.0.15-1~deb12u10 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get redis-server=5:7.0.15-1~deb12u10 redis-tools=5:7.0.15-1~deb12u10 liblzf1=3.6-3 \
	libjemalloc2=5.3.0-1 liblua5.1-0=5.1.5-9 lua-bitop=1.0.2-7 lua-cjson=2.1.0+dfsg-2.2 \
	libhiredis0.14=0.14.1-3 libatomic1=12.2.0-14+deb12u1
port=$(free_port)
LD_LIBRARY_PATH=$(echo "$dir"/root/usr/lib/*-linux-gnu)
export LD_LIBRARY_PATH
root/usr/bin/redis-server --bind 127.0.0.1 --port "$port" --save '' --loglevel warning >redis.log &
wait_port "$port"
# ask SECONDS prints rate, average, p50 and maximum of commands that wait for SECONDS.
ask() {
	root/usr/bin/redis-benchmark -p "$port" -n 1 -c 1 --csv BLPOP nothing "$1" |
		python3 -c '
import csv, sys
row = list(csv.DictReader(sys.stdin))[0]
print(*(row[k] for k in ("rps", "avg_latency_ms", "p50_latency_ms", "max_latency_ms")))'
}
read -r _ average p50 max < <(ask 2)
echo "2 s: average $average, p50 $p50, maximum $max ms"
holds "they are 2 s" "$average >= 2000 && $p50 >= 2000 && $max >= 2000 && $max < 2999"
read -r rate average p50 max < <(ask 4)
echo "4 s: rate $rate/s, average $average, p50 $p50, maximum $max ms"
holds "one in over 3.9 s" "$rate < 1 / 3.9"
holds "all three are within 2.99 and 3.01 s" \
	"2990 < $average && $average < 3010 && 2990 < $p50 && $p50 < 3010 && 2990 < $max && $max < 3010"
