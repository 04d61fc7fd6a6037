"""A server and a client of HTTP for the scripts in this folder.

web.py serve PORT
    /events?framing=chunked&gap=100&size=9: five events, gap milliseconds apart;
        framing is chunked, close (ends by closing) or length (Content-Length)
    /answer?status=200&delay=0&framing=length: a short answer after delay milliseconds;
        interim=103 sends that status before it waits;
        drop=1 closes instead if it is the second on its connection
    /count: how many /answer requests came since the last /count
web.py read URL [HEADER: VALUE]
    prints after how many milliseconds each event of an answer was complete
"""
import asyncio
import http.client
import re
import sys
import time
import urllib.parse
import zlib


def head(status, framing, length):
    lines = {"chunked": "Transfer-Encoding: chunked", "close": "Connection: close",
             "length": f"Content-Length: {length}"}
    kind = "text/event-stream" if length != 5 else "text/plain"
    return f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n{lines[framing]}\r\n\r\n".encode()


def piece(framing, data):
    return b"%x\r\n%s\r\n" % (len(data), data) if framing == "chunked" else data


count = 0


async def serve(reader, writer):
    global count
    here = 0
    try:
        while True:
            request = (await reader.readuntil(b"\r\n\r\n")).decode()
            if "100-continue" in request:
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            if body := re.search(r"(?i)\ncontent-length: (\d+)", request):
                await reader.readexactly(int(body[1]))
            url = urllib.parse.urlsplit(request.split()[1])
            option = dict(urllib.parse.parse_qsl(url.query))
            framing = option.get("framing", "chunked" if url.path == "/events" else "length")
            if url.path == "/events":
                size, gap = int(option.get("size", 9)), int(option.get("gap", 100))
                writer.write(head(200, framing, 5 * size))
                for i in range(5):
                    await asyncio.sleep(gap / 1000 if i else 0)
                    writer.write(piece(framing, b"data: %d%s\n\n" % (i, b"x" * (size - 9))))
                    await writer.drain()
            elif url.path == "/count":
                framing, text = "length", b"%d\n" % count
                writer.write(head(200, framing, len(text)) + text)
                count = 0
            else:
                count, here = count + 1, here + 1
                if "drop" in option and here == 2:
                    break
                if "interim" in option:
                    writer.write(b"HTTP/1.1 %s X\r\n\r\n" % option["interim"].encode())
                    await writer.drain()
                await asyncio.sleep(float(option.get("delay", 0)) / 1000)
                writer.write(head(option.get("status", 200), framing, 5))
                writer.write(piece(framing, b"hello"))
            if framing == "chunked":
                writer.write(b"0\r\n\r\n")
            await writer.drain()
            if framing == "close":
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def listen(port):
    async with await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024) as server:
        await server.serve_forever()


def read(url, *headers):
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    start = time.monotonic()
    connection.request("GET", f"{parts.path}?{parts.query}",
                       headers=dict(h.split(": ") for h in headers))
    answer, ended, text = connection.getresponse(), [], b""
    gzip = zlib.decompressobj(31) if answer.getheader("Content-Encoding") == "gzip" else None
    while data := answer.read1(65536):
        text += gzip.decompress(data) if gzip else data
        now = round((time.monotonic() - start) * 1000)
        ended += [now] * (text.count(b"\n\n") - len(ended))
    print(*ended)


if sys.argv[1] == "serve":
    try:
        asyncio.run(listen(int(sys.argv[2])))
    except KeyboardInterrupt:
        pass
else:
    read(*sys.argv[2:])
