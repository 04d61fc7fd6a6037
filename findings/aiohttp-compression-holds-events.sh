#!/bin/bash
# One would guess that aiohttp's server, with enable_compression, passes an event on when the
# application awaits write(), as Starlette's GZipMiddleware does with what it compresses.
#
# It does not flush the compressor: the five events arrive together, with the end of the stream. A
# client that accepts neither gzip nor deflate gets each at once: curl, as it is called mostly,
# shows no fault where a browser or httpx sees one.
#
# aiohttp 3.14.5, starlette 1.10.0, uvicorn 0.54.0 (PyPI), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get aiohttp==3.14.5 starlette==1.10.0 uvicorn==0.54.0
cat >app.py <<'END'
import asyncio, sys
port, which = int(sys.argv[1]), sys.argv[2]

async def events():
    for i in range(5):
        yield b"data: %d\n\n" % i
        await asyncio.sleep(0.2)

if which == "aiohttp":
    from aiohttp import web

    async def stream(request):
        answer = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        answer.enable_compression()
        await answer.prepare(request)
        async for event in events():
            await answer.write(event)
        return answer

    app = web.Application()
    app.router.add_get("/", stream)
    web.run_app(app, host="127.0.0.1", port=port, print=None)
else:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.middleware.gzip import GZipMiddleware
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    def stream(request):
        return StreamingResponse(events(), media_type="application/x-ndjson")

    app = Starlette(routes=[Route("/", stream)])
    app.add_middleware(GZipMiddleware)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")
END
for which in aiohttp starlette; do
	port=$(free_port)
	py/bin/python app.py "$port" $which &
	wait_port "$port"
	for coding in gzip identity; do
		times=$(python3 "$here/web.py" "read" "http://127.0.0.1:$port/" "Accept-Encoding: $coding")
		read -r first _ _ _ last <<<"$times"
		echo "$which, Accept-Encoding: $coding: the events arrive after $times ms"
		if [ $which-$coding = aiohttp-gzip ]; then
			holds "the first comes with the last" "$last - $first < 100"
		else
			holds "the first comes long before the last" "$last - $first > 400"
		fi
	done
done
