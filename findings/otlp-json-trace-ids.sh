#!/bin/bash
# One would guess that OTLP in JSON is read by protobuf's own JSON reader from OpenTelemetry's
# message definitions, or refused.
#
# It is read, without an error, with other IDs: OTLP writes them in hexadecimal, protobuf reads
# bytes as base64, and 32 hexadecimal digits are valid base64. 16 bytes become 24.
#
# protobuf 7.36.2, opentelemetry-proto 1.45.2 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get opentelemetry-proto==1.45.2 protobuf==7.36.2
cat >read.py <<'END'
from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
text = """{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "x",
    "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174"}]}]}]}"""
span = json_format.Parse(text, TracesData()).resource_spans[0].scope_spans[0].spans[0]
print(len(span.trace_id), span.trace_id.hex(), len(span.span_id))
END
expect "bytes of the trace ID, the ID, bytes of the span ID" \
	"24 e5bf1e7df7fbf7cd37f35d37776ebd6fadf7f35ddf73ad1c 12" "$(py/bin/python read.py)"
