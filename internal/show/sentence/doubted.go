package sentence

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

const (
	tooBusy = "the machine was too busy to measure: {others} {when}. The most disturbed " +
		"measurements are left out, and intervals are wide: measure again while no other program is busy"
	cutShort = "{n} of {of} visits were cut short, because "
	fewer    = "; take fewer --sessions or a slower pace, or close other programs"
	shorter  = " connections: use a shorter --window, or "
)

// ofWarnings are the sentences of warnings, whose blanks doubted fills. A load's own sentence has
// its name behind the code.
var ofWarnings = map[string]string{
	analysis.Busy: tooBusy,
	analysis.Busy + " " + analysis.BeforeRequests: "the machine was busy before the first request: " +
		"{others}. Times include those of waiting for a CPU: measure again while no other program is busy",
	analysis.MixedPlacement: "{there}{load}: the scheduler had client and server on one CPU in some " +
		"rows ({what}) and on CPUs of their own in others ({why}): this difference may exceed that of " +
		"the networks; toll compare measures both placements",
	analysis.SameAddress:    "{names} have the same address: {what}",
	analysis.RefusedRequest: "over {names} the server refuses a part of toll's request: it is asked {what}",
	analysis.CompressedStream: "over {names} the stream is compressed with {what}: tokens come when " +
		"the compressor flushes",
	analysis.OtherServers: "the routes lead to different servers, by their {what}: {servers}",

	analysis.Bimodal: "the rounds fall into two clusters, {clusters}: the median may describe neither",
	analysis.Late:    "most visits started late: the warm-up was cut short",
	analysis.Late + " " + analysis.SizedTransfer: "most visits started late: their time includes it; " +
		"it matters less with more --bytes",
	analysis.BurstDiffers: "in slices of {slice} ms it has {ratio} of {to}'s {figure}, in windows of " +
		"{window} ms {ratio2}: short bursts do not show its sustained performance",
	analysis.InStates: "in {n} of {of} epochs the ratio was {share} instead of {share2}{left out}{speeds}",
	analysis.Full: "it and {what} fill {limit}, so their ratio says nothing about the modes: compare " +
		"CPU time per byte ({sum} of payload)",
	analysis.Capped: "{what} fills {limit}: over a faster link it may be further ahead ({sum} of payload)",
	analysis.Varying: "its {what} varies: {most of} {number} {spans} lie in the range {range}, which the " +
		"row shows instead of a median{resent}",

	workload.Copied: "the kernel copied most of what was sent with MSG_ZEROCOPY, as it always does for " +
		"sockets of the same machine: the figures show the cost of that attempt, not of zero-copy",
	workload.GluedTokens: "{percent} of the tokens arrived together with another one: something on the " +
		"path, or the server, holds them back, so gaps look shorter than they are",
	workload.GluedTokens + " " + workload.WhyFollows: "{percent} of the tokens arrived together with " +
		"another one, so gaps look shorter than they are",
	workload.UsageDiffers: "the server counts {counted} tokens a response (usage), but {came} events " +
		"with text came: events may have {pieces}, or that count is a guess. By events, tokens /s is {rate}",
	workload.OtherEvents: "{events} of the server {were} no part of a response and {were} passed over" +
		"{first event}: {what}",
	workload.PortsExhausted: cutShort + "there are ephemeral ports for only {value}" + shorter +
		"widen net.ipv4.ip_local_port_range",
	workload.ConntrackFull: cutShort + "the connection table has room for only {value}" + shorter +
		"raise net.netfilter.nf_conntrack_max",
	workload.TimeWaitLeft: "up to {value} sockets of ended connections were left after {n} of {of} " +
		"visits: later visits had fewer ports{error}",
	workload.ConnectionsFailed: "{n} of {of} connections failed, and are in no other figure: {failures}",
	workload.Elsewhere: "the client made no TCP connection to the address of its route: unless it uses " +
		"UDP, it measured another server",
	workload.BelowRate: "fewer replies came than requests were due: the latencies are those of a growing " +
		"queue; lower --rate, or spread it over more --connections",
	workload.Behind + " " + workload.RR: "the client itself fell behind its schedule, for lack of CPU " +
		"time: more than 1 % of the requests were sent late by more than the time between two requests " +
		"of a connection; close other programs, or lower --rate",
	workload.Behind + " " + workload.Stream: "the server fell behind its schedule: one token in a " +
		"hundred was sent more than {ms} late" + fewer,
	workload.Behind + " " + workload.UDP: "the client sent only {share of rate} of its rate: {slow}",
	workload.SlowReader: "the client fell behind: one token in a hundred may have waited more than {ms} " +
		"for its thread" + fewer,
	workload.OwnLate: "the client itself causes more than half of the median latency: it wakes up late " +
		"when a request is due",
	workload.Overdue: "{tokens} had not arrived a second after the window: {their} delay until " +
		"then counts",
	workload.Blocked: "{times} the server's socket was full: the path took tokens more slowly than " +
		"they were due",
	workload.Lossy: "at the rate that toll found, {loss} were lost: use a longer --window, or a lower " +
		"--bitrate",
}

