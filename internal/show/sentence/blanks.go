package sentence

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/comparison"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/sweep"
	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// blank returns the words for a blank of a template; the findings are those of one sentence.
type blank = func(*writer, []analysis.Finding) string

type words map[string]blank

// blanks are the words for the blanks of templates, by name.
var blanks = joined(vocabularies)

var vocabularies = []words{general, tracedWords, leverWords, meshWords}

func joined(all []words) words {
	out := words{}
	for _, x := range all {
		maps.Copy(out, x)
	}
	return out
}

var general = words{
	"witnessed": func(w *writer, _ []analysis.Finding) string { return analysis.Witnessed(w.r) },
	"unclear": func(w *writer, fs []analysis.Finding) string {
		if slices.ContainsFunc(w.r.Found, func(f analysis.Finding) bool {
			return f.Code == analysis.Busy
		}) { // which says to measure again
			return ""
		}
		return analysis.SayUnclear(fs[0], w.r.Plan.Interrupted())
	},
	"open": func(_ *writer, fs []analysis.Finding) string {
		said, _, _ := strings.Cut(analysis.SayUnclear(fs[0], false), ":")
		return said
	},
	"Whole_run": func(w *writer, _ []analysis.Finding) string {
		if w.r.Plan.Interrupted() { // a longer budget would not have helped
			return "A run that is not interrupted"
		}
		return "A longer --budget"
	},
	"congestion": func(w *writer, _ []analysis.Finding) string { return w.r.Environment.Congestion },
	"warning":    (*writer).busy,
	"Keep":       advises("Keep"),
	"Avoid":      advises("Avoid"),
	"what":       of(func(f analysis.Finding) string { return f.What }),
	"on":         ofCell(func(_ *writer, c analysis.Cell) string { return c.On }),
	"place":      ofCell(func(_ *writer, c analysis.Cell) string { return c.From.Words() }),
	"pin":        ofCell(func(w *writer, c analysis.Cell) string { return w.r.Plan.SayPin(c.Pin) }),
	"cell":       ofCell(func(_ *writer, c analysis.Cell) string { return c.Label() }),
	"cell4": ofCell(func(_ *writer, c analysis.Cell) string {
		of := c.Cell
		of.To = of.To.Over4()
		return analysis.Label(of)
	}),
	"labels": func(w *writer, fs []analysis.Finding) string {
		return printable.List(analysis.Distinct(w.cells(fs[0]), analysis.Cell.Label))
	},
	"rows": func(w *writer, fs []analysis.Finding) string {
		return w.each(fs[0], func(int, analysis.Cell) string { return "" })
	},
	"longer": func(w *writer, fs []analysis.Finding) string {
		return w.each(fs[0], func(i int, _ analysis.Cell) string {
			return " " + milliseconds(fs[0].Prices[i]) + " ms"
		})
	},
	"Noun": ofCell(func(w *writer, c analysis.Cell) string {
		return printable.Capital(w.r.NounOf(c))
	}),
	"noun": ofCell(func(w *writer, c analysis.Cell) string { return w.r.NounOf(c) }),
	"nouns": func(w *writer, _ []analysis.Finding) string {
		return printable.List(analysis.Distinct(w.r.Cells, w.r.NounOf))
	},
	"base": func(w *writer, fs []analysis.Finding) string {
		cells := w.cells(fs[0])
		last := cells[len(cells)-1]
		return last.Metrics[last.Primary].Ratio.To
	},
	"ratio":    of(func(f analysis.Finding) string { return f.Ratios[0].String() }),
	"ratios":   (*writer).ratios,
	"verdicts": (*writer).verdicts,
	"routes":   (*writer).routes,
	"remedy":   (*writer).remedy,
	"limit": ofCell(func(_ *writer, c analysis.Cell) string {
		if c.FillsLink() {
			return c.Link()
		}
		return limiters[c.LimitedBy]
	}),
	"packets": func(_ *writer, fs []analysis.Finding) string {
		if fs[0].N == 0 {
			return "each packet"
		}
		return fmt.Sprintf("each packet, of at most %d bytes,", fs[0].N)
	},
	"core": ofCell(func(_ *writer, c analysis.Cell) string {
		return fmt.Sprintf("%.0f %%", 100*c.ProxyCore.Median)
	}),
	"seconds": ofCell(func(_ *writer, c analysis.Cell) string {
		const giga = 1e9
		return units.Digits(giga * c.CPU.Proxy)
	}),
	"Lever":   of(func(f analysis.Finding) string { return printable.Capital(leverOf(f).Gist) }),
	"lever":   of(func(f analysis.Finding) string { return leverOf(f).Gist }),
	"command": (*writer).command,
	"harm": func(_ *writer, fs []analysis.Finding) string {
		if l := leverOf(fs[0]); l.Mode != "" {
			return "It gives up " + l.GivesUp
		}
		return "It may harm " + leverOf(fs[0]).Harms
	},
	"hosted": (*writer).hosted,
	"tokens": func(w *writer, _ []analysis.Finding) string {
		return fmt.Sprint(workload.StreamOf(w.r.Plan.Loads.Of(workload.Stream)).Tokens)
	},
	"pace": func(w *writer, _ []analysis.Finding) string {
		return fmt.Sprintf("%g", workload.StreamOf(w.r.Plan.Loads.Of(workload.Stream)).Pace)
	},
	"late_p99":    ofValue(workload.LateP99, workload.Milliseconds),
	"late_max":    ofValue(workload.LateMax, workload.Milliseconds),
	"wait_p99":    ofValue(workload.WaitP99, workload.Milliseconds),
	"wait_max":    ofValue(workload.WaitMax, workload.Milliseconds),
	"busiest_cpu": ofValue(comparison.BusiestCPU, percentage),

	"added": added,
	"axis":  func(w *writer, _ []analysis.Finding) string { return sweep.Noun(w.r.Plan) },
	"meant": func(w *writer, _ []analysis.Finding) string { return sweep.Meant(w.r.Plan) },
	"knees": func(w *writer, fs []analysis.Finding) string {
		return w.knees(w.study.(*sweep.Report).Curves, fs[0], w.r.Plan.Baseline)
	},
	"knees4": func(w *writer, fs []analysis.Finding) string {
		return w.knees(w.study.(*sweep.Report).OverIPv4, fs[0], "IPv4")
	},

	"ladder": func(w *writer, _ []analysis.Finding) string {
		if of := w.study.(*ladder.Report).Steps; len(of) > 0 && of[0].To.Outside() {
			return "way out"
		}
		return "path"
	},
	"parts": mostOf,
	"price": of(func(f analysis.Finding) string { return priceNouns[f.What] }),
	"sum":   sum,
	"free": ofEach(func(s ladder.Step, p analysis.Price) string {
		return s.Part + " (at most " + p.In(p.Most()) + ")"
	}),
	"full":   of(func(f analysis.Finding) string { return f.Why }),
	"hidden": ofEach(func(s ladder.Step, _ analysis.Price) string { return s.Part }),

	"Total":   (*writer).totalOf,
	"first":   partner(ofFirst),
	"other":   partner(ofBaseline),
	"scaling": byRatio(ofFirst),
	"rates":   byRatio(ofBaseline),
	"growth":  ofCell(growth),
	"sizes": func(w *writer, fs []analysis.Finding) string {
		return printable.List(analysis.Distinct(w.cells(fs[0]), func(c analysis.Cell) string {
			return c.Label() + " at " + c.Shape.String()
		}))
	},
	"shape":  ofCell(func(_ *writer, c analysis.Cell) string { return c.Shape.String() }),
	"load":   ofCell(func(_ *writer, c analysis.Cell) string { return c.Load }),
	"n":      of(func(f analysis.Finding) string { return fmt.Sprint(f.N) }),
	"setup":  highest(workload.Setup, "%.2f", 1),
	"spread": highest(workload.StartSpread, "%.0f", 1e3),
	"memory": highest(workload.Memory, "%.0f", 1e-6),

	"unproven": ofCell(func(_ *writer, c analysis.Cell) string {
		why, _ := c.Evidence.Clear()
		return why
	}),
	"Who": ofParts(func(w parts) string { return printable.Capital(w.who()) }),
	"who": ofParts(parts.who),
	"inside": func(w *writer, fs []analysis.Finding) string {
		return partsOf(w.cells(fs[0])[0]).short(sample.EvidencePart{Part: fs[0].What})
	},
	"needs":   ofParts(parts.needs),
	"adds":    ofParts(parts.adds),
	"divided": (*writer).divided, "seen": (*writer).seen,
	"gpus":  (*writer).gpus,
	"slow":  ofValue(endpoints.SlowGaps, workload.Milliseconds),
	"proof": (*writer).proof,
	"why":   (*writer).why,
	"held":  ofValue(workload.Glued, percentage),
	"least": of(func(analysis.Finding) string { return fmt.Sprint(stats.MinJudged) }),
	"is":    number("is", "are"), "has": number("has", "have"), "their": number("its", "their"),
	"differs": number("differs", "differ"),
	"gateway": of(func(f analysis.Finding) string { return gateways[f.What] }),
	"clauses": (*writer).clauses,
	"within": func(w *writer, _ []analysis.Finding) string {
		return told(w.r.Plan.Same > 0, fmt.Sprintf(" (within %g %%)", 100*w.r.Plan.Same))
	},
	"exchange":  ofCell(exchange),
	"exchanged": ofCell(exchanged),
	"connects":  (*writer).connects,
	"baseline":  func(w *writer, _ []analysis.Finding) string { return w.r.Plan.Baseline },
	"behind": ofCell(func(_ *writer, c analysis.Cell) string {
		return c.Facts[endpoints.BehindProxy]
	}),
	"fast":       ofCell(func(_ *writer, c analysis.Cell) string { return orFast(c.Dial) }),
	"suspect":    overRoutes(suspect),
	"lookup":     overRoutes(lookedUp),
	"passed":     overRoutes(passedOver),
	"delayed":    overRoutes(delayed),
	"offloads":   (*writer).offloads,
	"unexamined": (*writer).unexamined,
	"absent":     (*writer).absent,
	"dial":       ofCell(func(_ *writer, c analysis.Cell) string { return c.Dial }),
	"tracing":    (*writer).tracing,
	"asked":      (*writer).asked,
	"times":      (*writer).times,
	"page":       (*writer).page,
}

