package comparison

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// limits returns what limits the throughput of all modes, or nil if there is no such thing, or if it
// is not known of some because they failed.
func limits(r *analysis.Report) []analysis.Finding {
	if slices.ContainsFunc(r.Failed, func(f analysis.Failed) bool { return f.Load == workload.Bulk }) {
		return nil
	}
	var by []string
	f := analysis.Finding{Code: Limited}
	for i, c := range r.Cells {
		if c.Load != workload.Bulk {
			continue
		}
		w := c.LimitedBy
		if c.FillsLink() {
			w = c.Link()
		}
		f.Cells = append(f.Cells, i)
		if !slices.Contains(by, w) {
			by = append(by, w)
		}
	}
	switch {
	case len(by) != 1 || by[0] == "":
		return nil
	case r.Cells[f.Cells[0]].FillsLink() && len(f.Cells) > 1:
		f.Code = HiddenByLink
	}
	return []analysis.Finding{f}
}

// undecided returns how many verdicts are unclear, and why, or nil if none is.
func undecided(r *analysis.Report) []analysis.Finding {
	var t analysis.Tally
	for _, c := range r.Cells {
		if r.Plan.OnlyUnpaced(c) {
			continue
		}
		if x := c.Metrics[c.Primary].Ratio; x != nil && !x.Undecided() {
			t.Add(x.Verdict, x.N, x.Epochs)
		}
	}
	f, ok := t.Finding()
	if !ok {
		return nil
	}
	if open, paced := unclearOnes(r); f.Code == analysis.Unclear && 2*paced > open {
		f.Code = MostlyPacing
	}
	return []analysis.Finding{f}
}

// unclearOnes returns the number of cells whose verdict is unclear, and of those whose interval was
// widened because of pacing.
func unclearOnes(r *analysis.Report) (open, paced int) {
	for _, c := range r.Cells {
		x := c.Metrics[c.Primary].Ratio
		if x == nil || x.Verdict != stats.Unclear || x.Undecided() || r.Plan.OnlyUnpaced(c) {
			continue
		}
		open++
		if slices.ContainsFunc(c.Warnings, func(w analysis.Warning) bool {
			return w.Code == analysis.Repeats
		}) {
			paced++
		}
	}
	return open, paced
}

// unpace adds to cells their ratio to the baseline without the machine's pacing, where the run
// measured both sides that way.
func (j study) unpace(cells []analysis.Cell) {
	tune := mode.Tunes(j.File.Header.Plan.Unpaced)
	if tune == "" {
		return
	}
	at := func(c sample.Cell) int {
		return slices.IndexFunc(j.Series, func(s *analysis.Series) bool { return s.Cell == c })
	}
	for n, c := range cells {
		base, ok := j.BaselineOf(max(0, at(c.Cell)))
		if c.Baseline || c.Tune != "" || !ok {
			continue
		}
		mine, its := c.Cell, j.Series[base].Cell
		mine.Tune, its.Tune = tune, tune
		i, b := at(mine), at(its)
		if i < 0 || b < 0 || j.Failed(i) || j.Failed(b) {
			continue
		}
		if x := j.Against(i, b, c.Primary, its.Name()); x.N > 0 {
			cells[n].Unpaced = &x
		}
	}
}

// relays returns, for each way out whose uploads a relay certainly makes dear, what the relay was
// measured to do, what the remedies measured beside it change, and that a container avoids it. It
// uses the first CPU placement in which that is certain.
func (j study) relays(r *analysis.Report) (out []analysis.Finding) {
	var slow []mode.Mode
	said := func(m mode.Mode) bool {
		return slices.ContainsFunc(slow, func(o mode.Mode) bool { return o.Name == m.Name })
	}
	for i, s := range j.Series {
		c := s.Cell
		m, _ := mode.Find(c.Mode)
		relay := relayOf(j.hops(c))
		b, known := j.BaselineOf(i)
		if relay == "" || c.Load != workload.Bulk || !c.To.Outside() || c.Tune != "" || c.Control ||
			!known || said(m) || j.Failed(i) || j.Failed(b) {
			continue
		}
		x := j.Against(i, b, workload.Throughput, "")
		if x.Verdict != stats.Worse || x.High > 1/Dear {
			continue
		}
		at := r.At(c)
		if at < 0 || r.Cells[at].ProxyCore == nil {
			continue
		}
		out = append(out, analysis.Finding{Code: Relayed, Cells: []int{at}, What: relay,
			N: int(packetOf(s))})
		for _, l := range j.File.Header.Plan.Remedies {
			if f, ok := j.remedied(i, l); ok {
				f.Cells = []int{at}
				out = append(out, f)
			}
		}
		slow = append(slow, m)
	}
	if j.File.Header.Plan.Baseline != string(mode.Host) {
		return out
	}
	for _, m := range slow {
		out = append(out, analysis.Finding{Code: WithoutRelay, What: string(m.Name)})
	}
	return out
}

func (j study) hops(c sample.Cell) []string {
	p, _ := j.File.Header.PathOf(c)
	return p.Hops
}

// relayOf returns the process that carries all that leaves a rootless container, or "".
func relayOf(hops []string) string {
	for _, k := range []mode.HopKind{mode.HopSlirp, mode.HopPasta, mode.HopGvisor} {
		if slices.Contains(hops, string(k)) {
			return string(k)
		}
	}
	return ""
}

// packetOf returns the largest size of the packets that the client sent, or 0 if it is not known.
func packetOf(s *analysis.Series) (n int64) {
	for _, v := range s.Visits {
		n = max(n, v.Client.TCP.Packet)
	}
	return n
}

// remedied returns the finding on the lever's effect on series i; ok is false if it does not apply.
func (j study) remedied(i int, of sample.Lever) (f analysis.Finding, ok bool) {
	c := j.Series[i].Cell
	l, known := lever.Find(of.Name)
	if !known || of.Mode != c.Mode && !slices.Contains(l.For, c.Mode) {
		return f, false
	}
	with := c
	with.Mode, with.Tune = of.Mode, of.Tune
	k := slices.IndexFunc(j.Series, func(o *analysis.Series) bool { return o.Cell == with })
	if k < 0 || j.Failed(k) {
		return f, false
	}
	x := j.Against(k, i, workload.Throughput, analysis.Label(c))
	code, judged := map[stats.Verdict]string{stats.Better: LeverHelps, stats.Worse: LeverHarms,
		stats.Same: LeverSame}[x.Verdict]
	if !judged {
		code = LeverUnclear
	}
	return analysis.Finding{Code: code, What: l.Name, Ratios: []analysis.Ratio{x}}, true
}
