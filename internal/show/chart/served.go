package chart

import (
	"cmp"
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

var servedWords = map[string]string{sample.EvidenceTCP: "its TCP", sample.EvidenceQueue: "its queue",
	sample.ServedRequest: "receiving", sample.ServedReply: "sending",
	sample.ServedCPU: "waiting for a CPU", sample.ServedSent: "to the server",
	sample.ServedHere: "at the server", sample.ServedRead: "back until read",
	sample.ServedBetween: "until the next one"}

// ServedWords returns the words for a part of a request that was watched at its server.
func ServedWords(part string) string { return cmp.Or(servedWords[part], part) }

// Served returns the page of the requests that a server answered.
func Served(s *sample.Served) document.Page {
	p := document.Page{Title: "Where a server's requests wait", Command: "toll trace --attach PORT",
		Lede: dateAndHost(s.Started, s.Environment)}
	if s.Command != nil {
		p.Command = sample.CommandLine(s.Command)
	}
	if c, ok := servedChart(s); ok {
		p.Groups = []document.ChartGroup{{Title: "Single requests", Charts: []document.Chart{c}}}
	}
	if s.Environment.Kernel == "" {
		return p
	}
	watched := document.FactGroup{Title: "Watching"}
	watched.Add("Server", fmt.Sprintf("%s at port %d", cmp.Or(s.Server.Process, "unknown"), s.Server.Port))
	watched.Add("For", units.Seconds(s.Elapsed))
	watched.Add("Followed for", units.Seconds(s.Followed))
	watched.Add("Requests", fmt.Sprint(s.Requests))
	p.Facts = append([]document.FactGroup{environment(s.Environment), watched},
		kernelSettings(s.Environment)...)
	return p
}

// servedChart draws the request that took the median time and the slowest one on one axis.
func servedChart(s *sample.Served) (c document.Chart, ok bool) {
	if s.Median == nil || len(s.Slowest) == 0 {
		return c, false
	}
	by := scaleFor("s", max(wholeOf(*s.Median), wholeOf(s.Slowest[0])))
	spec := trips{Axis: by.unit, Pale: []int{}}
	median, rows := servedTrip(&spec, "the median", s.Parts, *s.Median, by)
	slowest, more := servedTrip(&spec, "the slowest", s.Parts, s.Slowest[0], by)
	spec.Trips = []trip{median, slowest}
	c = document.Chart{Kind: "trip", Title: "The median request and the slowest, part by part",
		How: "Each bar is a part of the time of one request: of the one that took the median time at " +
			"the server's network device, and of the slowest one there. If its client is on this " +
			"machine, what it had before and after that is in it.",
		Spec: spec, Table: tableOf(append(rows, more...), "request", "part", "begins", "takes")}
	c.Table.Columns[1].Right = false
	return c, len(median.Bars) > 0 && len(slowest.Bars) > 0
}

// servedTrip returns a request's waterfall, and a row of the table for each bar.
func servedTrip(spec *trips, name string, parts []sample.ServedPart, x sample.Answered,
	by scale) (one trip, rows [][]string) {
	at := 0.0
	one.Label = name + ", " + workload.Briefly(wholeOf(x))
	add := func(part string, spent float64) {
		if spent > 0 {
			words := ServedWords(part)
			one.Bars = append(one.Bars, tripBar{Lane: len(one.Lanes), Part: index(&spec.Parts, words),
				From: fourDigits(at * by.by), To: fourDigits((at + spent) * by.by), Text: by.text(spent)})
			one.Lanes = append(one.Lanes, words)
			rows = append(rows, []string{name, words, by.text(at), by.text(spent)})
		}
		at += spent
	}
	if x.Client != nil {
		add(sample.ServedSent, x.Client[0])
	}
	for i, spent := range x.Parts {
		add(parts[i].Part, spent)
	}
	if x.Client != nil {
		add(sample.ServedRead, x.Client[1])
	}
	return one, rows
}

// wholeOf returns the time of a request, its client's included, in s.
func wholeOf(x sample.Answered) float64 {
	if x.Client != nil {
		return x.Whole + x.Client[0] + x.Client[1]
	}
	return x.Whole
}
