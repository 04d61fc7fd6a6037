#!/bin/bash
# One would guess that keepalive pings of Python's websockets go on while an application handles
# messages more slowly than they arrive: both ends and the network are well.
#
# With 16 messages waiting (max_queue) the library stops reading, also the answers to its own pings,
# and closes the connection after ping_timeout. The messages that were on their way are lost: here 60
# messages of 0.1 s each and pings of 1 s in place of the 20 s that are the default. Without limit
# for the queue all 60 are read.
#
# websockets 17.4 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get websockets==17.4
cat >read.py <<'END'
import asyncio
import sys
import websockets
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve


async def answer(socket):
    for i in range(60):
        await socket.send(f"token {i}")
    await socket.wait_closed()


async def main(limit):
    count = 0
    async with serve(answer, "127.0.0.1", 0, ping_interval=None) as server:
        port = server.sockets[0].getsockname()[1]
        try:
            async with connect(f"ws://127.0.0.1:{port}", max_queue=limit, ping_interval=1,
                               ping_timeout=1) as socket:
                while count < 60:
                    await socket.recv()
                    count += 1
                    await asyncio.sleep(0.1)
        except websockets.ConnectionClosedError as error:
            print(str(error).split(";")[0])
    print(count)


asyncio.run(main(int(sys.argv[1]) or None))
END
py/bin/python read.py 16 >limited
expect "max_queue=16, as by default" "sent 1011 (internal error) keepalive ping timeout" \
	"$(sed -n 1p limited)"
holds "messages are lost" "$(sed -n 2p limited) < 60"
expect "max_queue=None: messages read" 60 "$(py/bin/python read.py 0)"
