#!/bin/bash
# One would guess that a client of HTTPS that makes a second connection to a server resumes its TLS
# session, as browsers do, and saves the certificates and signatures of a full handshake.
#
# Of five connections requests, httpx, aiohttp and Go's http.Client resume none, and neither does
# undici, whose option maxCachedSessions is 100 by default. curl and Node's https resume four. So
# the same server costs more CPU time, and each new connection more bytes, for some clients than for
# others.
#
# requests 2.34.2, httpx 0.28.1, aiohttp 3.14.5 (PyPI), undici 7.16.0 (npm), Node 20, Go 1.26, curl
# 7.88.1, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get requests==2.34.2 urllib3==2.8.0 httpx==0.28.1 aiohttp==3.14.5
npm_get undici@7.16.0
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem \
	-out cert.pem -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
cat >serve.py <<'END'
"""serve.py PORT answers one request per connection; /count says how many sessions were resumed."""
import socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
all = resumed = 0
def serve(c):
    global all, resumed
    try:
        with context.wrap_socket(c, server_side=True) as c:
            request = b""
            while b"\r\n\r\n" not in request:
                request += c.recv(4096) or sys.exit()
            text = b"ok"
            if b"/count" in request:
                text = b"%d of %d" % (resumed, all)
                all = resumed = 0
            else:
                all += 1
                resumed += c.session_reused
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
                      % (len(text), text))
            c.unwrap()
    except OSError:
        pass
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
END
cat >ask.py <<'END'
import asyncio, ssl, sys
which, url = sys.argv[1:]
if which == "requests":
    import requests
    with requests.Session() as s:
        for _ in range(5):
            s.get(url, verify="cert.pem")
elif which == "httpx":
    import httpx
    with httpx.Client(verify=ssl.create_default_context(cafile="cert.pem")) as s:
        for _ in range(5):
            s.get(url)
else:
    import aiohttp
    async def main():
        context = ssl.create_default_context(cafile="cert.pem")
        async with aiohttp.ClientSession() as s:
            for _ in range(5):
                async with s.get(url, ssl=context) as r:
                    await r.text()
    asyncio.run(main())
END
cat >ask.mjs <<'END'
import fs from 'fs'
import https from 'https'
import { Agent, request } from 'undici'
const [which, url] = process.argv.slice(2), ca = fs.readFileSync('cert.pem')
const agent = which === 'https' ? new https.Agent({ ca, keepAlive: true })
	: new Agent({ connect: { ca } })
for (let i = 0; i < 5; i++) {
	if (which === 'undici') await (await request(url, { dispatcher: agent })).body.text()
	else await new Promise((resolve, reject) => https.get(url, { agent },
		r => r.resume().on('end', resolve)).on('error', reject))
	await new Promise(done => setTimeout(done, 100))
}
END
cat >main.go <<'END'
package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
)

func main() {
	pem, _ := os.ReadFile("cert.pem")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	for range 5 {
		response, err := client.Get(os.Args[1])
		if err != nil {
			panic(err)
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
}
END
export GOCACHE=${GOCACHE:-$dir/gocache}
CGO_ENABLED=0 go build -o ask main.go
port=$(free_port)
python3 serve.py "$port" &
wait_port "$port"
url=https://localhost:$port/
for which in requests httpx aiohttp https undici go curl; do
	case $which in
	https | undici) node ask.mjs $which "$url" ;;
	go) ./ask "$url" ;;
	curl) curl -s --cacert cert.pem "$url" "$url" "$url" "$url" "$url" >/dev/null ;;
	*) py/bin/python ask.py $which "$url" ;;
	esac
	want="0 of 5"
	case $which in https | curl) want="4 of 5" ;; esac
	expect "$which, resumed" "$want" "$(curl -s --cacert cert.pem "${url}count")"
done
