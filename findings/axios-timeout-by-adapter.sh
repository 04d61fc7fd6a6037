#!/bin/bash
# One would guess that axios' `timeout: 2000` ends a request whose answer is not complete after 2 s:
# "If the request takes longer than `timeout`, Axios aborts it", says its README.
#
# In Node it ends one whose socket is silent for 2 s. An answer that comes byte by byte is read for
# as long as it lasts, here 6 s; with `adapter: 'fetch'` the same call ends after 2 s. ofetch, which
# Nuxt uses, ends its timeout with the head of the answer, and waits even for a body that pauses for
# 6 s. got and ky end all after 2 s.
#
# axios 1.21.1, ofetch 1.5.1, got 16.1.0, ky 2.1.0 (npm), Node 20, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get axios@1.21.1 ofetch@1.5.1 got@16.1.0 ky@2.1.0
grep -q "takes longer than .timeout., Axios aborts it" node_modules/axios/README.md
cat >serve.py <<'PY'
"""serve.py PORT takes 6 s for a body: /trickle sends it byte by byte, /pause at the end."""
import socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
def serve(c):
    try:
        request = b""
        while b"\r\n\r\n" not in request:
            request += c.recv(65536) or sys.exit()
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
                  b"Content-Length: 12\r\n\r\n")
        for _ in range(12):
            if b"/trickle" in request:
                c.sendall(b"x")
            time.sleep(0.5)
        if b"/pause" in request:
            c.sendall(b"x" * 12)
    except OSError:
        pass
    c.close()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
PY
cat >ask.mjs <<'JS'
import axios from 'axios'
import got from 'got'
import ky from 'ky'
import { ofetch } from 'ofetch'
const timeout = 2000
const ask = {
	axios: url => axios.get(url, { timeout }).then(answer => answer.data),
	'axios-fetch': url => axios.get(url, { timeout, adapter: 'fetch' }).then(a => a.data),
	ofetch: url => ofetch(url, { timeout, retry: 0 }),
	got: url => got(url, { timeout: { request: timeout }, retry: { limit: 0 } }).text(),
	ky: url => ky(url, { timeout, retry: 0 }).text(),
}
for (const path of ['trickle', 'pause']) {
	const said = await Promise.all(Object.entries(ask).map(([name, f]) =>
		f(process.argv[2] + path).then(() => name + ' answered', () => name + ' ended')))
	console.log(path + ': ' + said.join(', '))
}
JS
port=$(free_port)
python3 serve.py "$port" &
wait_port "$port"
node ask.mjs "http://127.0.0.1:$port/" >seen
expect "6 s, byte by byte" \
	"axios answered, axios-fetch ended, ofetch answered, got ended, ky ended" \
	"$(sed -n 's/^trickle: //p' seen)"
expect "6 s, with a pause" "axios ended, axios-fetch ended, ofetch answered, got ended, ky ended" \
	"$(sed -n 's/^pause: //p' seen)"
