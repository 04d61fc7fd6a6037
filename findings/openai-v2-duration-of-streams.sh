#!/bin/bash
# One would guess that gen_ai.client.operation.duration, of a streamed answer that takes 1 s, is 1
# s: OpenTelemetry defines it as the duration of the operation.
#
# OpenTelemetry's own instrumentation of the openai library takes the time until create() returns,
# which a streamed answer does at its headers: a few ms. The span of the same call ends with the
# stream. There is no gen_ai.client.token.usage of a stream either.
#
# opentelemetry-instrumentation-openai-v2 2.4b0, opentelemetry-util-genai 0.4b0 (PyPI),
# 2026-11-29; OpenTelemetry semantic conventions, generative AI client metrics
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get opentelemetry-instrumentation-openai-v2==2.4b0 openai==3.57.0 httpx==0.28.1 \
	opentelemetry-sdk==1.45.2 opentelemetry-util-genai==0.4b0
(chunk one && echo '!1' && chunk two && printf 'data: [DONE]\n\n') >stream
port=$(free_port)
python3 "$here/events.py" "$port" &
wait_port "$port"
cat >ask.py <<'END'
import sys
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
reader, spans = InMemoryMetricReader(), InMemorySpanExporter()
metrics.set_meter_provider(MeterProvider([reader]))
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(spans))
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
OpenAIInstrumentor().instrument()
import openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="x")
ask = dict(model="m", messages=[{"role": "user", "content": "x"}], stream=True)
for _ in client.chat.completions.create(**ask):
    pass
span = spans.get_finished_spans()[0]
found = {m.name: m.data.data_points[0].sum for r in reader.get_metrics_data().resource_metrics
         for s in r.scope_metrics for m in s.metrics}
print((span.end_time - span.start_time) / 1e9, found["gen_ai.client.operation.duration"])
print(*found)
END
py/bin/python ask.py "http://127.0.0.1:$port/stream" >out 2>err || { cat err && exit 1; }
read -r span metric < out
echo "the stream takes 1 s; span $span s, metric $metric s"
holds "the span has it" "$span > 1"
holds "the metric has less than a third" "$metric * 3 < 1"
expect "metrics" gen_ai.client.operation.duration "$(sed -n 2p out)"
