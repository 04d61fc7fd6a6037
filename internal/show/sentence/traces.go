package sentence

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

const (
	tryFirst    = " The command is not tried: sudo toll ports --try says who would lose a port."
	untried     = " The command is not tried: a copy of the network has no such load."
	seesFrames  = "iptables sees what the bridge forwards (bridge-nf-call-iptables=1): "
	itWaits     = "The {direction} waits {took_µs} "
	unexplained = "{share} of the trips pass {what}, which no hop of {traced} explains"
	fillsLonger = ". That is not tried: a copy of the network has no such load. A server that accepts " +
		"too slowly fills a longer queue, too."
	polls = " A program that polls its socket avoids it. How much of it is that their CPUs slept, too: " +
		"sudo toll compare --tune idle=poll --load rr --pin far."
	shortOfCPU = "{what} is short of CPU: waiting for one takes {took} of a request{tail}. "
)

var ofTraces = []template{
	{code: trace.Added, text: "{added_to}: {sums}.", most: all},
	{code: trace.NotDivided, text: "{added_to}. Where is not known: {refused}.", most: all},
	{code: trace.TooShort, text: " {Whole_run} has them.", continues: true},
	{code: trace.RequestAdded, text: "{added_to}{by_parts}.", most: all},
	{code: trace.RequestUnsure, text: "{unsure}: ", most: all},
	{code: trace.RequestTakes, text: "Over {traced} a request takes {request}: {named}.", most: all},
	{code: trace.RequestSeems, text: "{unsure}: ", most: all},
	{code: trace.CostUnknown, text: "what tracing itself adds is not known after {trips}. " +
		"{Whole_run} tells.", continues: true},
	{code: trace.CostUnsure, text: "after {trips}, what tracing itself adds ({cost}) is known less " +
		"exactly than the largest part. {Whole_run} tells.", continues: true},
	{code: trace.TailIn, text: " The p99 is {whole}, {took} of it in {in}.", continues: true},
	{code: trace.SlowestIn, text: " The slowest took {whole}, {took} of them in {in}.",
		continues: true},
	{code: trace.ControlDiffers, text: "A second connection over {against}'s path differs from the " +
		"first by {path} in the path and {wakes} in wake-ups: that much is noise.", details: 2},
	{code: trace.RepeatedDiffers, text: "{against} measured once more differs from itself by {path} " +
		"in the network and the server's kernel and {ends}: that much is noise.", details: 2},
	{code: trace.Followed, text: "These routes are outside toll's control: their bytes are not " +
		"counted, but followed from process to process.", details: 1},

	// of a trace's own findings
	{code: trace.Frames, text: seesFrames + "up to {took_µs}.{try_first}"},
	{code: trace.FramesInHooks, text: seesFrames +
		"{took_µs} of the bridge's {whole_µs} are in its hooks.{try_first}"},
	{code: trace.FramesOf, text: seesFrames + "{took_µs} of the bridge's {whole_µs}, as {what} shows." +
		"{try_first}"},
	{code: trace.LongChains, text: "The rules in {what} take {took_µs} of a trip ({because}): long " +
		"chains."},
	{code: trace.WaitsSoftirq, text: itWaits + "behind {device} for the softirq: on another CPU " +
		"(RPS), or on one that is busy.{untried}"},
	{code: trace.WaitsQueue, text: itWaits + "in the queueing discipline of {device}.{untried}"},
	{code: trace.ReadersSlept, text: "{share} of the readers slept; waking them takes {took_µs} of a " +
		"trip{theirs}." + polls},
	{code: trace.OddStep, text: unexplained + "."},
	{code: trace.OddLookUp, text: unexplained + ": a NAT rule may be too wide."},
	{code: trace.RepliesWait, text: "{waited}."},
	{code: trace.NoReply, text: "Over {what}, {requests} had no reply, and {no_reply} in no figure."},
	{code: trace.ErrorReplies, text: "Over {what}, replies were errors, whose time counts: {errors}."},
	{code: trace.OtherReplies, text: "Over {what}, replies do not have what was asked for, and their " +
		"time counts: {errors}."},
	{code: trace.StampedOnce, text: "Over {what}, what a bridge takes on the way to a process of " +
		"its own machine is in that process's part: another program has the kernel note when packets come " +
		"(SO_TIMESTAMP), which it does once for the port and the bridge."},
	{code: trace.NotAllKept, text: "Over {what}, {so_many} passed more packets than toll keeps: " +
		"{as_the_others}. A client that makes fewer requests has all."},
	{code: trace.StoppedByLimit, text: shortOfCPU + "A CPU limit stopped it for {stopped} s."},
	{code: trace.Sleep, text: "Until the threads that answer in {names} run, {took} of a " +
		"request's {whole} pass: they sleep until they are woken, unless other threads work before." +
		polls},
	{code: trace.BridgedFrames, text: "iptables sees what bridge {what} forwards from port to port " +
		"({names}){up_to}.{who_needs}"},
	{code: trace.Steered, text: "{share} of the packets that come in at {what} are handed to another " +
		"CPU (RPS), for whose softirq they wait {took_µs}{stayed}.{not_tried}"},
	{code: trace.QueueFull, text: "{so_often}, the queue of connections to {what} was full, which has " +
		"room for {room}: such a connection waits 1 s or more. {larger}" + fillsLonger},
	{code: trace.OthersHaveCPU, text: shortOfCPU + "No CPU limit stopped it: other programs had the " +
		"CPU."},
}