// rowOf returns the sentence of ofWarnings for a finding.
func rowOf(f analysis.Finding) string {
	return cmp.Or(ofWarnings[f.Code+" "+f.What], ofWarnings[f.Code+" "+f.Load], ofWarnings[f.Code])
}

func fillDoubted(row string, f analysis.Finding) string {
	return fill(row, func(blank string) string { return doubted[blank](f) })
}

// numbered formats what the finding's code has in Values.
func numbered(format string, by float64) func(analysis.Finding) string {
	return func(f analysis.Finding) string { return fmt.Sprintf(format, by*f.Values[f.Code]) }
}

// valued formats one of the finding's other Values.
func valued(format, value string, by float64) func(analysis.Finding) string {
	return func(f analysis.Finding) string { return fmt.Sprintf(format, by*f.Values[value]) }
}

// doubted are the words for the blanks of ofWarnings.
var doubted = map[string]func(analysis.Finding) string{
	"n":      func(f analysis.Finding) string { return fmt.Sprint(f.N) },
	"of":     func(f analysis.Finding) string { return fmt.Sprint(f.Of) },
	"what":   func(f analysis.Finding) string { return f.What },
	"why":    func(f analysis.Finding) string { return f.Why },
	"load":   func(f analysis.Finding) string { return f.Load },
	"names":  func(f analysis.Finding) string { return printable.List(f.Names) },
	"others": func(f analysis.Finding) string { return f.Contention.Words("kept") },
	"limit":  func(f analysis.Finding) string { return f.Limit.Words() },
	"sum":    func(f analysis.Finding) string { return f.Limit.Sum() },
	"when": func(f analysis.Finding) string {
		return map[string]string{analysis.DuringRun: "during the run",
			analysis.AtStart: "when the run began"}[f.What]
	},
	"there": func(f analysis.Finding) string {
		return told(f.On != sample.OnEndpoint, "from "+f.From.Words()+", ")
	},
	"servers": func(f analysis.Finding) string {
		var out []string
		for _, name := range f.Names {
			out = append(out, cmp.Or(name, "none named"))
		}
		return strings.Join(out, "; ")
	},

	"clusters": func(f analysis.Finding) string {
		low, high := f.Prices[0], f.Prices[1]
		unit, by := scaled(low.Unit, low.Low)
		return fmt.Sprintf("%d around %s and %d around %s %s", low.N, units.TwoDigits(by*low.Median),
			high.N, units.TwoDigits(by*high.Median), unit)
	},
	"slice":  valued("%g", analysis.SliceLength, 1e3),
	"window": valued("%g", analysis.WindowLength, 1e3),
	"ratio":  func(f analysis.Finding) string { return f.Ratios[0].String() },
	"ratio2": func(f analysis.Finding) string { return f.Ratios[1].String() },
	"share":  func(f analysis.Finding) string { return analysis.Percent(f.Ratios[0].Median) },
	"share2": func(f analysis.Finding) string { return analysis.Percent(f.Ratios[1].Median) },
	"to":     func(f analysis.Finding) string { return f.Ratios[0].To },
	"figure": func(f analysis.Finding) string {
		load, _ := workload.Find(f.Load)
		if load.Rate == workload.Transactions {
			return "rate"
		}
		return load.Noun
	},
	"left out": func(f analysis.Finding) string {
		if f.What != analysis.LeftOut {
			return ", and the mean describes neither"
		}
		return "; " + units.Agree(f.N, "that epoch is", "those epochs are") + " left out"
	},
	"speeds": speeds,
	"most of": func(f analysis.Finding) string {
		if f.Prices[0].N <= stats.AllInRange {
			return "all"
		}
		return "nine tenths of"
	},
	"number": func(f analysis.Finding) string { return fmt.Sprint(f.Prices[0].N) },
	"spans": func(f analysis.Finding) string {
		if x, sliced := f.Values[analysis.SliceLength]; sliced {
			return fmt.Sprintf("slices of %g ms", 1e3*x)
		}
		return fmt.Sprintf("windows of %g ms", 1e3*f.Values[analysis.WindowLength])
	},
	"range":  func(f analysis.Finding) string { return rangeOf(f.Prices[0]) },
	"resent": sentAgain,

	"pin":      func(f analysis.Finding) string { return analysis.PinWords(f.Pin) },
	"pin2":     func(f analysis.Finding) string { return analysis.PinWords(f.What) },
	"asked":    valued("%.0f", predict.AskedBytes, 1),
	"measured": valued("%.0f", predict.MeasuredBytes, 1),

	"value":         numbered("%.0f", 1),
	"percent":       numbered("%.0f %%", 100),
	"loss":          numbered("%.2g %%", 100),
	"share of rate": numbered("%.1f %%", 100),
	"ms":            func(f analysis.Finding) string { return workload.Milliseconds(f.Values[f.Code]) },
	"counted":       valued("%.3g", workload.CountTokens, 1),
	"came":          valued("%.3g", workload.CountEvents, 1),
	"rate":          valued("%.3g", workload.WordRate, 1),
	"pieces": func(f analysis.Finding) string {
		if f.Values[workload.CountTokens] < f.Values[workload.CountEvents] {
			return "parts of tokens"
		}
		return "several tokens"
	},
	"events": func(f analysis.Finding) string {
		return units.Agree(f.N, "one event", fmt.Sprint(f.N)+" events")
	},
	"tokens":      func(f analysis.Finding) string { return units.Plural(f.N, "token") },
	"times":       func(f analysis.Finding) string { return units.Plural(f.N, "time") },
	"their":       func(f analysis.Finding) string { return units.Agree(f.N, "its", "their") },
	"were":        func(f analysis.Finding) string { return units.Agree(f.N, "was", "were") },
	"first event": func(f analysis.Finding) string { return told(f.N > 1, ", the first") },
	"error":       func(f analysis.Finding) string { return told(f.What != "", " ("+f.What+")") },
	"failures":    failures,
	"slow": func(f analysis.Finding) string {
		return map[string]string{workload.WhySlow: "it was too slow, or kept off its CPU",
			workload.WhyFull: "its send buffer was full: the path took datagrams too slowly"}[f.What]
	},
}

