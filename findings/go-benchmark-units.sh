#!/bin/bash
# One would guess that what reads Go's benchmark format reads the units of testing.B's ReportMetric,
# or says that it does not.
#
# golang.org/x/tools/benchmark/parse returns a benchmark that measured nothing, and no error, unless
# a line has ns/op, MB/s, B/op or allocs/op; what is built on it sees no "sec/op" or "p99-sec/op".
# golang.org/x/perf/benchfmt, on which benchstat is built, returns each unit with its value.
#
# golang.org/x/tools 0.52.0, golang.org/x/perf 0.0.0-20260908200009-22c9c6c9d4da (Go), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get golang.org/x/tools@v0.52.0 \
	golang.org/x/perf@v0.0.0-20260908200009-22c9c6c9d4da
mkdir bench
cat >bench/bench_test.go <<'END'
package bench

import "testing"

func BenchmarkTrip(b *testing.B) {
	for b.Loop() {
	}
	b.ReportMetric(0, "ns/op") // not reported
	b.ReportMetric(0.000125, "sec/op")
	b.ReportMetric(0.0005, "p99-sec/op")
}
END
cat >main.go <<'END'
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/tools/benchmark/parse"
)

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	set, err := parse.ParseSet(bytes.NewReader(text))
	for _, b := range set["BenchmarkTrip"] {
		fmt.Printf("error %v, %v ns/op, measured %d\n", err, b.NsPerOp, b.Measured)
	}
	reader := benchfmt.NewReader(bufio.NewReader(bytes.NewReader(text)), "x")
	for reader.Scan() {
		if r, ok := reader.Result().(*benchfmt.Result); ok {
			fmt.Printf("%v %s, %v %s\n", r.Values[0].Value, r.Values[0].Unit,
				r.Values[1].Value, r.Values[1].Unit)
		}
	}
}
END
go mod tidy 2>/dev/null
go build -o read .
go test -bench . -benchtime 10x -cpu 1 ./bench >text
cat text
./read text >seen
expect "x/tools/benchmark/parse" "error <nil>, 0 ns/op, measured 0" "$(sed -n 1p seen)"
expect "x/perf/benchfmt" "0.0005 p99-sec/op, 0.000125 sec/op" "$(sed -n 2p seen)"
