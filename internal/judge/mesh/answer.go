package mesh

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// answer returns the answer, which names only faults, or nil if nothing was measured.
func (m *Mesh) answer() *analysis.Answer {
	if m.Empty() {
		return nil
	}
	a := &analysis.Answer{Question: "Is a node or a link at fault?", Text: []string{}}
	for _, f := range m.Failed {
		if len(f.Nodes) == 1 {
			what := " never answered."
			if f.Left {
				what = " left in the middle of the run."
			}
			a.Add(f.Nodes[0] + strings.TrimSuffix(what, ".") + f.by() + ".")
		}
	}
	if m.Beside != nil {
		m.answerBeside(a)
		return m.withoutResult(a)
	}
	const most = 3
	all := m.subjects()
	for i, subject := range all {
		if i == most && len(all) > most+1 {
			a.Add(fmt.Sprintf("And %d more are slow or lose packets.", len(all)-most))
			break
		}
		a.Add(m.brief(subject))
	}
	if len(all) == 0 {
		a.Add(m.none())
	} else {
		a.Add(m.firm())
	}
	if n := m.Doubtful + m.DoubtfulLoss; n > 0 {
		a.Add(were(n, "link") +
			" slow or lost packets in too few visits to be reported; run more sweeps (--sweeps, --budget).")
	}
	return m.withoutResult(a)
}

// firm returns the sentence that a fault is based on few sweeps, or "" if there are enough.
func (m *Mesh) firm() string {
	if m.Sweeps >= stats.MinJudged {
		return ""
	}
	return fmt.Sprintf("That is based on only %s: run more before you act "+
		"on it (--sweeps, --budget).",
		count(m.Sweeps, "sweep"))
}

func (m *Mesh) withoutResult(a *analysis.Answer) *analysis.Answer {
	if n := slices.DeleteFunc(slices.Clone(m.Failed), func(f Failed) bool {
		return len(f.Nodes) == 1
	}); len(n) > 0 {
		a.Add("Without a result: " + count(len(n), "pair") + ".")
	}
	return a
}

// If noise may hide a slowness by more than this factor, the answer calls nothing healthy.
const hidden = 3

func (m *Mesh) none() string {
	var known, from, unknown, noisy, alone, out []string
	for _, l := range loadsOfMesh {
		x, measured := m.Metrics[l.metric]
		what := "round trips"
		if l.higher {
			what = "throughput"
		}
		switch least := x.from(); {
		case !measured:
		case x.OnePair && least == nil && (m.Sweeps > 1 || !l.higher):
			alone = append(alone, what)
		case least == nil:
			unknown = append(unknown, what)
		case *least > hidden:
			noisy = append(noisy, fmt.Sprintf("%s times slower in %s", factor(*least), what))
		default:
			known = append(known, what)
			from = append(from, fmt.Sprintf("%s times slower in %s", factor(*least), what))
		}
	}
	if len(known) > 0 {
		out = append(out, m.noneSlow(strings.Join(known, " and "), strings.Join(from, " or ")))
	}
	if len(noisy) > 0 {
		out = append(
			out, fmt.Sprintf("Too noisy to tell: only what is %s would have been reported.",
				strings.Join(noisy, " or ")))
	}
	if len(alone) > 0 {
		out = append(out, fmt.Sprintf("With one pair of nodes there is nothing to compare %s with.",
			strings.Join(alone, " and ")))
	}
	if len(unknown) > 0 {
		few := "are too few"
		if m.Sweeps == 1 {
			few = "is too little"
		}
		out = append(out, fmt.Sprintf("%s of %s %s to judge %s.",
			count(m.Sweeps, "sweep"), count(len(m.Nodes), "node"), few,
			strings.Join(unknown, " and ")))
	}
	return strings.Join(out, " ")
}

// noneSlow returns the sentence for the metrics whose noise is known; from contains, in words, how
// slow a node or link would have to be to be reported.
func (m *Mesh) noneSlow(known, from string) string {
	switch {
	case m.onePair():
		return fmt.Sprintf(
			"Neither direction of the link is slow against the other: one that is %s would have been reported.", from)
	case len(m.Failed) > 0 || m.Doubtful+m.DoubtfulLoss > 0:
		return fmt.Sprintf(
			"Nothing else stands out of the noise in %s: what is %s would have been reported.",
			known, from)
	}
	return fmt.Sprintf(
		"No: no node or link stands out of the noise in %s. One that is %s would have been reported.", known, from)
}

func (m *Mesh) onePair() bool {
	for _, x := range m.Metrics {
		if !x.OnePair {
			return false
		}
	}
	return len(m.Metrics) > 0
}

func factor(x float64) string {
	const large = 10
	if x >= large {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func (m *Mesh) brief(faults []Fault) string {
	x := faults[0]
	who := x.Nodes[0]
	does, lose := isSlow, losesPackets
	switch x.Kind {
	case FaultGroup:
		who, does, lose = list(x.Nodes), "are slow to the others", "lose packets to the others"
	case FaultLink:
		who = fmt.Sprintf("The link between %s and %s", x.Nodes[0], x.Nodes[1])
	}
	var say []string
	for _, x := range faults {
		switch x.Metric {
		case workload.LatencyP50:
			say = append(say, analysis.Percent(x.Ratio)+" of the typical round trip")
		case workload.Throughput:
			say = append(say, fmt.Sprintf("%.0f %% of %s", 100*x.Ratio, m.rate(x)))
		case workload.RetransmissionRate:
			worst := 0.0
			for _, rate := range []*float64{x.RateOut, x.RateIn} {
				if rate != nil {
					worst = max(worst, *rate)
				}
			}
			say = append(say, percent(worst)+" retransmitted")
		}
	}
	return who + " " + troubles(faults, does, lose) + ": " + strings.Join(say, ", ") + "."
}

func (m *Mesh) rate(x Fault) string {
	const typical = "the typical throughput"
	switch {
	case x.Kind == FaultLink && m.onePair():
		return "the throughput that " + x.Nodes[1] + " sends with"
	case x.Way == WayBoth || x.Kind == FaultGroup:
		return typical
	case x.Kind == FaultLink:
		return typical + " from " + x.Nodes[0] + " to " + x.Nodes[1]
	case x.Way == WayOut:
		return typical + " in what it sends"
	}
	return typical + " in what it receives"
}

func (m *Mesh) answerBeside(a *analysis.Answer) {
	const most = 3
	said := 0
	say := func(text string) {
		if said++; said <= most {
			a.Add(text)
		}
	}
	for _, subject := range m.Beside.subjects() {
		what := "Slow link: "
		if subject[0].Metric == workload.RetransmissionRate {
			what = "A link that loses packets: "
		}
		say(what + m.Beside.brief(subject))
	}
	for _, l := range loadsOfMesh {
		for _, x := range m.Costs[l.metric].Faults {
			say(m.sayCost(l.metric, x))
		}
	}
	switch {
	case said > most:
		a.Add(fmt.Sprintf("And %d more.", said-most))
	case said == 0:
		a.Add(m.Beside.none())
	}
	if said > 0 {
		a.Add(m.firm())
	}
	if n := m.count(SlowUndecided); n > 0 {
		a.Add(m.undecided(n) + " (--sweeps, --budget).")
	}
	a.Add(m.typicalCosts())
}
