#!/bin/bash
# One would guess that a request whose answer is streamed for 1 s takes 1 s of processing time,
# and is in progress until then.
#
# starlette-prometheus ends both with the headers: a few ms, and no request is in progress while it
# is streamed.
#
# starlette-prometheus 0.10.0 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get starlette-prometheus==0.10.0 starlette==1.10.0 uvicorn==0.54.0
cat >serve.py <<'END'
import asyncio, sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route
from starlette_prometheus import PrometheusMiddleware, metrics

async def answer(request):
    async def events():
        yield "data: one\n\n"
        await asyncio.sleep(1)
        yield "data: two\n\n"
    return StreamingResponse(events(), media_type="text/event-stream")

app = Starlette(routes=[Route("/answer", answer), Route("/metrics", metrics)])
app.add_middleware(PrometheusMiddleware)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
END
cat >read.py <<'END'
import sys, time, urllib.request
from prometheus_client.parser import text_string_to_metric_families
def get(path):
    return urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/{path}")
def value(name):
    for family in text_string_to_metric_families(get("metrics").read().decode()):
        for sample in family.samples:
            if sample.name == name and sample.labels["path_template"] == "/answer":
                return sample.value
start = time.monotonic()
answer = get("answer")
answer.readline()
in_progress = value("starlette_requests_in_progress")
answer.read()
print(in_progress, time.monotonic() - start,
      value("starlette_requests_processing_time_seconds_sum"))
END
port=$(free_port)
py/bin/python serve.py "$port" &
wait_port "$port"
read -r in_progress took counted < <(py/bin/python read.py "$port")
expect "requests in progress while one is streamed" 0.0 "$in_progress"
echo "it took $took s; processing time: $counted s"
holds "a third of that at most" "$counted * 3 < $took"