var tracedWords = words{
	"added_to": ofTrace(addedTo),
	"sums":     ofTrace(sums),
	"refused":  ofTrace(func(t trace.Trace) string { return refusal(t.Refusal) }),
	"named":    ofTrace(named),
	"by_parts": ofTrace(byParts),
	"unsure":   ofTrace(unsure),
	"traced": func(w *writer, fs []analysis.Finding) string {
		return cmp.Or(w.over, ofTrace(func(t trace.Trace) string { return t.Label })(w, fs))
	},
	"against": ofTrace(func(t trace.Trace) string { return t.Against }),
	"request": ofTrace(func(t trace.Trace) string { return workload.Briefly(t.Request()) }),
	"trips":   ofTrace(func(t trace.Trace) string { return units.Plural(t.Trips, "request") }),
	"cost":    ofTrace(func(t trace.Trace) string { return t.Cost.In(t.Cost.Value()) }),
	"path":    ofTrace(func(t trace.Trace) string { return t.Path.In(t.Path.Value()) }),
	"wakes":   ofTrace(func(t trace.Trace) string { return t.WakeUps.In(t.WakeUps.Value()) }),
	"ends": ofTrace(func(t trace.Trace) string {
		where := " in the client and the server"
		if t.Client != "" {
			where = " in the server"
		}
		return t.Ends.In(t.Ends.Value()) + where
	}),
	"in": func(_ *writer, fs []analysis.Finding) string {
		return rowNoun(fs[0].What) + told(fs[0].Why != "", ", "+fs[0].Why)
	},
	"took":     ofValue(trace.Took, workload.Briefly),
	"whole":    ofValue(trace.Whole, workload.Briefly),
	"took_µs":  ofValue(trace.Took, micros),
	"whole_µs": ofValue(trace.Whole, micros),
	"share":    ofValue(trace.Share, percentage),
	"because":  of(func(f analysis.Finding) string { return f.Why }),
	"direction": func(w *writer, fs []analysis.Finding) string {
		return w.segment(fs[0]).Direction()
	},
	"device": func(w *writer, fs []analysis.Finding) string {
		g := w.segment(fs[0])
		return g.Device + told(g.Where != "", " ("+g.Where+")")
	},
	"try_first": ofTrace(func(t trace.Trace) string { return told(t.Cell.On != sample.Lab, tryFirst) }),
	"untried": func(w *writer, fs []analysis.Finding) string {
		return told(w.segment(fs[0]).Where == trace.ThisMachine, untried)
	},
	"theirs": func(w *writer, fs []analysis.Finding) string {
		its, ok := fs[0].Values[trace.Whole]
		return told(ok, ", with "+w.trace.Against+" "+micros(its))
	},
	"waited": func(_ *writer, fs []analysis.Finding) string {
		return printable.Capital(endpoints.Waited(sample.EvidenceWait{Cause: fs[0].What,
			Tokens: fs[0].N, Sum: fs[0].Values[trace.Took]}, "reply"))
	},
	"requests": of(func(f analysis.Finding) string { return units.Plural(f.N, "request") }),
	"no_reply": of(func(f analysis.Finding) string { return units.Agree(f.N, "is", "are") }),
	"errors":   of(func(f analysis.Finding) string { return endpoints.DNSErrors(f.Values) }),
	"tail": func(_ *writer, fs []analysis.Finding) string {
		x, ok := fs[0].Values[trace.Tail]
		return told(ok, ", and "+workload.Briefly(x)+" of those around the p99")
	},
	"names": of(func(f analysis.Finding) string { return printable.List(f.Names) }),
	"up_to": of(func(f analysis.Finding) string {
		x, ok := f.Values[trace.Took]
		return told(ok, ": up to "+micros(x)+" of a request")
	}),
	"stayed": of(func(f analysis.Finding) string {
		x, ok := f.Values[trace.Whole]
		return told(ok, ", and the others "+micros(x))
	}),
	"so_many": of(func(f analysis.Finding) string {
		return fmt.Sprintf("%d of %s", f.N, units.Plural(f.Of, "request"))
	}),
	"as_the_others": of(func(f analysis.Finding) string {
		if f.N == f.Of {
			return "the network is not divided"
		}
		return "in these, the network is divided as in the others"
	}),
	"so_often": of(func(f analysis.Finding) string {
		return printable.Capital(units.Agree(f.N, "once", units.Plural(f.N, "time")))
	}),
	"room": of(func(f analysis.Finding) string {
		return fmt.Sprint(f.Values[trace.Backlog] + 1) // the kernel lets one more wait
	}),
	"larger": of(larger),
	"who_needs": of(func(f analysis.Finding) string {
		switch {
		case f.Why == trace.Tried && f.N == 0:
			return " In a copy of this machine's network, nobody gains or loses a port " +
				"without that:"
		case f.Why == trace.Tried:
			return " Without that, who reaches " + units.Plural(f.N, "port") + " changes in a copy " +
				"of this machine's network:"
		}
		return told(f.Why == trace.Untried, " What would change without that, this may tell:")
	}),
	"not_tried": of(func(f analysis.Finding) string {
		return told(f.Why == trace.Untried, untried)
	}),
	"stopped": of(func(f analysis.Finding) string {
		return fmt.Sprintf("%.2g of %.2g", f.Values[trace.Stopped], f.Values[trace.Window])
	}),
}

