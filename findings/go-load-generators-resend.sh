#!/bin/bash
# One would guess that a load generator counts each request that it sends, and an error for each
# that a server leaves unanswered by closing the connection, as loadtest does.
#
# hey, vegeta and bombardier do not see such requests: the HTTP clients below them send a GET again
# on a new connection. Of a server that closes instead of its second answer on each connection they
# report 6 of 6 requests as answered, without an error, while the server got 11; the time of both
# attempts is one latency. A server or proxy that drops idle connections too early looks healthy.
#
# hey 0.1.5, vegeta 12.13.0, bombardier 1.2.6 (Go), loadtest 8.2.1 (npm), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get loadtest@8.2.1
go_get github.com/rakyll/hey@v0.1.5 github.com/tsenart/vegeta/v12@v12.13.0 \
	github.com/codesenberg/bombardier@v1.2.6
go build -o hey github.com/rakyll/hey
go build -o vegeta github.com/tsenart/vegeta/v12
go build -o bombardier github.com/codesenberg/bombardier
port=$(free_port)
python3 "$here/web.py" serve "$port" &
wait_port "$port"
url="http://127.0.0.1:$port/answer?drop=1"

# got prints how many requests the server got since the last call.
got() { python3 -c '
import sys, urllib.request
print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/count").read().decode().strip())' "$port"; }

expect "hey: answered; server" "6; 11" "$(./hey -n 6 -c 1 "$url" |
	sed -nE 's/.*\[200\]\s+([0-9]+) responses/\1/p; s/.*Error.*/errors/p'); $(got)"
expect "vegeta" "6 100.00%; 11" "$(echo "GET $url" | ./vegeta attack -rate 50 -duration 120ms \
	-workers 1 -max-workers 1 | ./vegeta report |
	sed -nE 's/^Requests .*\]\s+([0-9]+),.*/\1/p; s/^Success.*\]\s+//p' | paste -sd' '); $(got)"
expect "bombardier" "6 0; 11" "$(./bombardier -n 6 -c 1 -o j -p r "$url" | python3 -c '
import json, sys
r = json.load(sys.stdin)["result"]
print(r["req2xx"], sum(e["count"] for e in r.get("errors") or []))'); $(got)"
expect "loadtest" "6 2; 6" "$(node_modules/.bin/loadtest -n 6 -c 1 -k --cores 1 "$url" |
	sed -nE 's/^(Completed requests|Total errors):\s+//p' | paste -sd' '); $(got)"
