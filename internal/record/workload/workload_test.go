package workload

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestNamesAreUnique(t *testing.T) {
	var seen []string
	for _, w := range all {
		if w.Name == "" || slices.Contains(seen, w.Name) {
			t.Errorf("%q is there twice", w.Name)
		}
		seen = append(seen, w.Name)
		if sample.UDP(w.Name) != w.UDP {
			t.Errorf("the name of %s says of UDP what is not so", w.Name)
		}
	}
}

func TestMetricsAreUnique(t *testing.T) {
	if n := len(table) + len(suspects); len(metrics) != n {
		t.Errorf("%d metrics have %d rows", len(metrics), n)
	}
	for _, m := range Metrics() {
		if m.Words == "" {
			t.Errorf("%s is explained nowhere", m.Name)
		}
	}
}

func busyVisit(t *testing.T) sample.Visit {
	t.Helper()
	h := sample.NewHistogram()
	_ = h.RecordValue(1000)
	e, err := sample.Encode(h)
	if err != nil {
		t.Fatal(err)
	}
	end := sample.Party{Window: 1, Sent: 1e6, Received: 1e6, Trips: 1000, CPU: 0.5,
		TCP: sample.TCPInfo{RTT: 1e-4, Cwnd: 10}, Counts: map[string]int64{}}
	for _, n := range []string{CountZerocopy, CountZerocopyCopied, CountSends, CountSendsHeld,
		CountBeside, CountBesideNs,
		CountTokens, CountGlued, countStalls, CountEvents, CountOtherEvents,
		CountDatagrams, CountLost, CountDropped,
		CountReordered, CountDuplicates} {
		end.Counts[n] = 10
	}
	v := sample.Visit{Ends: sample.Ends{Client: end, Server: end},
		Crowd:   sample.Crowd{Rates: [][]float64{{1, 2}, {3, 4}}},
		Metered: sample.Metered{Elapsed: 1, Machine: []sample.CPU{{User: 0.5, Idle: 0.5}}},
		Timings: sample.Timings{Latency: e, Times: map[string]*sample.EncodedHisto{}},
		Foreign: sample.Foreign{Values: map[string]float64{
			valueConnect: 1, valueResponse: 1, valueRate: 1, Elapsed: 1}}}
	for name := range percentiles {
		v.Times[name] = e
	}
	v.Values[ValueLookUp], v.Values[ValueKeptExcess] = 0.001, 0.04
	for _, n := range []string{CountConnections, CountLookUp, CountPortsUsed, CountPortRange} {
		v.Client.Counts[n] = 1
	}
	for _, s := range suspects {
		v.Client.Counts[s.count] = 1
	}
	return v
}

func TestFiguresAreListed(t *testing.T) {
	v, seen := busyVisit(t), map[string]bool{RetransmissionRate: true} // of meshes
	for _, w := range all {
		got := map[string]bool{}
		for _, l := range []sample.Load{
			{}, {Options: sample.BulkOptions{Bidir: true}},
			{Options: sample.BulkOptions{Bytes: 100}},
			{Options: sample.BulkOptions{Send: "zerocopy"}}, {Options: sample.RROptions{Rate: 10}},
			{Options: sample.RROptions{Beside: true}},
			{Options: sample.UDPOptions{Rate: 1, Size: 100}},
			{Options: sample.StreamOptions{Tokens: 10, Pace: 10}},
			{Options: sample.ExecOptions{Program: &sample.Program{Client: "x {addr}"}}},
		} {
			l.Kind = w.Name
			for _, shape := range []sample.Shape{{}, {Servers: 1, Clients: 2, Procs: 2}} {
				for name := range FiguresOf(v, l, shape).Values {
					got[name], seen[name] = true, true
					if _, ok := metrics[name]; !ok {
						t.Errorf("%s: %s is not listed", w.Name, name)
					}
				}
			}
		}
		if w.Primary != "" && !got[w.Primary] || w.Rate != "" && !got[w.Rate] {
			t.Errorf("%s: %s or %s never comes", w.Name, w.Primary, w.Rate)
		}
	}
	for name := range metrics {
		if !seen[name] {
			t.Errorf("%s is listed and never comes", name)
		}
	}
}
