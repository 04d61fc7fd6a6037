"""A relay for the scripts in this folder.

delay.py PORT TO passes each piece of data on 20 ms later, in both directions.
"""
import asyncio, sys

async def pump(reader, writer):
    loop = asyncio.get_running_loop()

    def send(data):
        if not writer.is_closing():
            writer.write(data) if data else writer.close()
    try:
        while True:
            data = await reader.read(1 << 20)
            loop.call_later(0.02, send, data)
            if not data:
                return
    except ConnectionError:
        writer.close()

async def serve(reader, writer):
    there = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))
    await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

async def listen():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()

asyncio.run(listen())
