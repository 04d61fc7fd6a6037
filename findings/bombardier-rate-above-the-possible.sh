#!/bin/bash
# One would guess that "Reqs/sec" of a load generator is the number of requests divided by the time.
# Three connections to a server that takes 20 ms can make at most 150 requests a second.
#
# bombardier averages short samples of the rate: its mean is above requests divided by time, its
# maximum far above the 150 that are possible, in each run.
#
# bombardier 1.2.6 (Go), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get github.com/codesenberg/bombardier@v1.2.6
go build -o bombardier github.com/codesenberg/bombardier
port=$(free_port)
python3 "$here/web.py" serve "$port" &
wait_port "$port"
./bombardier -n 300 -c 3 -o j -p r "http://127.0.0.1:$port/answer?delay=20" >out
read -r time mean most < <(python3 -c '
import json
r = json.load(open("out"))["result"]
print(r["timeTakenSeconds"], r["rps"]["mean"], r["rps"]["max"])')
echo "300 requests in $time s; reported: mean $mean, maximum $most"
holds "the mean is above 300 / $time" "$mean > 300 / $time"
holds "the maximum is above 200" "$most > 200"
