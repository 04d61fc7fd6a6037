#!/bin/bash
# One would guess that a proxy made with a library for Node closes its connection to the server when
# its client hangs up, so that a language model stops to work for nobody.
#
# http-proxy, the oldest of them, does not, whether the client leaves before the answer or within an
# event stream: it waits for an event that Node does not emit any more once the request has been
# read (http-party/node-http-proxy pull request 1580, open since 2022). @fastify/http-proxy closes
# the connection within a stream, not before the first byte. The four others always close it.
#
# http-proxy 1.18.1, http-proxy-middleware 4.2.1, http-proxy-3 2.0.1, httpxy 0.5.6,
# express-http-proxy 2.1.2, @fastify/http-proxy 11.6.3 (npm), Node 20, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get http-proxy@1.18.1 http-proxy-middleware@4.2.1 http-proxy-3@2.0.1 httpxy@0.5.6 \
	express-http-proxy@2.1.2 express@5.3.0 @fastify/http-proxy@11.6.3 fastify@5.12.8
cat >try.mjs <<'END'
import http from 'node:http'
import express from 'express'
import expressProxy from 'express-http-proxy'
import fastify from 'fastify'
import fastifyProxy from '@fastify/http-proxy'
import httpProxy from 'http-proxy'
import * as proxy3 from 'http-proxy-3'
import * as httpxy from 'httpxy'
import { createProxyMiddleware } from 'http-proxy-middleware'

process.on('uncaughtException', e => console.error(e))
const sleep = ms => new Promise(done => setTimeout(done, ms))
const listen = server => new Promise(done =>
	server.listen(0, '127.0.0.1', () => done(server.address().port)))
let client, outcome
// The server answers after 3 s, or sends an event each 100 ms for 3 s.
const target = 'http://127.0.0.1:' + await listen(http.createServer(async (req, res) => {
	const tell = outcome
	setTimeout(() => client.destroy(), 300)
	let open = true
	res.on('close', () => { if (open) tell('closed') })
	req.resume()
	if (req.url == '/events') {
		for (let i = 0; i < 30 && open; i++) {
			res.write(`data: ${i}\n\n`)
			await sleep(100)
		}
	} else await sleep(3000)
	open = false
	tell('worked on')
	res.end('answer')
}))
const plain = make => {
	const proxy = make({ target })
	proxy.on('error', () => {})
	return http.createServer((req, res) => proxy.web(req, res)?.catch?.(() => {}))
}
const app = fastify()
app.register(fastifyProxy, { upstream: target })
const proxies = {
	'http-proxy': plain(httpProxy.createProxyServer),
	'http-proxy-3': plain(proxy3.createProxyServer),
	'httpxy': plain(httpxy.createProxyServer),
	'http-proxy-middleware': http.createServer(
		express().use(createProxyMiddleware({ target, logger: undefined }))),
	'express-http-proxy': http.createServer(express().use(expressProxy(target))),
	'@fastify/http-proxy': (await app.ready(), app.server),
}
for (const [name, server] of Object.entries(proxies)) {
	const port = await listen(server)
	for (const [path, method] of [['/events', 'POST'], ['/late', 'POST'], ['/late', 'GET']]) {
		const ended = new Promise(done => { outcome = done })
		client = http.request({ port, host: '127.0.0.1', path, method, agent: false })
		client.on('error', () => {})
		client.on('response', res => res.on('error', () => {}).resume())
		client.end(method == 'POST' ? 'prompt' : undefined)
		console.log(name, method, path, await ended)
	}
}
process.exit()
END
node try.mjs >seen
while IFS='|' read -r name want; do
	expect "$name, left in a stream, before the answer to a POST, to a GET; the server" "$want" \
		"$(sed -n "s|^$name [A-Z]* /[a-z]* ||p" seen | paste -sd,)"
done <<'END'
http-proxy|worked on,worked on,worked on
http-proxy-middleware|closed,closed,closed
express-http-proxy|closed,closed,closed
http-proxy-3|closed,closed,closed
httpxy|closed,closed,closed
@fastify/http-proxy|closed,worked on,worked on
END
