#!/bin/bash
# One would guess that an instrument has the same name in Prometheus, whichever of OpenTelemetry's
# languages it is exported from.
#
# Python's adds the unit to the name (http_server_request_duration_seconds, net_io_bytes_total),
# JavaScript's does not (http_server_request_duration, net_io_total): a query finds half of the
# services.
#
# opentelemetry-exporter-prometheus 0.66b2 (PyPI), @opentelemetry/exporter-prometheus 0.301.0 (npm),
# 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get opentelemetry-exporter-prometheus==0.66b2
npm_get @opentelemetry/exporter-prometheus@0.301.0 @opentelemetry/sdk-metrics@3.1.1
cat >export.py <<'END'
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from prometheus_client import generate_latest
meter = MeterProvider([PrometheusMetricReader()]).get_meter("m")
meter.create_histogram("http.server.request.duration", unit="s").record(0.02)
meter.create_counter("net.io", unit="By").add(1)
print(generate_latest().decode())
END
cat >export.mjs <<'END'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
const exporter = new PrometheusExporter({ preventServerStart: true })
const meter = new MeterProvider({ readers: [exporter] }).getMeter('m')
meter.createHistogram('http.server.request.duration', { unit: 's' }).record(0.02)
meter.createCounter('net.io', { unit: 'By' }).add(1)
const { resourceMetrics } = await exporter.collect()
console.log(new PrometheusSerializer().serialize(resourceMetrics))
END
names() { sed -nE 's/^# TYPE ((http|net)_[^ ]*).*/\1/p' | paste -sd' '; }
expect "Python" "http_server_request_duration_seconds net_io_bytes_total" \
	"$(py/bin/python export.py | names)"
expect "JavaScript" "http_server_request_duration net_io_total" "$(node export.mjs | names)"
