#!/bin/bash
# One would guess that a comment, which servers send to keep a connection alive, is no event.
#
# httpx-sse skips comments until an event has an id. From then on each comment is a message with
# empty data, because the id stays: a client that decodes each message as JSON works until the
# server numbers its events. sseclient-py has the three events in both cases.
#
# httpx-sse 0.4.3, httpx 0.28.1, sseclient-py 1.9.0 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get httpx-sse==0.4.3 httpx==0.28.1 sseclient-py==1.9.0
printf 'data: 1\n\n: alive\n\ndata: 2\n\n: alive\n\ndata: 3\n\n' >none
(echo 'id: 7' && cat none) >id
cat >read.py <<'END'
import sys
import httpx, httpx_sse, sseclient
library, url = sys.argv[1:]
with httpx.Client() as client:
    if library == "httpx-sse":
        with httpx_sse.connect_sse(client, "GET", url) as source:
            print([e.data for e in source.iter_sse()])
    else:
        with client.stream("GET", url) as response:
            print([e.data for e in sseclient.SSEClient(response.iter_bytes()).events()])
END
port=$(free_port)
python3 "$here/events.py" "$port" &
wait_port "$port"
for library in httpx-sse sseclient-py; do
	expect "$library, no ids" "['1', '2', '3']" \
		"$(py/bin/python read.py $library "http://127.0.0.1:$port/none")"
done
expect "httpx-sse, first has an id" "['1', '', '2', '', '3']" \
	"$(py/bin/python read.py httpx-sse "http://127.0.0.1:$port/id")"
expect "sseclient-py, first has an id" "['1', '2', '3']" \
	"$(py/bin/python read.py sseclient-py "http://127.0.0.1:$port/id")"
