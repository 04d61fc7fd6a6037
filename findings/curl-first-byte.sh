#!/bin/bash
# One would guess that curl's time_starttransfer, the usual measure of the time to the first byte,
# ends with the first byte of the answer.
#
# It ends when the upload starts, if the body of the request has more than 64 KB: of a server that
# answers after 500 ms, 60 kB get 0.5 s, 70 kB some milliseconds. It also ends at an interim response
# (103, Early Hints), which a server may send at once. A long prompt or a hint makes a slow server
# look quick.
#
# curl 7.88.1-10+deb12u15 (Debian), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get curl=7.88.1-10+deb12u15 libcurl4=7.88.1-10+deb12u15
port=$(free_port)
python3 "$here/web.py" serve "$port" &
wait_port "$port"
url="http://127.0.0.1:$port/answer?delay=500"
first() { debian curl -s -o /dev/null -w '%{time_starttransfer}\n' "$@"; }

for size in 60000 70000; do
	head -c "$size" /dev/zero >body
	seconds=$(first --data-binary @body "$url")
	holds "curl: $size bytes, first byte after $seconds s" \
		"$size == 60000 ? $seconds >= 0.5 : $seconds < 0.25"
done
seconds=$(first "$url&interim=103")
holds "curl: Early Hints, first byte after $seconds s" "$seconds < 0.25"
