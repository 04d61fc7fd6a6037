#!/bin/bash
# One would guess that a service whose answers take a tenth of a millisecond has a mean duration of
# a tenth of a millisecond in OpenTelemetry's histogram, whose values are floating-point numbers.
#
# The instrumentations of Python's web frameworks round each duration to whole milliseconds before
# they record it, unless OTEL_SEMCONV_STABILITY_OPT_IN asks for the newer name: of 300 quick answers
# nearly all are 0, and so is the p50. With "http/dup" the same answers are recorded under both
# names: none of those in http.server.request.duration is 0.
#
# opentelemetry-instrumentation-wsgi and -asgi 0.66b2, opentelemetry-sdk 1.45.2 (PyPI), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get opentelemetry-sdk==1.45.2 opentelemetry-instrumentation-wsgi==0.66b2 \
	opentelemetry-instrumentation-asgi==0.66b2
cat >ask.py <<'PY'
"""ask.py WHICH prints each histogram's name, its values, and how many are 0 (its first bound)."""
import asyncio, sys
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))
if sys.argv[1] == "wsgi":
    from opentelemetry.instrumentation.wsgi import OpenTelemetryMiddleware

    def application(environ, start_response):
        start_response("200 OK", [])
        return [b"ok"]

    application = OpenTelemetryMiddleware(application)
    environ = {"REQUEST_METHOD": "GET", "SERVER_NAME": "x", "SERVER_PORT": "80", "PATH_INFO": "/",
               "wsgi.url_scheme": "http", "SERVER_PROTOCOL": "HTTP/1.1"}
    for _ in range(300):
        list(application(dict(environ), lambda *_: None))
else:
    from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware

    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_):
        pass

    async def main():
        scope = {"type": "http", "method": "GET", "path": "/", "scheme": "http", "headers": [],
                 "http_version": "1.1", "query_string": b"", "server": ("x", 80)}
        ask = OpenTelemetryMiddleware(application)
        for _ in range(300):
            await ask(dict(scope), receive, send)

    asyncio.run(main())
for resource in reader.get_metrics_data().resource_metrics:
    for scope in resource.scope_metrics:
        for metric in scope.metrics:
            if metric.name.endswith("duration"):
                [point] = metric.data.data_points
                zeros = point.bucket_counts[0] if point.min == 0 else 0
                print(metric.name, point.count, zeros)
PY
zeros() { sed -n "$1p" seen | cut -d' ' -f3; }
for which in wsgi asgi; do
	py/bin/python ask.py $which >seen
	expect "$which, by default, values" "http.server.duration 300" "$(cut -d' ' -f1,2 seen)"
	holds "  that are 0 ms: $(zeros 1)" "$(zeros 1) > 200"
	OTEL_SEMCONV_STABILITY_OPT_IN=http/dup py/bin/python ask.py $which | sort >seen
	expect "$which, under both names, values" \
		"http.server.duration 300, http.server.request.duration 300" \
		"$(cut -d' ' -f1,2 seen | sed -z 's/\n/, /; s/\n$//')"
	holds "  that are 0 ms: $(zeros 1)" "$(zeros 1) > 200"
	expect "  that are 0 s" 0 "$(zeros 2)"
done
