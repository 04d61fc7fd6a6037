#!/bin/bash
# One would guess that Fortio's p50 of 98 requests of 0.2 ms, one of 0.1 ms and one of 0.9 ms is
# 0.2 ms.
#
# By default it is 0.496 ms, and p90 0.819 ms: all that is below 1 ms is one bucket of Fortio's
# histogram, within which it draws a straight line from the least to the largest value. A network on
# one machine answers within a millisecond. `-r 0.00001` (10 µs) has narrower buckets.
#
# fortio.org/fortio 1.75.3 (Go), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get fortio.org/fortio/stats@v1.75.3 fortio.org/fortio/periodic@v1.75.3
cat >main.go <<'END'
package main

import (
	"fmt"

	"fortio.org/fortio/periodic"
	"fortio.org/fortio/stats"
)

func main() {
	for _, resolution := range []float64{periodic.DefaultRunnerOptions.Resolution, 0.00001} {
		h := stats.NewHistogram(0, resolution)
		h.Record(0.0001)
		h.RecordN(0.0002, 98)
		h.Record(0.0009)
		fmt.Printf("%g:", resolution)
		for _, p := range h.Export().CalcPercentiles([]float64{50, 90}).Percentiles {
			fmt.Printf(" %.3f", p.Value*1000)
		}
		fmt.Println()
	}
}
END
go mod tidy 2>/dev/null
go run . >out
expect "resolution by default: p50 and p90 in ms" "0.001: 0.496 0.819" "$(sed -n 1p out)"
expect "resolution of 10 µs" "1e-05: 0.190 0.198" "$(sed -n 2p out)"
