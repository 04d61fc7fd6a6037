package difference_test

import (
	"math"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// around returns a part whose tenths lie around its median, in µs.
func around(part string, at float64) sample.ServedPart {
	const us = 1e-6
	p := sample.ServedPart{Part: part, Mean: at * us, P50: at * us, P99: 2 * at * us,
		Max: 3 * at * us}
	for i := range 10 {
		p.Tenths = append(p.Tenths, (at+float64(i%3-1))*us)
	}
	return p
}

func TestServedDifference(t *testing.T) {
	old := &sample.Served{Requests: 1000, Followed: 10, Whole: around("", 60),
		Parts: []sample.ServedPart{around(sample.EvidenceServer, 50),
			around(sample.EvidenceTCP, 10)}}
	now := &sample.Served{Requests: 3000, Followed: 10, Whole: around("", 80.5),
		Parts: []sample.ServedPart{around(sample.EvidenceServer, 70),
			around(sample.ServedCPU, 0.5)},
		Client: &sample.ServedClient{Whole: around("", 100),
			Parts: []sample.ServedPart{around(sample.ServedSent, 5)}}}
	now.Server.Process, now.UDP = "named", true
	r := difference.JudgeServed("a", old, "b", now)
	if len(r.Settings) != 2 || r.Settings[0].What != "server" || r.Settings[1].New != "UDP" {
		t.Errorf("settings %+v", r.Settings)
	}
	if r.Old.Rate != 100 || r.New.Rate != 300 {
		t.Errorf("%v and %v requests a second", r.Old.Rate, r.New.Rate)
	}
	got := map[string]difference.ServedPart{}
	for _, p := range r.Parts {
		name := p.Part
		if p.Client {
			name = "client's " + name
		}
		got[name] = p
	}
	for name, both := range map[string][2]bool{"": {true, true}, sample.EvidenceServer: {true, true},
		sample.EvidenceTCP: {true, false}, sample.ServedCPU: {false, true},
		"client's ":                     {false, true},
		"client's " + sample.ServedSent: {false, true}} {
		if p, ok := got[name]; !ok || (p.Old != nil) != both[0] || (p.New != nil) != both[1] {
			t.Errorf("%q: %+v", name, p)
		}
	}
	if p := got[sample.EvidenceServer].Change; math.Abs(p.Median-20e-6) > 1e-9 ||
		p.Verdict != stats.Costs || p.Low > 20e-6 || p.High < 20e-6 || p.High-p.Low > 3e-6 {
		t.Errorf("the server %+v", p)
	}
	if n := len(got); n != len(r.Parts) {
		t.Errorf("%d of %d parts", n, len(r.Parts))
	}
}

// TestServedDifferenceOfFew has too few requests on either side for an interval.
func TestServedDifferenceOfFew(t *testing.T) {
	few := around(sample.EvidenceServer, 50)
	few.Tenths = nil
	of := func(p sample.ServedPart) *sample.Served {
		return &sample.Served{Requests: 50, Followed: 1, Whole: few, Parts: []sample.ServedPart{p}}
	}
	for name, both := range map[string][2]*sample.Served{
		"old": {of(few), of(around(sample.EvidenceServer, 90))},
		"new": {of(around(sample.EvidenceServer, 90)), of(few)}} {
		p := difference.JudgeServed("a", both[0], "b", both[1]).Parts[0].Change
		if p.N != 0 || p.Verdict != stats.Unclear || math.Abs(math.Abs(p.Median)-40e-6) > 1e-9 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestServedDifferenceOfNone has a part that took no time at one of the two times, one that took
// none at either, and a server that answered nothing the second time.
func TestServedDifferenceOfNone(t *testing.T) {
	none := func(part string) sample.ServedPart {
		return sample.ServedPart{Part: part, Tenths: make([]float64, 10)}
	}
	of := func(queue sample.ServedPart) *sample.Served {
		return &sample.Served{Requests: 1000, Followed: 10, Whole: around("", 60),
			Parts: []sample.ServedPart{
				around(sample.EvidenceServer, 50), none(sample.EvidenceTCP), queue}}
	}
	busy, idle := of(around(sample.EvidenceQueue, 5)), of(none(sample.EvidenceQueue))
	for name, tt := range map[string]struct {
		old, now *sample.Served
		want     stats.Verdict
	}{"gone": {busy, idle, stats.Gains}, "new": {idle, busy, stats.Costs}} {
		parts := difference.JudgeServed("a", tt.old, "b", tt.now).Parts
		if len(parts) != 3 {
			t.Fatalf("%s: %+v", name, parts)
		}
		if p := parts[1]; p.Part != sample.EvidenceQueue || p.Old == nil || p.New == nil ||
			p.Change.Verdict != tt.want {
			t.Errorf("%s: %+v", name, p)
		}
	}
	mute := of(none(sample.EvidenceQueue))
	mute.Requests, mute.Whole = 0, none("")
	for _, p := range difference.JudgeServed("a", busy, "b", mute).Parts {
		if p.New != nil {
			t.Errorf("of no requests: %+v", p)
		}
	}
}

// TestServedDifferenceOfATick has tenths that a coarse clock makes equal.
func TestServedDifferenceOfATick(t *testing.T) {
	const tick = 1e6 / 3579545 // µs, of acpi_pm
	at := func(us float64) *sample.Served {
		p := around(sample.EvidenceServer, us)
		for i := range p.Tenths {
			p.Tenths[i] = p.P50
		}
		return &sample.Served{Requests: 1000, Followed: 10, Whole: p, Parts: []sample.ServedPart{p}}
	}
	for ticks, want := range map[float64]stats.Verdict{1: stats.Unclear, 2: stats.Costs} {
		r := difference.JudgeServed("a", at(50), "b", at(50+ticks*tick))
		if p := r.Parts[0].Change; p.Verdict != want {
			t.Errorf("%v ticks: %+v", ticks, p)
		}
	}
}
