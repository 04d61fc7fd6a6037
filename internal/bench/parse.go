package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// parseIperf3 reads what the server received, in bit/s, from the client's
// JSON. Bytes and time are the server's own, without the omitted part.
func parseIperf3(out []byte) (bitsPerSecond float64, err error) {
	var j struct {
		Error string `json:"error"`
		End   struct {
			Received struct {
				Bits float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(out, &j); err != nil {
		return 0, fmt.Errorf("read iperf3's output: %w", err)
	}
	if j.Error != "" {
		return 0, fmt.Errorf("iperf3: %s", j.Error)
	}
	return positive("iperf3's received rate", j.End.Received.Bits)
}

// qperfUnits are the units that qperf writes times in, in seconds.
var qperfUnits = map[string]float64{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "sec": 1}

// parseQperf reads the one-way latency in seconds: qperf divides the time by
// the number of messages in both directions, which is half a round trip.
func parseQperf(out []byte) (seconds float64, err error) {
	for line := range strings.Lines(string(out)) {
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(name) != "latency" {
			continue
		}
		f := strings.Fields(value)
		if len(f) != 2 || qperfUnits[f[1]] == 0 {
			return 0, fmt.Errorf("read qperf's output: latency %q", strings.TrimSpace(value))
		}
		n, err := strconv.ParseFloat(strings.ReplaceAll(f[0], ",", ""), 64)
		if err != nil {
			return 0, fmt.Errorf("read qperf's output: %w", err)
		}
		return positive("qperf's latency", n*qperfUnits[f[1]])
	}
	return 0, errors.New("read qperf's output: no latency in it")
}

var (
	sockperfLatency = regexp.MustCompile(`Summary: Latency is ([0-9.]+) usec`)
	sockperfDropped = regexp.MustCompile(`# dropped messages = ([0-9]+)`)
)

// parseSockperf reads the mean one-way latency in seconds: sockperf halves
// each round trip.
func parseSockperf(out []byte) (seconds float64, err error) {
	m := sockperfLatency.FindSubmatch(out)
	if m == nil {
		return 0, errors.New("read sockperf's output: no latency in it")
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return 0, fmt.Errorf("read sockperf's output: %w", err)
	}
	if m := sockperfDropped.FindSubmatch(out); m == nil || string(m[1]) != "0" {
		return 0, errors.New("read sockperf's output: it dropped messages, or does not say that it did not")
	}
	return positive("sockperf's latency", n*1e-6)
}

// parseNetperf reads the transactions a second of a test without a banner: the
// sixth number of its first line.
func parseNetperf(out []byte) (perSecond float64, err error) {
	const rate, fields = 5, 6
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	f := strings.Fields(line)
	if len(f) != fields {
		return 0, fmt.Errorf("read netperf's output: %q", line)
	}
	n, err := strconv.ParseFloat(f[rate], 64)
	if err != nil {
		return 0, fmt.Errorf("read netperf's output: %w", err)
	}
	return positive("netperf's rate", n)
}

func positive(what string, x float64) (float64, error) {
	if !(x > 0) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%s is %v", what, x)
	}
	return x, nil
}
