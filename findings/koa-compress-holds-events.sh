#!/bin/bash
# One would guess that koa-compress passes on what an application streams as text/event-stream when
# it comes, as @fastify/compress does with its own, and Starlette's GZipMiddleware.
#
# It compresses the events, and does not flush: a client that accepts gzip gets all five at the end
# of the stream, one that does not (curl, as it is called mostly) each at once. Its option `gzip: {
# flush: zlib.constants.Z_SYNC_FLUSH }` ends that.
#
# koa 3.2.1, koa-compress 5.2.2, fastify 5.12.8, @fastify/compress 9.2.0 (npm), Node 20, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get koa@3.2.1 koa-compress@5.2.2 fastify@5.12.8 @fastify/compress@9.2.0
cat >serve.mjs <<'END'
import { Readable } from 'stream'
import zlib from 'zlib'
const [which, port] = process.argv.slice(2)
async function* events() {
	for (let i = 0; i < 5; i++) {
		yield Buffer.from(`data: ${i}\n\n`)
		await new Promise(done => setTimeout(done, 200))
	}
}
if (which === 'fastify') {
	const { default: Fastify } = await import('fastify')
	const { default: compress } = await import('@fastify/compress')
	const app = Fastify()
	await app.register(compress)
	app.get('/', (_, reply) => reply.type('text/event-stream').send(Readable.from(events())))
	await app.listen({ port: +port, host: '127.0.0.1' })
} else {
	const { default: Koa } = await import('koa')
	const { default: compress } = await import('koa-compress')
	const app = new Koa()
	app.use(which === 'koa' ? compress()
		: compress({ gzip: { flush: zlib.constants.Z_SYNC_FLUSH } }))
	app.use(context => {
		context.type = 'text/event-stream'
		context.body = Readable.from(events())
	})
	app.listen(port, '127.0.0.1')
}
END
for which in fastify koa koa-flush; do
	port=$(free_port)
	node serve.mjs $which "$port" &
	wait_port "$port"
	for coding in gzip identity; do
		times=$(python3 "$here/web.py" "read" "http://127.0.0.1:$port/" "Accept-Encoding: $coding")
		read -r first _ _ _ last <<<"$times"
		echo "$which, Accept-Encoding: $coding: the events arrive after $times ms"
		if [ $which-$coding = koa-gzip ]; then
			holds "  the first comes with the last" "$last - $first < 100"
		else
			holds "  the first comes long before the last" "$last - $first > 400"
		fi
	done
done