// ofTrace returns the words for a blank that is about a trace: that of a report's finding, or the
// one whose own findings are told.
func ofTrace(say func(trace.Trace) string) blank {
	return func(w *writer, fs []analysis.Finding) string {
		if w.trace != nil {
			return say(*w.trace)
		}
		return say(w.study.(*trace.Report).Traces[fs[0].Rows[0]])
	}
}

// segment returns the segment of a trace's own finding.
func (w *writer) segment(f analysis.Finding) trace.Segment {
	if w.over != "" {
		return w.trace.Its[f.Rows[0]]
	}
	return w.trace.Segments[f.Rows[0]]
}

// backlogs names the settings of programs for the length of the queue of connections.
var backlogs = map[string]string{"apache2": "ListenBacklog", "haproxy": "backlog",
	"httpd": "ListenBacklog", "mariadbd": "back_log", "memcached": "its option -b",
	"mysqld": "back_log", "nginx": "backlog= of its listen", "redis-server": "tcp-backlog",
	"valkey-server": "tcp-backlog"}

// larger returns what makes a server's queue of connections longer.
func larger(f analysis.Finding) string {
	limit := fmt.Sprintf("net.core.somaxconn (%.0f)", f.Values[trace.Somaxconn])
	switch f.Why {
	case trace.ByKernel:
		return "Raise " + limit + ", which limits it, and restart the server"
	case trace.ByKernelApart:
		return "Raise " + limit + " of its network namespace, which limits it, and restart the server, " +
			"as by docker run --sysctl net.core.somaxconn=…"
	}
	setting := cmp.Or(backlogs[f.What], "the backlog with which it listens")
	return "Raise " + setting + ", which " + limit + " limits, and restart the server"
}

// fillTraces sets the text of the findings of a report's traces.
func fillTraces(r Told) {
	var all []*trace.Trace
	switch r := r.(type) {
	case *trace.Report:
		for i := range r.Traces {
			all = append(all, &r.Traces[i])
		}
	case *ladder.Report:
		for _, s := range r.Steps {
			if s.Trace != nil {
				all = append(all, s.Trace)
			}
		}
	}
	for _, t := range all {
		t.Words = refusal(t.Refusal)
		w := &writer{r: r.Base(), study: r, trace: t}
		for i, f := range t.Findings {
			w.over = f.Over
			t.Findings[i].Text = told(f.Over != "", "Over "+f.Over+": ") +
				w.fill(find(f.Code).text, []analysis.Finding{f.Finding})
		}
	}
}

// Served returns the findings of a trace about a server that was watched, in words.
func Served(s *sample.Served) []trace.Finding {
	out := trace.OfServed(s)
	for i, f := range out {
		out[i].Text = new(writer).fill(find(f.Code).text, []analysis.Finding{f.Finding})
	}
	return out
}

