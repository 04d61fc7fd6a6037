#!/bin/bash
# One would guess that a client of event streams reads what a server sends in HTTP chunks, as most
# do, wherever a chunk ends.
#
# sseclient reads below the HTTP library, so that the sizes of chunks are lines of its stream: an
# event in two chunks is cut at the first one's end, without an error. And it reads UTF-8 as Latin 1
# unless the server names a charset.
#
# sseclient 0.0.27, requests 2.34.2 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get sseclient==0.0.27 requests==2.34.2
printf 'data: %s\n\n' "$(printf 'a%.0s' $(seq 60))" ä >answer
port=$(free_port)
python3 "$here/events.py" "$port" &
wait_port "$port"
cat >read.py <<'END'
import sys
from sseclient import SSEClient
client = SSEClient(sys.argv[1])
print(len(next(client).data), ascii(next(client).data))
END
expect "letters of 60, then of ä" "44 '\\xc3\\xa4'" \
	"$(py/bin/python read.py "http://127.0.0.1:$port/answer")"
