#!/bin/bash
# One would guess that iter_lines of requests, with stream=True, gives each line of an event stream
# when it comes.
#
# That depends on the server's framing. Lines in HTTP chunks come at once. Of an answer that ends
# with its connection, as a server gives it to a proxy that speaks HTTP/1.0, or that has a
# Content-Length, 512 bytes are awaited: five events, 100 ms apart, come together at the end. httpx
# gives each at once.
#
# requests 2.34.2, urllib3 2.8.0, httpx 0.28.1 (PyPI), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get requests==2.34.2 urllib3==2.8.0 httpx==0.28.1
port=$(free_port)
python3 "$here/web.py" serve "$port" &
wait_port "$port"
cat >lines.py <<'END'
import sys, time
library, url = sys.argv[1:]
start, times = time.monotonic(), []
def line(text):
    if text.strip():
        times.append(round((time.monotonic() - start) * 1000))
match library:
    case "requests":
        import requests
        start = time.monotonic()
        for text in requests.get(url, stream=True).iter_lines():
            line(text)
    case "httpx":
        import httpx
        start = time.monotonic()
        with httpx.stream("GET", url) as r:
            for text in r.iter_lines():
                line(text)
print(*times)
END
for framing in chunked close length; do
	for library in requests httpx; do
		times=$(py/bin/python lines.py "$library" \
			"http://127.0.0.1:$port/events?size=50&framing=$framing")
		echo "$library, $framing: complete after ms: $times"
		read -r first _ _ fourth _ <<<"$times"
		case $library,$framing in
		requests,close | requests,length) holds "  all came together" "$fourth - $first < 50" ;;
		*) holds "  the first came long before the fourth" "$fourth - $first > 150" ;;
		esac
	done
done