// refusal returns why a trace has no rows, or "".
func refusal(x trace.Refusal) string {
	text := told(x.Run != "", "the "+x.Run+" run: ")
	switch x.Refused {
	case trace.EndedEarly:
		return text + "the run ended before the rounds that show the parts of " + x.Of
	case trace.NoTrips:
		return text + "no trip of " + x.Of + " was traced"
	case trace.FewFollowed:
		text += fmt.Sprintf("only %.1f %% of %s's trips were followed", math.Floor(1000*x.Share)/10, x.Of)
		text += told(x.After != "", fmt.Sprintf(": after %s, %s is missing in %.1f %%", x.After, x.Want,
			100*x.Lacking))
		return text + told(x.NoRoom > 0, "; the log had no room for "+units.Plural(x.NoRoom, "event"))
	}
	return ""
}

func addedTo(t trace.Trace) string {
	p, trip := t.Untraced, t.Against+"'s round trip"
	if t.Route() {
		trip = "a request over " + t.Against
	}
	switch {
	case t.Against == "" && len(t.Levels) > 0:
		return "A request over " + t.Label + " takes " + workload.Briefly(t.Levels[0])
	case t.Against == "":
		return "How long a request over " + t.Label + " takes was not measured"
	case p.N == 0:
		return "What " + t.Label + " adds to " + trip + " was not measured"
	case p.Verdict == stats.Costs:
		return fmt.Sprintf("%s adds %s to %s", t.Label, p.Amount(), trip)
	case p.Verdict == stats.Gains:
		return fmt.Sprintf("%s takes %s off %s", t.Label, p.Amount(), trip)
	case p.Verdict == stats.Nothing:
		return fmt.Sprintf("%s adds nothing measurable to %s (at most %s)", t.Label, trip,
			p.In(p.Most()))
	}
	return fmt.Sprintf("What %s adds to %s is not clear yet (%s)", t.Label, trip, p.In(p.Value()))
}

// sums returns how much of what a mode adds is in the path, in wake-ups, not attributed and in a
// relay.
func sums(t trace.Trace) string {
	parts := []string{t.Path.In(t.Path.Value()) + " in the path", t.WakeUps.Value() + " in wake-ups"}
	if t.Unattributed.N > 0 {
		parts = append(parts, t.Unattributed.Value()+" not attributed")
	}
	if t.Relay.N > 0 {
		parts = append(parts, t.Relay.Value()+" in the relay, which tracing slows")
	}
	return printable.List(parts)
}

// named returns the largest parts of a request, or of what a route adds to it.
func named(t trace.Trace) string {
	var say []string
	for _, r := range t.Named() {
		if t.Against == "" {
			say = append(say, r.Name+" "+workload.Briefly(*r.Mine))
		} else {
			say = append(say, r.Added.In(r.Added.Value())+" in "+rowNoun(r.Name)+inOne(t, r))
		}
	}
	if t.Against == "" {
		return strings.Join(say, ", ")
	}
	if t.Unattributed.N > 0 {
		say = append(say, t.Unattributed.In(t.Unattributed.Value())+" not attributed")
	}
	return printable.List(say)
}

// byParts returns the parts of what a route adds, to follow that.
func byParts(t trace.Trace) string {
	parts := named(t)
	switch {
	case parts == "":
		return ""
	case t.Untraced.N == 0:
		return ". Its parts add " + parts
	}
	return ": " + parts
}

// unsure returns what is known of a trace whose parts are not sure, to be followed by the reason.
func unsure(t trace.Trace) string {
	switch {
	case t.Against == "" && len(t.Levels) == 0:
		return "A request over " + t.Label + " takes about " + workload.Briefly(t.Request()) +
			" while it is traced (" + named(t) + ")"
	case t.Against == "":
		return addedTo(t) + ". Where is not sure (" + named(t) + ")"
	case t.Untraced.N == 0:
		return addedTo(t) + ", and its parts are not sure"
	}
	return addedTo(t) + ". Where is not sure"
}

// inOne says which of two routes lacks a part, or "".
func inOne(t trace.Trace, r trace.Row) string {
	switch {
	case r.Its == nil:
		return " (" + t.Against + " lacks it)"
	case r.Mine == nil:
		return " (" + t.Label + " lacks it)"
	}
	return ""
}

// rowNoun returns a row's name as a noun of a sentence.
func rowNoun(row string) string {
	if name, ok := strings.CutPrefix(row, "relay "); ok {
		return name
	}
	return "the " + row
}

func micros(s float64) string { return fmt.Sprintf("%.1f µs", 1e6*s) }
