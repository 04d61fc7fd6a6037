package sentence

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/judge/gate"
	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestReasonsOfGates(t *testing.T) {
	for want, x := range map[string]gate.Reason{
		"": {},
		"netkit could not be measured: it is too old": {Code: gate.Unmeasured, Of: "netkit",
			Cause: "it is too old"},
		"the file has no ovs": {Code: gate.NoMode, Of: "ovs"},
		"the file has no latency of ovs that matches the sentence": {Code: gate.NoMatch,
			Metric: "latency", Of: "ovs"},
		"it has no result": {Code: gate.NoResult},
		"the file has no result of host to compare it with": {Code: gate.NoReference, Of: "host"},
		"it has no throughput": {Code: gate.NoMetric,
			Metric: "throughput"},
		"the run has no control, so its noise is not known": {Code: gate.NoControl},
		"too few rounds: 7 of at least 8": {Code: gate.FewRounds, Rounds: 7,
			Least: 8},
		"it is violated here, but not in again.jsonl (holds)": {Code: gate.NotConfirmed,
			Of: "again.jsonl", Seen: gate.Holds},
		"it holds here, but is violated in again.jsonl": {Code: gate.NotConfirmed,
			Of: "again.jsonl", Seen: gate.Violated},
	} {
		r := gate.Report{Rules: []gate.Rule{{Reason: x, Checks: []gate.Check{{Reason: x}}}}}
		if FillGate(&r); r.Rules[0].Why != want || r.Rules[0].Checks[0].Why != want {
			t.Errorf("%+v, want %s", r.Rules[0], want)
		}
	}
}

func TestReasonsOfDifferences(t *testing.T) {
	for want, x := range map[string]difference.Reason{
		"not measured in the old run": {Code: difference.NotInOld},
		"not measured in the new run": {Code: difference.NotInNew},
		"no result in the old run":    {Code: difference.FailedOld},
		"no result in the new run":    {Code: difference.FailedNew},
		"the load was another one: 1 stream, now 4 streams": {Code: difference.OtherLoad,
			Work: [2]string{"1 stream", "4 streams"}},
	} {
		r := difference.Report{OnlyOld: []difference.Lone{{Reason: x}},
			OnlyNew: []difference.Lone{{Reason: x}}}
		if FillDifference(&r); r.OnlyOld[0].Why != want || r.OnlyNew[0].Why != want {
			t.Errorf("%+v, want %s", r, want)
		}
	}
}

func TestUnusual(t *testing.T) {
	for want, x := range map[string]trend.Moved{
		"host has 57.0 Gbit/s from the machine itself, bulk, usually 45.5": {
			Base: trend.Base{Quantity: trend.Quantity{Label: "host", From: "host",
				Load: workload.Bulk}, Unit: "bit/s", Median: 57e9}, Usual: 45.5e9},
		"host has 29934 /s from the machine itself, requests of redis, on own CPUs, usually 21106": {
			Base: trend.Base{Quantity: trend.Quantity{Label: "host", From: "host",
				Load: workload.Exec, Work: "redis, 10 s", Pin: "far", Metric: "requests"},
				Unit: "1/s", Median: 29934}, Usual: 21106},
	} {
		if got := Unusual(x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
