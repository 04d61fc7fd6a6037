#!/bin/bash
# One would guess that a quantile of no values is not a number, as in Prometheus' library for Go.
#
# The Rust exporter of `metrics` prints 0 for each quantile once the last value is older than its
# window, a minute by default: a service without requests looks infinitely fast, and pulls an
# average over instances down.
#
# metrics 0.24.6, metrics-exporter-prometheus 0.18.3 (Cargo), client_golang 1.23.2 (Go), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

cargo_build 'metrics = "=0.24.6"' \
	'metrics-exporter-prometheus = { version = "=0.18.3", default-features = false }' <<'END'
use metrics_exporter_prometheus::PrometheusBuilder;
use std::{num::NonZeroU32, thread::sleep, time::Duration};

fn main() {
    let recorder = PrometheusBuilder::new()
        .set_bucket_duration(Duration::from_secs(1)).unwrap()
        .set_bucket_count(NonZeroU32::new(1).unwrap())
        .build_recorder();
    metrics::with_local_recorder(&recorder, || metrics::histogram!("latency").record(0.02));
    sleep(Duration::from_secs(3));
    print!("{}", recorder.handle().render());
}
END
go_get github.com/prometheus/client_golang/prometheus@v1.23.2
cat >main.go <<'END'
package main

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func main() {
	latency := prometheus.NewSummary(prometheus.SummaryOpts{Name: "latency",
		MaxAge: time.Second, AgeBuckets: 1, Objectives: map[float64]float64{0.99: 0.001}})
	registry := prometheus.NewRegistry()
	registry.MustRegister(latency)
	latency.Observe(0.02)
	time.Sleep(3 * time.Second)
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	summary := families[0].Metric[0].GetSummary()
	fmt.Println(summary.Quantile[0].GetValue(), summary.GetSampleCount())
}
END
expect "Go: p99, count" "NaN 1" "$(go run .)"
target/debug/finding >rust
expect "Rust: p99, count" "0 1" \
	"$(sed -nE 's/^latency(\{quantile="0.99"\}|_count) //p' rust | paste -sd' ')"
