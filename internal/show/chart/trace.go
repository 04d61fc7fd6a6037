package chart

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// trips are waterfalls of round trips on one axis of time.
type trips struct {
	Axis  string   `json:"axis"`
	Parts []string `json:"parts"`
	Pale  []int    `json:"pale"` // indexes of the parts that take most of a trip
	Trips []trip   `json:"trips"`
}

type trip struct {
	Label string    `json:"label"`
	Lanes []string  `json:"lanes"` // hops, in the order of the request
	Bars  []tripBar `json:"bars"`
}

type tripBar struct {
	Lane int     `json:"lane"` // index
	Part int     `json:"part"` // index
	From float64 `json:"from"`
	To   float64 `json:"to"`
	Text string  `json:"text"`
}

// Trace returns the charts of a trace: for each cell both round trips, what its parts add, and the
// parts by epoch; then the cells' own figures.
func Trace(r *trace.Report) []document.ChartGroup {
	base := r.Base()
	var out []document.ChartGroup
	for _, t := range r.Traces {
		if !t.Control() {
			out = append(out, traceGroups(base, &t)...)
		}
	}
	return append(out, groups(base, false, figureCharts)...)
}

// traceGroups returns the charts of a trace; none if it is nil or was refused.
func traceGroups(r *analysis.Report, t *trace.Trace) []document.ChartGroup {
	if t == nil {
		return nil
	}
	var all charts
	all.add(tripChart(*t, "A round trip, hop by hop", "Bars are mid-means of traced trips, without "+
		"what tracing costs.", waterfall{t.Against, t.Its}, waterfall{t.Label, t.Segments}))
	if slow := slowest(t.Segments); slow != nil {
		all.add(tripChart(*t, "The slowest request over "+t.Label, "Above, the mid-means "+
			"of all; below, the slowest, with what tracing costs.", waterfall{t.Label, t.Segments},
			waterfall{t.Label + ", slowest", slow}))
	}
	all.add(partChart(*t))
	path, waiting := apart(t.Rows)
	all.add(epochChart("The path's parts by epoch", path))
	if t.Route() {
		all.add(epochChart("Client, server and relays by epoch", waiting))
	} else {
		all.add(epochChart("Wake-ups and relays by epoch", waiting))
	}
	l := r.Plan.Loads.Of(t.Cell.Load)
	title := t.Title() + ": " + workload.Of(l).Words(l)
	if !t.Route() {
		title = t.Title() + ", from " + t.Cell.From.Words() + ": " +
			workload.Of(l).Words(l) + r.Plan.SayPin(t.Cell.Pin)
	}
	return all.under(title, nil)
}

const microseconds = 1e6

func inMicroseconds(x float64) float64 { return fourDigits(x * microseconds) }

// waterfall is a trip as a chart shows it.
type waterfall struct {
	label    string
	segments []trace.Segment
}

func tripChart(t trace.Trace, title, bars string, of ...waterfall) (c document.Chart, ok bool) {
	spec := trips{Axis: "µs"}
	for _, r := range t.Rows {
		name := trace.WithoutDevices(r.Name)
		has := func(s trace.Segment) bool { return trace.WithoutDevices(s.Row) == name }
		if !slices.ContainsFunc(t.Its, has) && !slices.ContainsFunc(t.Segments, has) {
			continue // NAT, which only epochs by hook show
		}
		if i := index(&spec.Parts, name); r.Wakes() {
			spec.Pale = append(spec.Pale, i)
		}
	}
	var rows [][]string
	for _, x := range of {
		one, hops := trip{Label: x.label}, Hops(x.segments)
		for i, s := range x.segments {
			if s.MidMean == 0 {
				continue
			}
			direction, lane := s.Direction(), laneOf(hops[i], s)
			end := s.At + s.MidMean
			one.Bars = append(one.Bars, tripBar{Lane: index(&one.Lanes, lane),
				Part: index(&spec.Parts, trace.WithoutDevices(s.Row)), From: inMicroseconds(s.At),
				To: inMicroseconds(end),
				Text: fmt.Sprintf("%s, %s: %s µs", direction, s.Part,
					threeDigits(s.MidMean*microseconds))})
			rows = append(rows, []string{x.label, direction, lane, string(s.Part), s.Row,
				threeDigits(s.At * microseconds), threeDigits(s.MidMean * microseconds),
				threeDigits(s.P99 * microseconds)})
		}
		if len(one.Bars) > 0 {
			spec.Trips = append(spec.Trips, one)
		}
	}
	table := tableOf(rows, "mode", "way", "where", "segment", "part", "at, µs", "mid-mean, µs",
		"p99, µs")
	for i := range table.Columns[:5] {
		table.Columns[i].Right = false
	}
	return document.Chart{Kind: "trip", Title: title, Spec: spec, Table: table,
		How: "Each bar is the time between two steps in the kernel, in the row of the hop " +
			"that had the packet then: the request down to the server, the reply back up. " + bars}, len(spec.Trips) > 0
}

