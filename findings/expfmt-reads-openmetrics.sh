#!/bin/bash
# One would guess that Prometheus' library for Go, asked for a decoder by the Content-Type of a
# scrape, decodes OpenMetrics or says that it does not: ResponseFormat returns what it found in the
# header, and NewDecoder takes it.
#
# It decodes OpenMetrics as the older text, which it takes for each format that it does not know,
# without an error, although the same library writes OpenMetrics. A time in seconds, 1700000000, is
# one in milliseconds, of January 1970. Counters have no type any more, nor help: OpenMetrics
# declares "requests" and names its sample "requests_total". Histograms are right.
#
# github.com/prometheus/common 0.72.0 (Go), prometheus-client 0.26.0 (PyPI), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get prometheus-client==0.26.0
go_get github.com/prometheus/common/expfmt@v0.72.0 github.com/prometheus/client_model/go@v0.6.3
cat >serve.py <<'PY'
"""serve.py PORT serves metrics of Prometheus' client for Python."""
import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server
from prometheus_client import CollectorRegistry, Histogram, make_wsgi_app
from prometheus_client.core import CounterMetricFamily

class Requests:
    def collect(self):
        family = CounterMetricFamily("requests", "Requests.")
        family.add_metric([], 5, timestamp=1700000000)
        yield family

class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass

registry = CollectorRegistry()
registry.register(Requests())
Histogram("seconds", "Times.", buckets=[1], registry=registry).observe(0.5)
app = make_wsgi_app(registry)
make_server("127.0.0.1", int(sys.argv[1]), app, handler_class=Quiet).serve_forever()
PY
cat >main.go <<'GO'
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

func main() {
	request, _ := http.NewRequest("GET", os.Args[1], nil)
	request.Header.Set("Accept", os.Args[2])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	decoder := expfmt.NewDecoder(response.Body, expfmt.ResponseFormat(response.Header))
	for {
		var family dto.MetricFamily
		if err := decoder.Decode(&family); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			fmt.Println("error", err)
			return
		}
		metric := family.Metric[0]
		switch family.GetName() {
		case "requests_total":
			fmt.Println("counter", family.GetType(), time.UnixMilli(metric.GetTimestampMs()).UTC().Year())
		case "seconds":
			fmt.Println("histogram", family.GetType(), metric.Histogram.GetSampleCount())
		}
	}
}
GO
go build -o scrape .
port=$(free_port)
py/bin/python serve.py "$port" &
wait_port "$port"
for format in text/plain application/openmetrics-text; do
	./scrape "http://127.0.0.1:$port/metrics" "$format" | sort >seen
	want="counter COUNTER 2023"
	[ "$format" = text/plain ] || want="counter UNTYPED 1970"
	expect "$format, of a counter at a time in 2023" "$want" "$(sed -n 1p seen)"
	expect "$format" "histogram HISTOGRAM 1" "$(sed -n 2p seen)"
done
