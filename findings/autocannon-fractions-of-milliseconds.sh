#!/bin/bash
# One would guess that a load generator's mean latency on one connection is about the time divided
# by the number of requests, and that 0.03 ms printed with two digits was measured as such.
#
# autocannon cuts each latency to whole milliseconds before it computes the mean and percentiles.
# On a server that answers within a millisecond mean, p50 and p99 are near 0, several times less
# than the rate of the same report implies. Means of slower servers are about half a millisecond
# too low.
#
# autocannon 9.0.0 (npm), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get autocannon@9.0.0
port=$(free_port)
python3 "$here/web.py" serve "$port" &
wait_port "$port"
url=http://127.0.0.1:$port/answer
node node_modules/autocannon/autocannon.js -c 1 -d 3 -j "$url" 2>/dev/null |
	python3 -c '
import json, sys
r = json.load(sys.stdin)
print(r["latency"]["average"], r["latency"]["p50"], r["requests"]["total"] / r["duration"])' >out
read -r mean median rate <out
echo "mean $mean ms, p50 $median ms, $rate requests a second"
expect "p50" 0 "$median"
holds "the mean is under half of 1000 ms / rate" "$mean < 500 / $rate"
