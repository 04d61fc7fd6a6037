#!/bin/bash
# One would guess that fetch of Node 26, which speaks HTTP/2 by default, takes about as long for a
# file of 16 MB as Node's https, or as another client of HTTP/2.
#
# Over a path with a round trip of 40 ms it takes over 2.5 s, and https 0.8 s: it keeps to a window
# of 256 KiB, which is 6 MB/s there, however quick the path is. Node 24's fetch spoke HTTP/1.1,
# whose window is TCP's, and grows.
#
# node 26.10.0 (npm), httpx 0.28.1, h2 4.4.1, hypercorn 0.18.0 (PyPI), OpenSSL 3, 2026-12-01
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get node@26.10.0
pip_get hypercorn==0.18.0 'httpx[http2]==0.28.1' h2==4.4.1
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 30 \
	-subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>openssl.log
cat >app.py <<'PY'
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    body = bytes(16_000_000 if scope["path"] == "/file" else 1)
    await send({"type": "http.response.start", "status": 200, "headers": [
        (b"content-length", b"%d" % len(body)), (b"x-version", scope["http_version"].encode())]})
    await send({"type": "http.response.body", "body": body})
PY
cat >get.mjs <<'JS'
import https from 'node:https'
const url = process.argv[2]
const agent = new https.Agent({ keepAlive: true })
const plain = path => new Promise((done, fail) => https.get(url + path, { agent }, answer => {
	let n = 0
	answer.on('data', data => { n += data.length })
	answer.on('end', () => done([answer.headers['x-version'], n]))
}).on('error', fail))
const modern = async path => {
	const answer = await fetch(url + path)
	return [answer.headers.get('x-version'), (await answer.arrayBuffer()).byteLength]
}
for (const [name, get] of Object.entries({ https: plain, fetch: modern })) {
	await get('')
	const start = performance.now()
	const got = await get('file')
	console.log(name, ...got, ((performance.now() - start) / 1000).toFixed(2))
}
process.exit()
JS
cat >get.py <<'PY'
import ssl, sys, time
import httpx
with httpx.Client(http2=True, verify=ssl.create_default_context(cafile="cert.pem")) as client:
    client.get(sys.argv[1])
    start = time.monotonic()
    answer = client.get(sys.argv[1] + "file", timeout=60)
    print("httpx", answer.headers["x-version"], len(answer.content),
          round(time.monotonic() - start, 2))
PY
near=$(free_port) far=$(free_port)
py/bin/python -m hypercorn --certfile cert.pem --keyfile key.pem -b "127.0.0.1:$near" app:app \
	>hypercorn.log 2>&1 &
python3 "$here/delay.py" "$far" "$near" &
wait_port "$near" && wait_port "$far"
NODE_EXTRA_CA_CERTS=cert.pem node_modules/.bin/node get.mjs "https://127.0.0.1:$far/" >seen
py/bin/python get.py "https://127.0.0.1:$far/" >>seen
declare -A took
while read -r who version size seconds; do
	took[$who]=$seconds
	expect "$who: HTTP, bytes" "$([ $who = https ] && echo 1.1 || echo 2) 16000000" "$version $size"
	echo "  $seconds s"
done <seen
holds "fetch took over 2.4 s, 60 round trips" "${took[fetch]} > 2.4"
holds "  over 1.5 s longer than https, and longer than httpx" \
	"${took[fetch]} > 1.5 + ${took[https]} && ${took[fetch]} > ${took[httpx]}"
