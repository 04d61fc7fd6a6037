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