// of returns the words for a blank that is about the first of the findings.
func of(say func(analysis.Finding) string) blank {
	return func(_ *writer, fs []analysis.Finding) string { return say(fs[0]) }
}

// ofCell returns the words for a blank that is about the finding's first cell.
func ofCell(say func(*writer, analysis.Cell) string) blank {
	return func(w *writer, fs []analysis.Finding) string { return say(w, w.r.Cells[fs[0].Cells[0]]) }
}

func ofValue(key string, say func(float64) string) blank {
	return of(func(f analysis.Finding) string { return say(f.Values[key]) })
}

// told returns the text if it is to be told, or "".
func told(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

func percentage(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

var limiters = map[string]string{
	"client core":  "the client's CPU core",
	"server core":  "the server's CPU core",
	"proxy":        "the CPU time of the relaying process",
	"softirq core": "the CPU core that handles packets", "all cores": "the CPU: all cores are busy",
}

// busy returns the first sentence of the warning.
func (w *writer) busy([]analysis.Finding) string {
	for _, x := range w.r.Warnings {
		if x.Code == analysis.Busy {
			said, _, _ := strings.Cut(x.Text, ". ")
			return printable.Capital(strings.TrimSuffix(said, "."))
		}
	}
	return ""
}

// advises returns the verb of an advice, which is not firm if the machine was too busy.
func advises(verb string) blank {
	return func(w *writer, _ []analysis.Finding) string {
		if w.r.TooBusy() {
			return "Perhaps " + strings.ToLower(verb)
		}
		return verb
	}
}

// each returns the rows of the finding, each followed by what say returns.
func (w *writer) each(f analysis.Finding, say func(i int, c analysis.Cell) string) string {
	var out []string
	for i, c := range w.cells(f) {
		out = append(out, c.Label()+w.r.Plan.SayPin(c.Pin)+say(i, c))
	}
	return strings.Join(out, ", ")
}

func milliseconds(p analysis.Price) string {
	const ms = 1e3
	d := stats.Summary{Median: ms * p.Median, Low: ms * p.Low, High: ms * p.High, N: p.N}
	n := analysis.Decimals(d.HalfWidth())
	return fmt.Sprintf("%+.*f %s", n, d.Median, analysis.Interval(d, n))
}

func (w *writer) ratios(fs []analysis.Finding) string {
	var out []string
	for i, c := range w.cells(fs[0]) {
		x := fs[0].Ratios[i]
		out = append(out, fmt.Sprintf("%s of %s's %s (%s)", x, x.To, w.r.NounOf(c), x.Verdict))
	}
	return strings.Join(out, " and ")
}

func (w *writer) verdicts(fs []analysis.Finding) string {
	var out []analysis.Judged
	for _, c := range w.cells(fs[0]) {
		said := analysis.Judged{Name: c.Label(), Verdict: c.Verdict(),
			Ratio: c.Metrics[c.Primary].Ratio}
		if cpu := c.FullCPU(); cpu != nil {
			said.Name, said.Ratio = fmt.Sprintf("%s (fills %s, with %s of the CPU time)", c.Label(),
				c.Link(), cpu), nil
		}
		out = append(out, said)
	}
	return analysis.ByVerdict(out)
}

func leverOf(f analysis.Finding) lever.Lever {
	l, _ := lever.Find(f.What)
	return l
}

func (w *writer) command(fs []analysis.Finding) string {
	m, _ := mode.Find(w.r.Cells[fs[0].Cells[0]].Mode)
	if how := leverOf(fs[0]).Command(m.Engine()); how != "" {
		return ": " + how
	}
	return ""
}

// hosted returns how a container of the mode's engine does without the relay.
func (w *writer) hosted(fs []analysis.Finding) string {
	l, _ := lever.Find(string(mode.Host))
	m, _ := mode.Find(mode.Name(fs[0].What))
	text := fmt.Sprintf("%s; it gives up %s", l.Command(m.Engine()), l.GivesUp)
	if why := l.Refuses(m.Name); why != "" {
		text += ", and " + why
	}
	return text
}

var remedies = map[string]string{
	comparison.ProxyOff: `set "userland-proxy": false`,
	comparison.NetworkIPv6: "give the network IPv6 (docker network create --ipv6), so that Docker's " +
		"rules serve the port",
	comparison.IptablesOn: `leave out "iptables": false, without which Docker's rules serve the ` +
		`port`,
	comparison.DialContainer: "dial the container's address",
	comparison.DialOrFast:    "dial the container's address, or sudo toll fast on all",
}
