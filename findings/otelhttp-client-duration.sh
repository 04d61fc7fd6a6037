#!/bin/bash
# One would guess that OpenTelemetry's histogram http.client.request.duration has the duration of
# the span of the same request, as its conventions ask.
#
# Of an event stream that lasts a second Go's span lasts a second, and the histogram has about a
# millisecond: the one ends with the body, the other with the headers. A percentile of the
# histogram is a time to the first byte.
#
# go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp 0.72.0 (Go), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp@v0.72.0 \
	go.opentelemetry.io/otel/sdk/metric@v1.47.0 go.opentelemetry.io/otel/sdk@v1.47.0
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func main() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 11 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			time.Sleep(100 * time.Millisecond)
		}
	}))
	defer server.Close()
	spans := tracetest.NewSpanRecorder()
	reader := metric.NewManualReader()
	client := http.Client{Transport: otelhttp.NewTransport(nil,
		otelhttp.WithTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(spans))),
		otelhttp.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))}
	response, err := client.Get(server.URL)
	if err != nil {
		panic(err)
	}
	io.Copy(io.Discard, response.Body)
	response.Body.Close()
	span := spans.Ended()[0]
	fmt.Println("span", span.EndTime().Sub(span.StartTime()).Seconds())
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		panic(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name == "http.client.request.duration" {
			fmt.Println("histogram", m.Data.(metricdata.Histogram[float64]).DataPoints[0].Sum)
		}
	}
}
END
go mod tidy 2>/dev/null
go build -o ask .
seen=$(./ask)
echo "$seen"
holds "the span lasts over 1 s" "$(awk '/span/ { print $2 }' <<<"$seen") > 1"
holds "the histogram has under 0.5 s" "$(awk '/histogram/ { print $2 }' <<<"$seen") < 0.5"
