package comparison

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// clause is a cell against the baseline, with a verb: "has 95 % (93–97) of the throughput".
func clause(r *analysis.Report, c analysis.Cell) string {
	m, noun := c.Metrics[c.Primary], nounOf(r, c)
	if cpu := c.Metrics[workload.CPUPerByte].Ratio; c.FillsWire() && cpu != nil {
		return fmt.Sprintf("fills the wire, with %s of the CPU time", cpu.Percent())
	}
	switch {
	case m.Ratio.Verdict == stats.Unclear:
		return fmt.Sprintf("has %s of the %s", m.Ratio.Range(), noun)
	case m.Ratio.Verdict == stats.Same:
		return "has the same " + noun
	case m.Price != nil && m.Ratio.Verdict == stats.Worse:
		return fmt.Sprintf("adds %s to the %s", m.Price.Amount(), noun)
	case m.Price != nil:
		return fmt.Sprintf("takes %s off the %s", m.Price.Amount(), noun)
	}
	return fmt.Sprintf("has %s of the %s", m.Ratio.Percent(), noun)
}

// verdictOf is a cell's; where the wire is full, that of its CPU time.
func verdictOf(c analysis.Cell) stats.Verdict {
	if cpu := c.Metrics[workload.CPUPerByte].Ratio; c.FillsWire() && cpu != nil {
		return cpu.Verdict
	}
	return c.Metrics[c.Primary].Ratio.Verdict
}

func nounOf(r *analysis.Report, c analysis.Cell) string {
	return workload.Of(r.LoadOf(c.Load)).Noun
}

// names are routes in a sentence.
func names(xs []route) string {
	var out []string
	for _, x := range xs {
		out = append(out, x.phrase)
	}
	return printable.List(out)
}

func are(xs []route) string {
	if len(xs) > 1 {
		return "are"
	}
	return "is"
}

func keep(xs []route) string {
	if len(xs) > 1 {
		return "keep"
	}
	return "keeps"
}

// limiters are what keeps a load from being faster, in sentences.
var limiters = map[string]string{
	"client core": "the client's CPU core", "server core": "the server's CPU core", "proxy": "docker-proxy's CPU time",
	"softirq core": "the CPU core that handles packets", "all cores": "the CPU, all of it", string(mode.HopWire): "the wire",
}

// limits says what limits the throughput, if that is one thing in all rows.
func limits(cells []analysis.Cell) string {
	var by []string
	for _, c := range cells {
		if c.Load != workload.Bulk {
			continue
		}
		if w := c.LimitedBy; !slices.Contains(by, w) {
			by = append(by, w)
		}
	}
	if len(by) == 1 && limiters[by[0]] != "" {
		return "What limits the throughput of every mode is " + limiters[by[0]] + "."
	}
	return ""
}

// uncertain counts the verdicts that are still open.
func uncertain(cells []analysis.Cell) string {
	n, all := 0, 0
	for _, c := range cells {
		if x := c.Metrics[c.Primary].Ratio; x != nil {
			all++
			if x.Verdict == stats.Unclear {
				n++
			}
		}
	}
	if n == 0 {
		return ""
	}
	verb, them := "are", "them"
	if n == 1 {
		verb, them = "is", "it"
	}
	return fmt.Sprintf("%d of %d verdicts %s unclear; a longer run (--budget) or a quieter machine decides %s.", n, all, verb, them)
}