// scaled returns the unit in which warnings print figures of the size of x, and the factor that
// converts to it.
func scaled(unit string, x float64) (in string, by float64) {
	const long = 0.1 // s
	switch {
	case unit == "s" && x < long:
		return "µs", 1e6
	case unit == "bit/s":
		return "Gbit/s", 1e-9
	}
	return unit, 1
}

// rangeOf returns a range with its unit: "0.028–25 Gbit/s".
func rangeOf(p analysis.Price) string {
	unit, by := scaled(p.Unit, p.Low)
	return analysis.Span(p.Low*by, p.High*by) + " " + unit
}

// speeds says what the baseline's own figures were in the epochs of two states.
func speeds(f analysis.Finding) string {
	if len(f.Prices) == 0 {
		return ""
	}
	then, otherwise, ran := f.Prices[0], f.Prices[1], "took"
	if then.Unit == "bit/s" {
		ran = "ran at"
	}
	unit, by := scaled(otherwise.Unit, otherwise.Median)
	return fmt.Sprintf(". %s %s %.3g %s then and %.3g otherwise", f.Ratios[0].To, ran, then.Median*by,
		unit, otherwise.Median*by)
}

func sentAgain(f analysis.Finding) string {
	resent, tcp := f.Values[workload.Resent]
	if !tcp {
		return ""
	}
	rto := f.Values[analysis.RTO]
	return fmt.Sprintf(". TCP: %s retransmits/s, %s of all bytes sent again",
		units.TwoDigits(f.Values[workload.Retransmits]), analysis.Percent(resent)) +
		told(rto > 0 && resent > 0, fmt.Sprintf(", RTO %.0f ms", 1e3*rto))
}

