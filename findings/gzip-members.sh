#!/bin/bash
# One would guess that a client of HTTP that asks for gzip decodes all of a gzip body. A gzip file
# "is a series of members" (RFC 1952, 2.2), and HTTP's coding is that format (RFC 9110, 8.4.1.3).
# Joined logs have several members, servers that compress each event by itself, and, as
# tower-http's issue 737 says, the watches of Kubernetes 1.37.
#
# Of a body of three members requests, aiohttp and Node's fetch return all. httpx returns the
# first, without an error: the rest of an answer is lost. curl 7.88 fails at the second (error 23).
#
# httpx 0.28.1, requests 2.34.2, urllib3 2.8.0, aiohttp 3.14.5 (PyPI), curl
# 7.88.1-10+deb12u14 (Debian), Node 20, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get httpx==0.28.1 requests==2.34.2 urllib3==2.8.0 aiohttp==3.14.5
cat >serve.py <<'END'
import gzip, http.server, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(3):
            member = gzip.compress(b"%d\n" % i)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(member), member))
            time.sleep(0.1)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
cat >get.py <<'END'
import asyncio, sys, aiohttp, httpx, requests
url = sys.argv[1]

async def get_aiohttp():
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return await answer.read()

for get in (lambda: requests.get(url).content, lambda: httpx.get(url).content,
            lambda: asyncio.run(get_aiohttp())):
    try:
        print(*get().decode().split())
    except Exception as e:
        print(type(e).__name__)
END
port=$(free_port)
python3 serve.py "$port" &
wait_port "$port"
url=http://127.0.0.1:$port/
py/bin/python get.py "$url" >python
expect "requests" "0 1 2" "$(sed -n 1p python)"
expect "aiohttp" "0 1 2" "$(sed -n 3p python)"
expect "Node's fetch" "0 1 2" \
	"$(node -e "fetch('$url').then(a => a.text()).then(t => process.stdout.write(t))" | paste -sd ' ')"
expect "httpx" "0" "$(sed -n 2p python)"
expect "curl --compressed, and its status" "0 23" "$({
	curl -s --compressed "$url" && echo 0 || echo $?
} | paste -sd ' ')"
