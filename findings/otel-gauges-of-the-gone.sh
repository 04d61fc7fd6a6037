#!/bin/bash
# One would guess that a gauge is no longer exported for a container that has gone, once its
# callback no longer reports one, in each language of OpenTelemetry.
#
# The SDK for JavaScript goes on with the last value that it saw, of observable gauges and counters,
# as long as the process lives: round trips to what no longer exists, for which no alert on missing
# data is raised. The SDK for Python exports what the last callback reported.
#
# opentelemetry-sdk 1.45.2 (PyPI), @opentelemetry/sdk-metrics 3.1.1 (npm), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get opentelemetry-sdk==1.45.2
npm_get @opentelemetry/sdk-metrics@3.1.1 @opentelemetry/api@1.10.0
cat >run.py <<'END'
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
there = ["a", "b"]
reader = InMemoryMetricReader()
meter = MeterProvider(metric_readers=[reader]).get_meter("m")
meter.create_observable_gauge("rtt", [lambda _: [Observation(1, {"c": c}) for c in there]])
meter.create_observable_counter("bytes", [lambda _: [Observation(1, {"c": c}) for c in there]])

def show(what):
    for metric in reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics:
        print(what, metric.name, *sorted(p.attributes["c"] for p in metric.data.data_points))

show("python before")
there.remove("a")
show("python after")
END
cat >run.mjs <<'END'
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
class Reader extends MetricReader {
	async onForceFlush() {}
	async onShutdown() {}
}
const there = ['a', 'b'], reader = new Reader()
const meter = new MeterProvider({ readers: [reader] }).getMeter('m')
for (const make of [meter.createObservableGauge('rtt'), meter.createObservableCounter('bytes')])
	make.addCallback(result => there.forEach(c => result.observe(1, { c })))
const show = async what => {
	const { resourceMetrics } = await reader.collect()
	for (const metric of resourceMetrics.scopeMetrics[0].metrics)
		console.log(what, metric.descriptor.name,
			...metric.dataPoints.map(p => p.attributes.c).sort())
}
await show('js before')
there.shift()
await show('js after')
END
{ py/bin/python run.py; node run.mjs; } >seen
for language in python js; do
	after=b
	[ $language != js ] || after="a b"
	for metric in rtt bytes; do
		expect "$language, $metric of a and b" "a b" \
			"$(sed -n "s/^$language before $metric //p" seen)"
		expect "$language, when a has gone" "$after" \
			"$(sed -n "s/^$language after $metric //p" seen)"
	done
done
