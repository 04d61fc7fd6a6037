package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// parseIperf3 returns what the server received, in bit/s, by the server's own bytes and time,
// without the omitted part.
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
	return Positive("iperf3's received rate", j.End.Received.Bits)
}

// qperf's time per message, in both directions, is the one-way latency.
func parseQperf(out []byte) (seconds float64, err error) {
	for line := range strings.Lines(string(out)) {
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(name) != "latency" {
			continue
		}
		f := strings.Fields(value)
		if len(f) != 2 {
			return 0, fmt.Errorf("read qperf's output: latency %q", strings.TrimSpace(value))
		}
		u, err := units.ParseUnit(f[1])
		if err != nil || u.Base != "s" {
			return 0, fmt.Errorf("read qperf's output: latency %q", strings.TrimSpace(value))
		}
		n, err := units.ParseNumber(f[0], u.Scale)
		if err != nil {
			return 0, fmt.Errorf("read qperf's output: %w", err)
		}
		return Positive("qperf's latency", n)
	}
	return 0, errors.New("read qperf's output: no latency in it")
}

var (
	sockperfLatency = regexp.MustCompile(`Summary: Latency is ([0-9.]+) usec`)
	sockperfDropped = regexp.MustCompile(`# dropped messages = ([0-9]+)`)
)

// sockperf halves each round trip.
func parseSockperf(out []byte) (seconds float64, err error) {
	m := sockperfLatency.FindSubmatch(out)
	if m == nil {
		return 0, errors.New("read sockperf's output: no latency in it")
	}
	n, err := units.ParseNumber(string(m[1]), 1e-6)
	if err != nil {
		return 0, fmt.Errorf("read sockperf's output: %w", err)
	}
	if m := sockperfDropped.FindSubmatch(out); m == nil || string(m[1]) != "0" {
		return 0,
			errors.New(
				"read sockperf's output: it dropped messages, or does not say that it did not")
	}
	return Positive("sockperf's latency", n)
}

// The transactions per second are the sixth number of the first line of a test without a banner.
func parseNetperf(out []byte) (perSecond float64, err error) {
	const rate, fields = 5, 6
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	f := strings.Fields(line)
	if len(f) != fields {
		return 0, fmt.Errorf("read netperf's output: %q", line)
	}
	n, err := units.ParseNumber(f[rate], 1)
	if err != nil {
		return 0, fmt.Errorf("read netperf's output: %w", err)
	}
	return Positive("netperf's rate", n)
}

// Positive returns an error unless x is positive.
func Positive(what string, x float64) (float64, error) {
	if !(x > 0) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%s is %v", what, x)
	}
	return x, nil
}
