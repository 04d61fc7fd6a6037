#!/bin/bash
# One would guess that the time to the first token, of a stream whose first token comes after 2 s,
# is 2 s.
#
# Both instrumentations take the first event, in which OpenAI's API has the role and an empty text, and
# which llama.cpp's server and gateways may send at once: gen_ai.server.time_to_first_token is a few
# ms, and so is the time of OpenInference's event "First Token Stream Event".
#
# opentelemetry-instrumentation-openai 0.62.4, openinference-instrumentation-openai 0.1.66 (PyPI),
# 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get opentelemetry-instrumentation-openai==0.62.4 openinference-instrumentation-openai==0.1.66 \
	openai==3.57.0 opentelemetry-sdk==1.45.2 opentelemetry-instrumentation==0.66b2
port=$(free_port)
(echo '!2' && chunk x && printf 'data: [DONE]\n\n') >plain
role='{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
role+='"delta":{"role":"assistant","content":""}}]}'
(printf 'data: %s\n\n' "$role" && cat plain) >role
python3 "$here/events.py" "$port" &
wait_port "$port"
cat >ask.py <<'END'
import importlib, sys
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
importlib.import_module(sys.argv[2]).OpenAIInstrumentor().instrument()
import openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="x")
ask = dict(model="m", messages=[{"role": "user", "content": "x"}], stream=True)
for _ in client.chat.completions.create(**ask):
    pass
for span in spans.get_finished_spans():
    for event in span.events:
        if event.name == "First Token Stream Event":
            print((event.timestamp - span.start_time) / 1e9)
data = reader.get_metrics_data()
for metric in [m for r in (data.resource_metrics if data else []) for s in r.scope_metrics for m in s.metrics]:
    if metric.name == "gen_ai.server.time_to_first_token":
        print(metric.data.data_points[0].sum)
END
for module in opentelemetry openinference; do
	for path in plain role; do
		py/bin/python ask.py "http://127.0.0.1:$port/$path" $module.instrumentation.openai >out 2>err ||
			{ cat err && exit 1; }
		first=$(cat out)
		case $path in
		plain)
			echo "$module, the first event has the first token: $first s"
			holds "  no less than 2 s" "$first >= 2"
			;;
		role)
			echo "$module, an event with the role comes before: $first s"
			holds "  less than half of it" "$first > 0 && $first < 1"
			;;
		esac
	done
done
