#!/bin/bash
# One would guess that a counter that HashiCorp's go-metrics exports to Prometheus only grows while
# the process lives: increase() and rate() depend on it.
#
# One that is not incremented for a minute is no longer exported, and starts again from 0 with the
# next increment: an error every two minutes is 1 each time, so that increase() is 0 however long
# it goes on. NewPrometheusSink's options have an Expiration, 60 s by default; the sinks that scrape
# and push have 60 s and no option.
#
# github.com/hashicorp/go-metrics 0.7.0 (Go), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get github.com/hashicorp/go-metrics/prometheus@v0.7.0 \
	github.com/prometheus/client_golang/prometheus@v1.25.0
cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/hashicorp/go-metrics"
	sinks "github.com/hashicorp/go-metrics/prometheus"
	"github.com/prometheus/client_golang/prometheus"
)

func main() {
	options := sinks.DefaultPrometheusOpts
	fmt.Println(options.Expiration)
	options.Expiration = time.Second // instead of the default, to be quick
	sink, err := sinks.NewPrometheusSinkFrom(options)
	if err != nil {
		panic(err)
	}
	m, err := metrics.New(metrics.DefaultConfig("s"), sink)
	if err != nil {
		panic(err)
	}
	scrape := func() {
		families, err := prometheus.DefaultGatherer.Gather()
		if err != nil {
			panic(err)
		}
		for _, f := range families {
			if f.GetName() == "s_errors" {
				fmt.Println(f.Metric[0].Counter.GetValue())
				return
			}
		}
		fmt.Println("none")
	}
	for range 3 {
		m.IncrCounter([]string{"errors"}, 1)
	}
	scrape()
	time.Sleep(1500 * time.Millisecond)
	scrape()
	m.IncrCounter([]string{"errors"}, 1)
	scrape()
}
GO

go build -o count .
./count >seen
expect "after how long a counter is dropped by default" 1m0s "$(head -1 seen)"
expect "a counter after three errors, later, and after one more" "3, none, 1" \
	"$(sed 1d seen | sed -z 's/\n/, /g; s/, $//')"
