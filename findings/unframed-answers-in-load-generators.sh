#!/bin/bash
# One would guess that load generators agree on a plain case of HTTP/1.1: an answer without a length
# that ends with the connection, such as small servers and old gateways send.
#
# wrk counts every answer twice, as a request and as a read error. h2load sends one request on each
# connection, counts its status 200, and calls all 10 requests failed, although it sent only 3.
# autocannon sends hundreds and reports none of them, neither as an answer nor as an error.
#
# wrk 4.1.0-3+b2, nghttp2-client 1.52.0-1+deb12u3 (Debian), autocannon 9.0.0 (npm), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get wrk=4.1.0-3+b2 libluajit-5.1-2=2.1.0~beta3+git20220320+dfsg-4.1+deb12u1 \
	nghttp2-client=1.52.0-1+deb12u3 libev4=1:4.33-1
npm_get autocannon@9.0.0
port=$(free_port)
python3 "$here/web.py" serve "$port" &
wait_port "$port"
url="http://127.0.0.1:$port/answer?framing=close"

debian wrk -c 2 -t 1 -d 1s "$url" | tee wrk.txt
requests=$(grep -oE '[0-9]+ requests in' wrk.txt | cut -d' ' -f1)
errors=$(grep -oE 'read [0-9]+' wrk.txt | cut -d' ' -f2)
holds "wrk: as many read errors as requests" "$requests > 0 && $requests == $errors"

debian h2load --h1 -n 10 -c 3 "$url" | grep -E '^(requests|status)' | tee h2load.txt
expect "h2load" \
	"3 started, 0 done, 0 succeeded, 10 failed; 3 2xx" \
	"$(sed -nE 's/.*(3 started.*10 failed),.*/\1/p' h2load.txt); $(grep -oE '[0-9]+ 2xx' h2load.txt)"

node node_modules/autocannon/autocannon.js -c 1 -d 1 -j "$url" 2>/dev/null >autocannon.json
expect "autocannon: 2xx, errors, other answers" "0 0 0" \
	"$(python3 -c '
import json
r = json.load(open("autocannon.json"))
print(r["2xx"], r["errors"], r["non2xx"])')"
sent=$(python3 -c 'import json; print(json.load(open("autocannon.json"))["requests"]["sent"])')
holds "autocannon: sent $sent requests" "$sent > 10"