var failureWords = map[string]string{
	workload.FailedTimeout:  "not answered",
	workload.FailedRefused:  "refused",
	workload.FailedNoPort:   "without a local port",
	workload.FailedConnect:  "refused by the client's kernel",
	workload.FailedExchange: "broken off before the reply",
}

func failures(f analysis.Finding) string {
	var out []string
	for _, count := range workload.FailureCounts {
		if n := f.Values[count]; n > 0 {
			out = append(out, fmt.Sprintf("%.0f %s", n, failureWords[count]))
		}
	}
	return strings.Join(out, ", ")
}

// fillDoubts puts the warnings of a mesh into words.
func fillDoubts(r Told) {
	m, is := r.(*mesh.Report)
	if !is {
		return
	}
	worded := m.Warnings[len(m.Warnings)-len(m.Doubts):]
	for i, x := range m.Doubts {
		worded[i].Text = meshDoubt(m.Mesh, x)
		if x.What != "" {
			worded[i].Text = "the " + mesh.Network(x.What) + ": " + worded[i].Text
		}
	}
}

func meshDoubt(m *mesh.Mesh, x analysis.Finding) string {
	switch x.Code {
	case mesh.WarnFewSweeps:
		return fewSweeps(x)
	case mesh.TwoNodes:
		return "with two nodes only the link between them can be reported: to find out which of them is slow, add a third"
	case mesh.Doubtful:
		return fmt.Sprintf("%s %s slow in too few visits to be reported: use more sweeps",
			units.Plural(x.N, "link"), units.Agree(x.N, "was", "were"))
	case mesh.DoubtfulLoss:
		return units.Plural(x.N, "link") +
			" lost packets in too few visits to be reported: use more sweeps"
	case mesh.FailedVisits:
		return fmt.Sprintf("%d of %d visits failed and %s left out, the last one because: %s", x.N,
			x.Of, units.Agree(x.N, "is", "are"), x.Why)
	case mesh.SameMachine:
		var names []string
		for _, k := range x.Rows {
			names = append(names, m.Nodes[k].Name)
		}
		return nodeNames(names) + " are the same machine, so no network is measured between them"
	case mesh.OtherMTU:
		return "the nodes' MTUs differ: " + mtus(m)
	}
	return ""
}

func fewSweeps(x analysis.Finding) string {
	if len(x.Values) == 0 {
		return fmt.Sprintf("fewer than %d sweeps: each link's values are based on few visits",
			stats.MinJudged)
	}
	var unknown []string
	for _, metric := range []string{workload.LatencyP50, workload.Throughput} {
		if _, is := x.Values[metric]; is {
			unknown = append(unknown, mesh.Noun(metric))
		}
	}
	return fmt.Sprintf("with so few nodes, %s cannot tell what is slow in %s from noise; use more sweeps",
		units.Plural(x.N, "sweep"), nodeNames(unknown))
}

// mtus returns the nodes by MTU.
func mtus(m *mesh.Mesh) string {
	by := map[int][]string{}
	for _, n := range m.Nodes {
		if n.MTU > 0 {
			by[n.MTU] = append(by[n.MTU], n.Name)
		}
	}
	var parts []string
	for _, mtu := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%d (%s)", mtu, nodeNames(by[mtu])))
	}
	return strings.Join(parts, ", ")
}

const mostNodes = 8

// nodeNames joins names for use in a sentence. It counts those beyond the seventh, if there are
// several.
func nodeNames(names []string) string {
	if n := len(names); n > mostNodes {
		return fmt.Sprintf("%s and %d others", strings.Join(names[:mostNodes-1], ", "),
			n-mostNodes+1)
	}
	return printable.List(names)
}