// slowest returns the segments of the slowest trip, or nil if it is not recorded.
func slowest(segments []trace.Segment) []trace.Segment {
	out, now := slices.Clone(segments), 0.0
	for i := range out {
		out[i].At, out[i].MidMean = now, out[i].Slowest
		now += out[i].Slowest
	}
	if now == 0 {
		return nil
	}
	return out
}

// Hops returns the hop of each segment of a trip. What an end does itself belongs to "client" or
// "server": before the first hop of a request or reply to the sending end, then to the other one.
func Hops(segments []trace.Segment) []string {
	out := make([]string, len(segments))
	crossed := map[bool]bool{} // a hop, by Reply
	for i, s := range segments {
		switch {
		case s.Hop != "":
			out[i], crossed[s.Reply] = s.Hop, true
		case s.Reply == crossed[s.Reply]:
			out[i] = "client"
		default:
			out[i] = "server"
		}
	}
	return out
}

func laneOf(hop string, s trace.Segment) string {
	lane := hop
	if s.Device != "" && s.Device != hop {
		lane += " " + s.Device
	}
	if s.Where != "" {
		lane += ", " + s.Where
	}
	return lane
}

// index returns the index of a name in the list. It appends a name that the list does not have.
func index(list *[]string, name string) int {
	i := slices.Index(*list, name)
	if i < 0 {
		i = len(*list)
		*list = append(*list, name)
	}
	return i
}

func partChart(t trace.Trace) (c document.Chart, ok bool) {
	spec := falls{Axis: "µs"}
	var rows [][]string
	add := func(name string, its, mine *float64, p analysis.Price) {
		if p.N == 0 {
			return
		}
		bar := fall{Label: name, To: inMicroseconds(p.Median), Verdict: string(p.Verdict),
			Text: p.Value()}
		if p.N > 1 {
			bar.Low, bar.High = ends(inMicroseconds(p.Low), inMicroseconds(p.High))
		}
		spec.Rows = append(spec.Rows, bar)
		rows = append(rows, []string{name, orEmpty(its), orEmpty(mine), bar.Text, bar.Verdict})
	}
	for _, r := range t.Rows {
		add(r.Name, r.Its, r.Mine, r.Added)
		for _, h := range r.Hooks {
			add("└ hook "+h.Name, h.Its, h.Mine, h.Added)
		}
		for _, h := range r.Divided() {
			add("└ "+h.Name, h.Its, h.Mine, h.Added)
		}
	}
	ok = len(spec.Rows) > 0
	add("not attributed", nil, nil, t.Unattributed)
	add(t.Whole(), nil, nil, t.Untraced)
	how := "There and back. The line is the 95 % interval over epochs. " +
		"Pale: nothing measurable, or unclear."
	if t.Untraced.N > 0 {
		how += " The last bar is the difference in untraced slices"
		if t.Unattributed.N > 0 {
			how += "; the bar above it is what the parts leave unexplained"
		}
		how += "."
	}
	return document.Chart{Kind: "waterfall", Spec: spec,
		Title: "What " + t.Label + " adds to " + t.Against + ", part by part",
		Table: tableOf(rows, "part", t.Against+", µs", t.Label+", µs", "adds, µs", "verdict"),
		How:   how}, ok
}

func orEmpty(x *float64) string {
	if x == nil {
		return ""
	}
	return threeDigits(*x * microseconds)
}

// apart separates the parts of the path from those that wait for threads, which vary much more.
func apart(rows []trace.Row) (path, waiting []trace.Row) {
	for _, r := range rows {
		if r.InPath() {
			path = append(path, r)
		} else {
			waiting = append(waiting, r)
		}
	}
	return path, waiting
}

func epochChart(title string, parts []trace.Row) (c document.Chart, ok bool) {
	spec := strips{Axis: "traced epoch"}
	var rows [][]string
	for _, r := range parts {
		if len(r.Epochs) < 2 {
			continue
		}
		every := 1 + (len(r.Epochs)-1)/mostPoints
		one := line{Label: r.Name}
		for i := 0; i < len(r.Epochs); i += every {
			one.Points = append(one.Points, [2]float64{float64(i + 1),
				inMicroseconds(r.Epochs[i])})
		}
		spec.Rows = append(spec.Rows, one)
		rows = append(rows, []string{r.Name, fmt.Sprint(len(r.Epochs)),
			threeDigits(slices.Min(r.Epochs) * microseconds),
			threeDigits(r.Added.Median * microseconds),
			threeDigits(slices.Max(r.Epochs) * microseconds)})
	}
	return document.Chart{Kind: "strip", Title: title + ", µs", Spec: spec, Aside: true,
		Table: tableOf(rows, "part", "epochs", "least", "adds, µs", "most"),
		How: "A dot for each traced epoch: what the part adds in it. " +
			"The intervals are from how much these differ."}, len(spec.Rows) > 0
}
