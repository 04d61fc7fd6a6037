package comparison

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// relays returns, for each way out whose uploads a relay certainly makes dear, what the relay was
// measured to do, what the remedies measured beside it change, and how a container avoids it. It
// uses the first CPU placement in which that is certain.
func (j study) relays(r *analysis.Report) (out []string) {
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
		if x.Verdict != stats.Worse || x.High > 1/dear {
			continue
		}
		at := slices.IndexFunc(r.Cells, func(o analysis.Cell) bool { return o.Cell == c })
		if at < 0 || r.Cells[at].ProxyCore == nil {
			continue
		}
		out = append(out, j.whyRelayed(r.Cells[at], relay, s))
		for _, l := range j.File.Header.Plan.Remedies {
			out = append(out, j.remedied(i, l)...)
		}
		slow = append(slow, m)
	}
	if j.File.Header.Plan.Baseline != string(mode.Host) {
		return out
	}
	return append(out, hostForTheJob(slow)...)
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

func (j study) whyRelayed(c analysis.Cell, relay string, s *analysis.Series) string {
	packets := "each packet"
	if n := packetOf(s); n > 0 {
		packets = fmt.Sprintf("each packet, of at most %d bytes,", n)
	}
	const giga = 1e9
	return fmt.Sprintf("Over %s%s %s passes the process %s, which uses %.0f %% of a CPU and takes "+
		"%s s of CPU time for each GB.", c.Label(), j.onPin(s.Cell), packets, relay,
		100*c.ProxyCore.Median, units.Digits(giga*c.CPU.Proxy))
}

// packetOf returns the largest size of the packets that the client sent, or 0 if it is not known.
func packetOf(s *analysis.Series) (n int64) {
	for _, v := range s.Visits {
		n = max(n, v.Client.TCP.Packet)
	}
	return n
}

// remedied returns a sentence on the lever's effect on series i, or nil if it does not apply.
func (j study) remedied(i int, of sample.Lever) []string {
	c := j.Series[i].Cell
	l, known := lever.Find(of.Name)
	if !known || of.Mode != c.Mode && !slices.Contains(l.For, c.Mode) {
		return nil
	}
	with := c
	with.Mode, with.Tune = of.Mode, of.Tune
	k := slices.IndexFunc(j.Series, func(o *analysis.Series) bool { return o.Cell == with })
	if k < 0 || j.Failed(k) {
		return nil
	}
	x := j.Against(k, i, workload.Throughput, analysis.Label(c))
	gist := printable.Capital(l.Gist)
	switch x.Verdict {
	case stats.Better:
	case stats.Worse:
		return []string{fmt.Sprintf("%s does not help: %s of its throughput.", gist, x)}
	case stats.Same:
		return []string{gist + " makes no difference."}
	default:
		return []string{fmt.Sprintf("Whether %s helps is unclear.", l.Gist)}
	}
	m, _ := mode.Find(c.Mode)
	text := fmt.Sprintf("%s gives %s of its throughput", gist, x)
	if how := l.Command(m.Engine()); how != "" {
		text += ": " + how
	}
	text += "."
	if l.Mode != "" {
		return []string{text + " It gives up " + l.GivesUp + "."}
	}
	return []string{text + " It may harm " + l.Harms + "."}
}

// hostForTheJob returns how a container of the modes' engines does without the relay.
func hostForTheJob(modes []mode.Mode) (out []string) {
	l, _ := lever.Find(string(mode.Host))
	for _, m := range modes {
		text := fmt.Sprintf("Without a relay: %s; it gives up %s.", l.Command(m.Engine()), l.GivesUp)
		if why := l.Refuses(m.Name); why != "" {
			text = strings.TrimSuffix(text, ".") + ", and " + why + "."
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
