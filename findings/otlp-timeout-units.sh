#!/bin/bash
# One would guess that OTEL_EXPORTER_OTLP_TIMEOUT=300 gives each export 300 ms: OpenTelemetry's
# specification, for all languages, has milliseconds.
#
# Python's exporters take seconds: an export to a collector that does not answer blocks for five
# minutes, and for almost three hours with the specification's default, 10000. 0.3 gives 300 ms.
#
# opentelemetry-exporter-otlp-proto-http 1.45.2 (PyPI), 2026-11-29; OpenTelemetry specification,
# environment variables of exporters (timeouts are in milliseconds)
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get opentelemetry-exporter-otlp-proto-http==1.45.2
cat >serve.py <<'END'
import socket, sys
listener, clients = socket.create_server(("127.0.0.1", int(sys.argv[1]))), []
while True:
    clients.append(listener.accept())
END
cat >export.py <<'END'
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
span = provider.get_tracer("x").start_span("x")
print("exports", flush=True)
span.end()
print("done", flush=True)
END
port=$(free_port)
python3 serve.py "$port" &
wait_port "$port"
export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:$port
# ask TIMEOUT prints what the program says within 20 s.
ask() { OTEL_EXPORTER_OTLP_TIMEOUT=$1 timeout 20 py/bin/python export.py 2>err | xargs || true; }
expect "0.3" "exports done" "$(ask 0.3)"
expect "300, within 20 s" "exports" "$(ask 300)"
