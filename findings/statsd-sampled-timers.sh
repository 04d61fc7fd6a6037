#!/bin/bash
# One would guess that a timer's "sum" divided by its "count" is its mean, also if the client sends
# one of ten values only, and says so ("@0.1").
#
# Of ten values of 100 ms StatsD makes a count of 100, and a sum of 1000 ms: it scales the count,
# not the sum, nor sum_squares and count_90. A graph that divides them has 10 ms where the mean is
# 100, and one that adds sums up has a tenth of the time that was spent.
#
# statsd 0.9.0 (npm), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get statsd@0.9.0
port=$(free_port) admin=$(free_port)
cat >config.js <<END
{ address: '127.0.0.1', port: $port, mgmt_address: '127.0.0.1', mgmt_port: $admin,
  flushInterval: 2000, backends: ['./backends/console'] }
END
node node_modules/statsd/stats.js config.js >statsd.log 2>&1 &
wait_port "$admin"
python3 - "$port" <<'END'
import socket, sys
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for name, rate in ("all", b""), ("sampled", b"|@0.1"):
    for _ in range(10):
        client.sendto(name.encode() + b":100|ms" + rate, ("127.0.0.1", int(sys.argv[1])))
END
for _ in $(seq 100); do
	grep -q '  sampled: {' statsd.log && break
	sleep 0.2
done
# flushed TIMER prints its count, sum and mean.
flushed() {
	sed -n "/^    $1: {/,/^    }/p" statsd.log | sed -nE 's/^ +(count|sum|mean): ([0-9]+),?$/\2/p' |
		head -3 | paste -sd ' '
}
expect "count, sum, mean of ten values" "10 1000 100" "$(flushed all)"
expect "of ten that are one in ten" "100 1000 100" "$(flushed sampled)"
