package gate

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	host, bridge := Name{Mode: "host"}, Name{Mode: "bridge"}
	for _, c := range []struct {
		text string
		want Sentence
	}{
		{"bridge.throughput >= 0.9 of host", Sentence{
			Mode: bridge, Metric: "throughput", Compare: ">=", Limit: 0.9, Of: host}},
		{"bridge.throughput>=90% of host", Sentence{
			Mode: bridge, Metric: "throughput", Compare: ">=", Limit: 0.9, Of: host}},
		{"  bridge.cpu ≤ 150 %  of host ", Sentence{
			Mode: bridge, Metric: "cpu", Compare: "<=", Limit: 1.5, Of: host}},
		{"bridge.latency<50µs", Sentence{Mode: bridge, Metric: "latency", Compare: "<",
			Limit: 50e-6, Unit: "s"}},
		{"bridge.latency_p99 <= 1.5 ms from container load rr",
			Sentence{Mode: bridge, Metric: "latency_p99", Compare: "<=", Limit: 1.5e-3, Unit: "s",
				From: "container", Load: "rr"}},
		{"publish-nat.throughput > 10 Gbit/s to loopback6 on docker",
			Sentence{Mode: Name{Mode: "publish-nat"}, Metric: "throughput", Compare: ">",
				Limit: 10e9, Unit: "bit/s", To: "loopback6", On: "docker"}},
		{"pod.latency <= 1.2 of host on kubernetes",
			Sentence{Mode: Name{Mode: "pod"}, Metric: "latency", Compare: "<=", Limit: 1.2,
				Of: host, On: "kubernetes"}},
		{"native.latency <= 100us on peer", Sentence{
			Mode: Name{Mode: "native"}, Metric: "latency", Compare: "<=", Limit: 100e-6, Unit: "s",
			On: "peer"}},
		{"bridge.throughput > 1 GB/s", Sentence{
			Mode: bridge, Metric: "throughput", Compare: ">", Limit: 8e9, Unit: "bit/s"}},
		{"bridge+mtu=9000+gro=on.throughput >= 1.1 of bridge",
			Sentence{Mode: Name{"bridge", "mtu=9000+gro=on"}, Metric: "throughput", Compare: ">=",
				Limit: 1.1, Of: bridge}},
		{"bridge.throughput >= 1.1 of bridge+mtu=9000",
			Sentence{Mode: bridge, Metric: "throughput", Compare: ">=", Limit: 1.1,
				Of: Name{"bridge", "mtu=9000"}}},
		{"bridge+gro=on+mtu=9000.throughput >= 1.1 of fast+links+gro=on+queues=08",
			Sentence{Mode: Name{"bridge", "mtu=9000+gro=on"}, Metric: "throughput", Compare: ">=",
				Limit: 1.1, Of: Name{"fast+links", "queues=8+gro=on"}}},
		{"fast+links.throughput >= 1.1 of fast", Sentence{Mode: Name{Mode: "fast+links"},
			Metric: "throughput", Compare: ">=", Limit: 1.1, Of: Name{Mode: "fast"}}},
		{"bridge.cpu <= 2 s/GB", Sentence{Mode: bridge, Metric: "cpu", Compare: "<=", Limit: 2e-9,
			Unit: "s/B"}},
		{"bridge.cpu <= 20us load rr", Sentence{
			Mode: bridge, Metric: "cpu", Compare: "<=", Limit: 20e-6, Unit: "s", Load: "rr"}},
		{"bridge.loss <= 0.1 pin near", Sentence{Mode: bridge, Metric: "loss", Compare: "<=",
			Limit: 0.1, Pin: sample.PinNear}},
		{"bridge.retransmits <= 10 at 16k", Sentence{Mode: bridge, Metric: "retransmits",
			Compare: "<=", Limit: 10, At: "16k"}},
		{"bridge.loss < 0.1%", Sentence{Mode: bridge, Metric: "loss", Compare: "<", Limit: 0.001,
			Unit: "1"}},
		{"bridge.loss < 0.001", Sentence{Mode: bridge, Metric: "loss", Compare: "<", Limit: 0.001}},
		{"bridge.retransmits <= 10", Sentence{
			Mode: bridge, Metric: "retransmits", Compare: "<=", Limit: 10}},
		{"bridge.transactions > 1,000 /s", Sentence{
			Mode: bridge, Metric: "transactions", Compare: ">", Limit: 1000, Unit: "1/s"}},
		{"a+b.first_token_p50 <= 1.2 of b from here",
			Sentence{Mode: Name{Mode: "a+b"}, Metric: "first_token_p50", Compare: "<=", Limit: 1.2,
				Of: Name{Mode: "b"}, From: "here"}},
		{"bridge.latency <= 1.2 of host at 16k load rr",
			Sentence{Mode: bridge, Metric: "latency", Compare: "<=", Limit: 1.2,
				Of: Name{Mode: "host"}, At: "16k", Load: "rr"}},
		{"bridge.latency <= 1.2 of host at 1400",
			Sentence{Mode: bridge, Metric: "latency", Compare: "<=", Limit: 1.2,
				Of: Name{Mode: "host"}, At: "1400"}},
		{"127.0.0.1:82.elapsed<=2 of 127.0.0.1:81 load exec", Sentence{
			Mode: Name{Mode: "127.0.0.1:82"}, Metric: "elapsed", Compare: "<=", Limit: 2,
			Of: Name{Mode: "127.0.0.1:81"}, Load: "exec"}},
		{"b.elapsed <= 90% of 2nd", Sentence{Mode: Name{Mode: "b"}, Metric: "elapsed",
			Compare: "<=", Limit: 0.9, Of: Name{Mode: "2nd"}}},
		{"bridge.tps >= 5", Sentence{Mode: bridge, Metric: "tps", Compare: ">=", Limit: 5}},
		{"bridge.p99.9 <= 5", Sentence{Mode: bridge, Metric: "p99.9", Compare: "<=", Limit: 5}},
		{"127.0.0.1:81.p99.9 <= 5", Sentence{
			Mode: Name{Mode: "127.0.0.1:81"}, Metric: "p99.9", Compare: "<=", Limit: 5}},
		{"bridge.bandwidth >= 1 GB/s", Sentence{
			Mode: bridge, Metric: "bandwidth", Compare: ">=", Limit: 1e9, Unit: "B/s"}},
		{"bridge.bandwidth >= 16 Gbit/s", Sentence{
			Mode: bridge, Metric: "bandwidth", Compare: ">=", Limit: 2e9, Unit: "B/s"}},
	} {
		c.want.Text = c.text
		got, err := Parse(c.text, Words{Modes: []string{"a+b", "b", "127.0.0.1:81", "127.0.0.1:82",
			"2nd"}, Metrics: map[string]string{"tps": "", "bandwidth": "B/s", "p99.9": ""},
			Points: []string{"1400", "16k"}})
		if got.Limit = math.Round(1e12*got.Limit) / 1e12; err != nil || got != c.want {
			t.Errorf("%q:\n got %+v, %v\nwant %+v", c.text, got, err, c.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, err, hint string }{
		{"", "at its end: it is empty",
			"for example bridge.throughput >= 0.9 of host, or publish-nat.latency_p99 <= 50us " +
				"from container load rr"},
		{"bridge", `at character 1: "bridge" is not a figure: it has no metric`,
			"bridge.throughput, bridge.latency or bridge.cpu"},
		{"brige.latency <= 5us", `at character 1: unknown mode "brige"`,
			"did you mean bridge?"},
		{"bridge.thruput >= 1", `at character 8: unknown metric "thruput"`,
			"did you mean throughput?"},
		{"bridge.p99.8 >= 1", `at character 8: unknown metric "p99.8"`,
			"did you mean p99.9?"},
		{"brige.p99.9 >= 1", `at character 1: unknown mode "brige"`,
			"did you mean bridge?"},
		{"host.docker.internal:80.elapsed >= 1",
			`at character 1: unknown mode "host.docker.internal:80"`,
			""},
		{"bridge+foo.latency <= 1s", `at character 1: unknown tune "foo"`,
			"tunes are: mtu, rmem, wmem, rmem_max, wmem_max, queues, gro, tso, nodelay, rps, " +
				"threaded, xps, bigtcp, bigtcp-container, bigtcp-lo, congestion, bridge-nf, " +
				"idle, engine, ports"},
		{"fast+links+.latency <= 1s", `at character 1: unknown tune ""`,
			"tunes are: mtu, rmem, wmem, rmem_max, wmem_max, queues, gro, tso, nodelay, rps, " +
				"threaded, xps, bigtcp, bigtcp-container, bigtcp-lo, congestion, bridge-nf, " +
				"idle, engine, ports"},
		{"bridge.latency <= 2 of bridge+mtu=1",
			`at character 24: tune "mtu=1": mtu must be from 576 to 65535`,
			"such as mtu=9000, rmem=4M, gro=on; join the settings of one variant by +: " +
				"mtu=9000+gro=on"},
		{"bridge+mtu=9000.latency <= 2 of bridge+mtu=09000",
			"at character 33: bridge+mtu=09000 is compared with itself",
			""},
		{"bridge.latency", "at its end: a comparator is missing",
			"comparators are: >=, <=, >, <"},
		{"bridge.latency => 3us", `at character 16: unknown comparator "=>"`,
			"did you mean >=?"},
		{"bridge.latency = 3us", "at character 16: a measured figure never equals a number exactly",
			"use >= or <="},
		{"bridge.throughput=>0.9 of host", `at character 18: unknown comparator "=>"`,
			"did you mean >=?"},
		{"bridge+mtu=9000.latency=<3us", `at character 24: unknown comparator "=<"`,
			"did you mean <=?"},
		{"bridge.latency==3us", "at character 15: a measured figure never equals a number exactly",
			"use >= or <="},
		{"bridge.latency=3us", "at character 15: a measured figure never equals a number exactly",
			"use >= or <="},
		{"bridge.latency 3us", `at character 16: unknown comparator "3"`,
			"comparators are: >=, <=, >, <"},
		{"bridge.latency <=", "at its end: a number is missing",
			"such as 0.9 of host, or 10 Gbit/s"},
		{"bridge.latency <= fast", `at character 19: "fast" is not a number`,
			"such as 0.9 of host, or 10 Gbit/s"},
		{"bridge.latency <= 1.2.3", `at character 19: "1.2.3" is not a number`,
			"such as 0.9 of host, or 10 Gbit/s"},
		{"bridge.latency <= 5", "at character 19: latency is in s: 5 has no unit",
			"such as 5 us, or 5 of host"},
		{"bridge.latency <= 5 parsec", `at character 21: unknown unit "parsec"`,
			"units are us, ms, Gbit/s, %, s/GB and others; a ratio is written 0.9 of host"},
		{"bridge.throughput >= 10 gbit/s", `at character 25: unknown unit "gbit/s"`,
			"did you mean Gbit/s?"},
		{"bridge.throughput >= 10mbit", `at character 24: unknown unit "mbit"`,
			"did you mean Mbit/s?"},
		{"bridge.latency <= 5 MS", `at character 21: unknown unit "MS"`,
			"did you mean ms?"},
		{"bridge.latency <= 1e400 s", "at character 19: 1e400: a number has no exponent",
			"write the number in full, or with a larger unit"},
		{"bridge.latency <= 5E-6s", "at character 19: 5E-6s: a number has no exponent",
			"write the number in full, or with a larger unit"},
		{"bridge.latency <= 5 Gbit/s", "at character 21: latency is in s, not in Gbit/s",
			"such as 5 us"},
		{"bridge.throughput <= 5 %", "at character 24: throughput is in bit/s, not in %",
			"such as 5 Gbit/s"},
		{"bridge.cpu <= 5 Gbit/s", "at character 17: cpu is in s or s/B, not in Gbit/s",
			"such as 5 s/GB"},
		{"bridge.retransmits <= 5 ms", "at character 25: retransmits is in segments, not in ms",
			"such as 5"},
		{"bridge.transactions >= 5", "at character 24: transactions is in 1/s: 5 has no unit",
			"such as 5 /s, or 5 of host"},
		{"bridge.tps >= 5 ms", "at character 17: tps is a plain number, not in ms",
			"such as 5"},
		{"bridge.bandwidth >= 5", "at character 21: bandwidth is in B/s: 5 has no unit",
			"such as 5 B/s, or 5 of host"},
		{"bridge.bandwidth >= 5 s", "at character 23: bandwidth is in B/s, not in s",
			"such as 5 B/s"},
		{"bridge.latency <= 0 of host", "at character 19: 0: a ratio is more than 0",
			""},
		{"bridge.latency <= 0.5 of", "at its end: a mode is missing after of",
			"such as of host"},
		{"bridge.latency <= 0.5 of hots", `at character 26: unknown mode "hots"`,
			"did you mean host?"},
		{"bridge.latency <= 0.5 of bridge", "at character 26: bridge is compared with itself",
			""},
		{"bridge.latency <= 5us form container", `at character 23: unknown word "form"`,
			"did you mean from?"},
		{"bridge.latency <= 5us from", "at its end: a word is missing after from",
			""},
		{"bridge.latency <= 5us from contaner", `at character 28: unknown placement "contaner"`,
			"did you mean container?"},
		{"bridge.latency <= 5us from host from host", "at character 33: from is given twice",
			""},
		{"bridge.latency <= 5µs load rrr", `at character 28: unknown load "rrr"`,
			"did you mean rr or crr?"},
		{"bridge.latency <= 5us at 16k",
			"at character 23: the run is not a sweep: it has no points",
			"leave it out, or toll compare --sweep"},
		{strings.Repeat("bridge", 1000),
			"at its end: it has 6000 bytes; it must be UTF-8 text of at most 1000",
			""},
		{"bridge.latency \xff",
			"at its end: it has 16 bytes; it must be UTF-8 text of at most 1000",
			""},
	} {
		_, err := Parse(c.text, Words{Metrics: map[string]string{
			"tps": "", "bandwidth": "B/s", "p99.9": ""}})
		var at *SyntaxError
		if !errors.As(err, &at) || !strings.HasSuffix(at.Error(), c.err) ||
			c.hint != "" && at.Hint() != c.hint {
			t.Errorf("%q: %v; want %q, hint %q", c.text, err, c.err, c.hint)
			if at != nil {
				t.Errorf("the hint is %q", at.Hint())
			}
		}
	}
}

// Any text is a sentence of finite numbers, or an error with a position in the text.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"bridge.throughput >= 0.9 of host",
		"bridge+mtu=9000.cpu<150% of host load rr", "x.latency ≤ 5 µs from here on lab to address",
		"bridge.loss < 1e9%", ". > 1 of .", "bridge.latency<=-1us", "\xff", "==",
		"bridge.latency >= 99999999999999999999999999 h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text, Words{Modes: []string{"x", "."},
			Metrics:  map[string]string{"tps": ""},
			Backends: []string{"lab"}, Points: []string{"1k"}})
		var at *SyntaxError
		switch {
		case err == nil:
			if math.IsNaN(s.Limit) || math.IsInf(s.Limit, 0) || s.Mode.Mode == "" ||
				s.Metric == "" || s.Of == s.Mode {
				t.Errorf("%q is %+v", text, s)
			}
			if OutcomeOf(1, 2, s.Compare, s.Limit) == "" {
				t.Errorf("%q has no outcome", text)
			}
		case !errors.As(err, &at) || at.At < 0 || at.At > utf8.RuneCountInString(text)+1 ||
			at.Error() == "":
			t.Errorf("%q: %v", text, err)
		default:
			_ = at.Hint()
		}
	})
}
