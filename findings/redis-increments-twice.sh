#!/bin/bash
# One would guess that an incr() whose connection breaks before the answer is an error, which tells
# that the counter may have been incremented, or that it was incremented once.
#
# node-redis raises an error, and the counter is 1. ioredis connects again, sends INCR again, and
# returns 2: it repeats commands that were not answered, of any kind. The option is
# autoResendUnfulfilledCommands, on by default.
#
# ioredis 6.0.0, redis 6.3.1 (npm), redis-server 7.0.15-1~deb12u10 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get redis-server=5:7.0.15-1~deb12u10 redis-tools=5:7.0.15-1~deb12u10 liblzf1=3.6-3 \
	libjemalloc2=5.3.0-1 liblua5.1-0=5.1.5-9 lua-bitop=1.0.2-7 lua-cjson=2.1.0+dfsg-2.2 \
	libhiredis0.14=0.14.1-3 libatomic1=12.2.0-14+deb12u1
npm_get ioredis@6.0.0 redis@6.3.1
cat >relay.py <<'END'
"""relay.py PORT TO passes connections on, but ends the first that has INCR instead of answering."""
import asyncio, sys
lost = False

async def serve(reader, writer):
    global lost
    there = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))
    asked = False

    async def up():
        nonlocal asked
        while data := await reader.read(65536):
            asked |= b"incr" in data.lower() and not lost
            there[1].write(data)
        there[1].close()

    async def down():
        global lost
        while data := await there[0].read(65536):
            if asked and not lost:
                lost = True
                break
            writer.write(data)
        writer.close()
    await asyncio.gather(up(), down(), return_exceptions=True)

async def listen():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()

asyncio.run(listen())
END
export LD_LIBRARY_PATH=$(echo "$dir"/root/usr/lib/*-linux-gnu)
server=$(free_port)
root/usr/bin/redis-server --port "$server" --bind 127.0.0.1 --save '' >redis.log &
wait_port "$server"
cat >ioredis.mjs <<'END'
import Redis from 'ioredis'
const [port, name] = process.argv.slice(2)
const client = new Redis(Number(port))
client.on('error', () => {})
console.log(await client.incr(name).catch(() => 'error'))
process.exit()
END
cat >node-redis.mjs <<'END'
import { createClient } from 'redis'
const [port, name] = process.argv.slice(2)
const client = createClient({ url: `redis://127.0.0.1:${port}` })
client.on('error', () => {})
await client.connect()
console.log(await client.incr(name).catch(() => 'error'))
process.exit()
END
for client in node-redis ioredis; do
	port=$(free_port) want="error, 1"
	python3 relay.py "$port" "$server" &
	wait_port "$port"
	said=$(timeout 60 node $client.mjs "$port" $client)
	[ $client != ioredis ] || want="2, 2"
	expect "$client: incr(), and the counter" "$want" \
		"$said, $(root/usr/bin/redis-cli -p "$server" get $client)"
done
