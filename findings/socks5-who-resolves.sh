#!/bin/bash
# One would guess that ALL_PROXY=socks5://… means the same to all programs, at least who looks up
# the name of a server: the client, or the proxy, as `socks5h` asks for. A name that only one of the
# two sides knows, such as a container's or a service's behind `ssh -D`, depends on it.
#
# curl, requests and socks-proxy-agent look it up themselves. httpx, Go's http.Client and
# aiohttp-socks hand the name to the proxy, as they do for socks5h, which aiohttp-socks refuses.
#
# requests 2.34.2, PySocks 1.7.1, httpx 0.28.1, socksio 1.0.0, aiohttp-socks 0.12.0 (PyPI),
# socks-proxy-agent 10.1.0 (npm), curl 7.88.1 (Debian), Go 1.26, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get requests==2.34.2 pysocks==1.7.1 httpx==0.28.1 socksio==1.0.0 aiohttp==3.14.5 \
	aiohttp-socks==0.12.0
npm_get socks-proxy-agent@10.1.0
cat >proxy.py <<'END'
"""A SOCKS 5 proxy that connects nowhere: it answers an HTTP request with what it was asked for."""
import socket, threading
listener = socket.create_server(("127.0.0.1", 1080))

def serve(c):
    f = c.makefile("rb")
    if not (greeting := f.read(2)):
        return
    f.read(greeting[1])
    c.sendall(b"\5\0")
    kind = f.read(4)[3]
    if kind == 3:
        who = b"proxy"
        f.read(f.read(1)[0] + 2)
    else:
        who = b"client"
        f.read({1: 4, 4: 16}[kind] + 2)
    c.sendall(b"\5\0\0\1\0\0\0\0\0\0")
    while f.readline().strip():
        pass
    c.sendall(b"HTTP/1.0 200 X\r\nContent-Length: %d\r\n\r\n%s" % (len(who), who))
    c.close()

while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
END
cat >get.py <<'END'
import asyncio, sys, aiohttp, aiohttp_socks, httpx, requests
proxy = sys.argv[1]
url = "http://web.test/"

async def get_aiohttp():
    connector = aiohttp_socks.ProxyConnector.from_url(proxy)
    async with aiohttp.ClientSession(connector=connector) as session, session.get(url) as answer:
        return await answer.text()

print("requests", requests.get(url).text)
print("httpx", httpx.get(url).text)
try:
    print("aiohttp-socks", asyncio.run(get_aiohttp()))
except ValueError as e:
    print("aiohttp-socks", e)
END
cat >get.mjs <<'END'
import http from 'node:http'
import { SocksProxyAgent } from 'socks-proxy-agent'
http.get('http://web.test/', { agent: new SocksProxyAgent(process.argv[2]) }, answer => {
	answer.on('data', data => console.log('socks-proxy-agent', String(data)))
})
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"io"
	"net/http"
)

func main() {
	answer, err := http.Get("http://web.test/")
	if err != nil {
		panic(err)
	}
	text, _ := io.ReadAll(answer.Body)
	fmt.Println("Go", string(text))
}
END
export GOCACHE=${GOCACHE:-$dir/gocache}
CGO_ENABLED=0 go build -o get main.go
cat >run.sh <<'END'
ip link set lo up
echo 127.0.0.1 web.test >hosts
mount --bind hosts /etc/hosts
python3 proxy.py &
until (: <"/dev/tcp/127.0.0.1/1080") 2>/dev/null; do sleep 0.1; done
export http_proxy=$1 HTTP_PROXY=$1 ALL_PROXY=$1
py/bin/python get.py "$1"
node get.mjs "$1"
./get
echo "curl $(curl -s http://web.test/)"
END
for scheme in socks5 socks5h; do
	unshare -rnmpf --kill-child bash -e run.sh $scheme://127.0.0.1:1080 >seen
	for client in curl requests socks-proxy-agent httpx aiohttp-socks Go; do
		who=proxy
		case $scheme-$client in socks5-curl | socks5-requests | socks5-socks*) who=client ;; esac
		[ $scheme-$client != socks5h-aiohttp-socks ] || who="Invalid scheme component: socks5h"
		expect "$scheme, $client: looked up by" "$who" "$(sed -n "s/^$client //p" seen)"
	done
done
