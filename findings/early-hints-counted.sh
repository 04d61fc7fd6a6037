#!/bin/bash
# One would guess that a client of HTTP/1.1 passes over interim responses (103 Early Hints), as the
# standard asks, and that a load generator counts one response for each request.
#
# Of a server that sends 103 at once and 200 after 100 ms, wrk and autocannon take each 103 for the
# response: they count nearly twice the requests that the server got, half of them answered within
# milliseconds. autocannon calls these "non 2xx", wrk nothing. Python's http.client, and requests
# with it, return 103 as the answer. h2load waits for the 200.
#
# wrk 4.1.0-3+b2, nghttp2-client 1.52.0-1+deb12u3 (Debian), autocannon 9.0.0 (npm),
# requests 2.34.2 (PyPI) on Python 3.11, 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get wrk=4.1.0-3+b2 libluajit-5.1-2=2.1.0~beta3+git20220320+dfsg-4.1+deb12u1 \
	nghttp2-client=1.52.0-1+deb12u3 libev4=1:4.33-1
npm_get autocannon@9.0.0
pip_get requests==2.34.2
port=$(free_port)
python3 "$here/web.py" serve "$port" &
wait_port "$port"
url="http://127.0.0.1:$port/answer?interim=103&delay=100"
got() { "$dir/py/bin/python" -c 'import requests, sys; print(requests.get(sys.argv[1]).text)' \
	"http://127.0.0.1:$port/count"; }

debian wrk -t1 -c1 -d2 "$url" | tee out | grep -E 'Latency|requests in'
made=$(sed -nE 's/^ +([0-9]+) requests in.*/\1/p' out) served=$(got)
holds "wrk's requests ($made) are over 1.5 times the server's ($served)" "$made > 1.5 * $served"
node_modules/.bin/autocannon -a 10 -c 1 -j "$url" 2>/dev/null >out
hints=$(python3 -c 'import json; print(json.load(open("out"))["1xx"])') served=$(got)
holds "autocannon, 10 requests: $hints answers are 1xx" "$hints >= 3"
holds "the server got $served" "$served < 10"
expect "Python's requests: status" 103 "$(py/bin/python -c '
import requests, sys
print(requests.get(sys.argv[1]).status_code)' "$url")"
got >/dev/null
debian h2load --h1 -n 10 -c 1 "$url" | tee out | grep -E '^(requests|time for request)'
expect "h2load, 10 requests: served" 10 "$(got)"
