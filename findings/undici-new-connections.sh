#!/bin/bash
# One would guess that undici, and Node's fetch, which uses it, send requests one after another on one
# connection, as Node's http does with keepAlive, while the server keeps it open.
#
# Where the server says `Keep-Alive: timeout=2`, undici opens a connection for each request, because
# it takes two seconds off; and it closes the connection after each HEAD request.
#
# undici 7.16.0 (npm), Node 20, 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get undici@7.16.0
cat >ask.mjs <<'END'
import http from 'http'
import { request } from 'undici'
let connections = 0
const server = http.createServer((_, res) =>
	res.setHeader('Content-Length', 5).end('hello'))
server.on('connection', () => connections++)
await new Promise(done => server.listen(0, '127.0.0.1', done))
const origin = `http://127.0.0.1:${server.address().port}`
const agent = new http.Agent({ keepAlive: true })
const clients = {
	undici: async method => (await request(origin, { method })).body.text(),
	fetch: async method => (await fetch(origin, { method })).text(),
	node: method => new Promise(done => http.request(origin, { method, agent },
		res => res.resume().on('end', done)).end()),
}
for (const [seconds, method] of [[5, 'GET'], [2, 'GET'], [5, 'HEAD']]) {
	const found = []
	for (const name in clients) {
		server.keepAliveTimeout = seconds * 1000
		server.closeAllConnections()
		await new Promise(done => setTimeout(done, 50))
		connections = 0
		for (let i = 0; i < 5; i++) {
			await clients[name](method)
			await new Promise(done => setTimeout(done, 20))
		}
		found.push(`${name} ${connections}`)
	}
	console.log(`${method}, kept for ${seconds} s: ${found.join(', ')}`)
}
process.exit()
END
node ask.mjs >found
expect "connections of five requests: GET, kept for 5 s" "undici 1, fetch 1, node 1" \
	"$(sed -n 's/GET, kept for 5 s: //p' found)"
expect "GET, kept for 2 s" "undici 5, fetch 5, node 1" "$(sed -n 's/GET, kept for 2 s: //p' found)"
expect "HEAD, kept for 5 s" "undici 5, fetch 5, node 1" \
	"$(sed -n 's/HEAD, kept for 5 s: //p' found)"
