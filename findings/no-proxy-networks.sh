#!/bin/bash
# One would guess that NO_PROXY=10.0.0.0/8, as containers in clusters have it, keeps a client's
# requests for http://10.1.2.3 away from the proxy, or that its manual says that it does not.
#
# It does so for requests, curl and axios. httpx, which many libraries for language models use,
# aiohttp and undici ask the proxy.
#
# requests 2.34.2, httpx 0.28.1, aiohttp 3.14.5 (PyPI), axios 1.21.1, undici 7.16.0 (npm), curl
# 7.88.1 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get httpx==0.28.1 requests==2.34.2 aiohttp==3.14.5
npm_get axios@1.21.1 undici@7.16.0
cat >serve.py <<'END'
"""serve.py ADDRESS PORT WORD answers each request with WORD, also one through a tunnel."""
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(sys.argv[3].encode())

    def do_CONNECT(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while self.rfile.readline().strip():
            pass
        self.do_GET()

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
END
cat >get.py <<'END'
import asyncio, sys, aiohttp, httpx, requests
url = sys.argv[1]

async def get_aiohttp():
    async with aiohttp.ClientSession(trust_env=True) as session, session.get(url) as answer:
        return await answer.text()

print("requests", requests.get(url).text)
print("httpx", httpx.get(url).text)
print("aiohttp", asyncio.run(get_aiohttp()))
END
cat >get.mjs <<'END'
import axios from 'axios'
import { EnvHttpProxyAgent, request } from 'undici'
const url = process.argv[2]
console.log('axios', (await axios.get(url)).data)
const { body } = await request(url, { dispatcher: new EnvHttpProxyAgent() })
console.log('undici', await body.text())
END
cat >run.sh <<'END'
ip link set lo up
ip address add 10.1.2.3/32 dev lo
python3 serve.py 10.1.2.3 8000 server &
python3 serve.py 127.0.0.1 3128 proxy &
for address in 10.1.2.3/8000 127.0.0.1/3128; do
	until (: <"/dev/tcp/$address") 2>/dev/null; do sleep 0.1; done
done
export http_proxy=http://127.0.0.1:3128 no_proxy=$1
export HTTP_PROXY=$http_proxy NO_PROXY=$1
py/bin/python get.py http://10.1.2.3:8000/
node get.mjs http://10.1.2.3:8000/
echo "curl $(curl -s http://10.1.2.3:8000/)"
END
for list in 10.0.0.0/8 10.1.2.3; do
	unshare -rnpf --kill-child bash -e run.sh "$list" >seen # ends the servers, too
	for client in requests curl axios httpx aiohttp undici; do
		case $list-$client in
		10.0.0.0/8-httpx | 10.0.0.0/8-aiohttp | 10.0.0.0/8-undici) who=proxy ;;
		*) who=server ;;
		esac
		expect "NO_PROXY=$list, $client asks the" $who "$(awk -v c=$client '$1 == c { print $2 }' seen)"
	done
done
