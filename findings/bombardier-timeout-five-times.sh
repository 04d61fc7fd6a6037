#!/bin/bash
# One would guess that a load generator with a timeout of 1 s gives up on a request after 1 s, and
# that a request that it counts was sent once.
#
# bombardier's default client, fasthttp, sends a request that timed out up to five times, and counts
# one error after all of them: two requests to a server that takes 3 s last 10 s, and the server
# gets ten. With --http1, which takes Go's own client, they last 2 s, and the server gets two.
#
# bombardier 1.2.6 (Go), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get github.com/codesenberg/bombardier@v1.2.6
go build -o bombardier github.com/codesenberg/bombardier
port=$(free_port)
python3 "$here/web.py" serve "$port" &
wait_port "$port"

# attack OPTION… prints the requests that failed, the whole seconds, and what the server got.
attack() {
	./bombardier "$@" -n 2 -c 1 -t 1s -o j -p r "http://127.0.0.1:$port/answer?delay=3000" >out
	python3 -c '
import json, sys, urllib.request
r = json.load(open("out"))["result"]
got = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/count").read().decode().strip()
failed = sum(e["count"] for e in r["errors"])
print(failed, "failed,", int(r["timeTakenSeconds"] + 0.5), "s, server:", got)' "$port"
}
expect "fasthttp" "2 failed, 10 s, server: 10" "$(attack)"
expect "--http1" "2 failed, 2 s, server: 2" "$(attack --http1)"
