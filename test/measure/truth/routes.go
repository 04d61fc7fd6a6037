package truth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	judged "github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	routeLimit = 0.2e-6 // s; how far another part of a request may move
	wakeLimit  = 0.5e-6 // the same of a part in which a process is woken up
)

// plantedRoute is a difference between two routes to servers that are otherwise alike.
type plantedRoute struct {
	name, what string
	row, part  string // that moves; without a part, the whole row
	also       string // a row, or part, that has the rest of what it costs; "": none
	planted    routeKind
	plain      routeKind
	known      time.Duration // what it costs; 0: clients of this program measure that
	// dumped means that tcpdump measures what it costs between the devices of these clients and the
	// server. Clients also measure what a longer way costs both programs, whose caches are colder
	// after it.
	dumped bool
}

// routeKind says what is in a route.
type routeKind struct {
	answer  answering
	relay   bool
	spin    time.Duration // of the relay, each way
	rules   int           // in FORWARD
	bridges int
	period  time.Duration // of which the server may have limitedTo of CPU time; 0: it has no limit
}

const (
	routeSpin  = 20 * time.Microsecond
	routeSleep = time.Millisecond
	large      = 1 << 20
	rules      = 100
	limitedTo  = 2 * time.Millisecond
	period     = 10 * time.Millisecond
)

// Both routes have what is planted, and one of them twice of it. A route without it would differ in
// other parts, too: a server that never sleeps finds its caches warm, and one that needs less CPU
// time than its client takes the CPU from it as soon as a request comes.
var plantedRoutes = []plantedRoute{
	{name: "a server that spins", what: routeSpin.String(), row: "server", part: "its own CPU time",
		plain:   routeKind{answer: answering{Spin: routeSpin}},
		planted: routeKind{answer: answering{Spin: 2 * routeSpin}}, known: routeSpin},
	{name: "a server that sleeps", what: routeSleep.String(), row: "server", part: "asleep",
		plain:   routeKind{answer: answering{Sleep: routeSleep}},
		planted: routeKind{answer: answering{Sleep: 2 * routeSleep}}, known: routeSleep},
	{name: "a relay that spins", what: spin.String() + " each way", row: "relay",
		part: "its own CPU time", plain: routeKind{relay: true, spin: spin},
		planted: routeKind{relay: true, spin: 2 * spin}, known: 2 * spin},
	{name: "a long reply", what: "1 MiB", row: "transfer", also: "client",
		plain:   routeKind{answer: answering{Size: large}},
		planted: routeKind{answer: answering{Size: 2 * large}}},
	{name: "rules in FORWARD", what: strconv.Itoa(rules), row: "network",
		part: sample.LegRouting, dumped: true,
		plain: routeKind{rules: rules}, planted: routeKind{rules: 2 * rules}},
	{name: "a second bridge", what: "behind the first", row: "network",
		part: sample.LegBridge, also: sample.LegVeth, // which joins the two
		planted: routeKind{bridges: 2}, dumped: true},
	{name: "a CPU quota", what: fmt.Sprintf("%v in a period of %v", limitedTo, period), row: "server",
		part:    "waiting for a CPU",
		plain:   routeKind{answer: answering{Burn: limitedTo}, period: period},
		planted: routeKind{answer: answering{Burn: limitedTo}, period: 2 * period}},
}

// routes shows that toll trace ADDRESS finds, and sizes, what is planted in a route to a server.
func (t *trial) routes(ctx context.Context) ([]table, error) {
	out := table{title: "Traces of routes: planted differences",
		text: fmt.Sprintf("`toll trace plain=… planted=…` to two servers in network namespaces "+
			"behind bridges, %d traces of %s each. Both have what is planted, and one of them twice "+
			"of it. What that costs is known, or is measured for %s by clients of this program, "+
			"without toll; in the network by tcpdump at both ends of their requests. All run "+
			"on one CPU, so that wake-ups take the same time with and without it. Of the network "+
			"the right part is that of the device, bridge or router. A row "+
			"holds if the right part moves by that amount ±%.0f %%, and no other by more "+
			"than %.1f µs, or %.1f µs of one with a wake-up. It is unclear if an interval over "+
			"rounds has values on both sides of a limit. Of a long reply, which the client goes on "+
			"reading once all of it has come, the client's part counts, too. The last row is a "+
			"server that answers 300 clients one after another, on all CPUs: `--attach` must say "+
			"what these measure themselves, less what it says that following slows.",
			t.scale.tracePlant.n, t.scale.tracePlant.each, t.scale.traceReference,
			percent*plantedShare, routeLimit/microsecond, wakeLimit/microsecond),
		head: []string{"planted", "is", "costs", "the part moved by", "others that moved, or may have"}}
	for _, d := range plantedRoutes {
		v, cells, err := t.findInRoute(ctx, d)
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil { // others may still be found
			t.say("trace-routes: %s: %v", d.name, err)
			v, cells = no, []string{firstLine(err.Error()), "", ""}
		}
		out.add(v, append([]string{d.name, d.what}, cells...)...)
	}
	v, cells, err := t.attached(ctx)
	if err != nil {
		v, cells = no, []string{firstLine(err.Error()), "", ""}
	}
	out.add(v, append([]string{"parallel clients", strconv.Itoa(crowdSize)}, cells...)...)
	sums, err := t.sums(ctx)
	return []table{out, sums}, err
}

// findInRoute returns the verdict of a planted difference, and the cells of its row.
func (t *trial) findInRoute(ctx context.Context, d plantedRoute) (v verdict, cells []string,
	err error) {
	w, err := newRouteWorld(t.dir)
	if err != nil {
		return no, nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	w.beside = true
	plain, err := w.add(d.plain)
	if err != nil {
		return no, nil, err
	}
	planted, err := w.add(d.planted)
	if err != nil {
		return no, nil, err
	}
	known, err := t.knownOf(w, d, plain, planted)
	if err != nil {
		return no, nil, err
	}
	t.say("trace-routes: %s: %s costs %s", d.name, d.what, known)
	m := moved{others: map[string][]amount{}}
	for i := range t.scale.tracePlant.n {
		r, err := w.trace(ctx, t, t.seed+uint64(i), plain, planted)
		if err == nil {
			err = m.addRoute(r, d)
		}
		if err != nil {
			return no, nil, err
		}
		t.say("trace-routes: %s: run %d of %d: %s; others: %s", d.name, i+1, t.scale.tracePlant.n,
			m.right[i], m.last())
	}
	return m.verdict(known, routeLimits), []string{known.String(), mean(m.right).String(),
		m.text(routeLimits)}, nil
}

// knownOf returns what is planted costs a request, without toll.
func (t *trial) knownOf(w *routeWorld, d plantedRoute, plain, planted string) (a amount,
	err error) {
	if d.known > 0 {
		return amount{at: d.known.Seconds()}, nil
	}
	ask := func() error {
		return onFirstCPU(func() (err error) {
			a, err = w.compare(plain, planted, t.scale.traceReference)
			return err
		})
	}
	if d.dumped {
		return w.dumped(plain, planted, ask)
	}
	err = ask()
	return a, err
}

// addRoute adds a trace of the routes "plain" and "planted".
func (m *moved) addRoute(r *judged.Report, d plantedRoute) error {
	t, err := traceOf(r, "planted")
	if err != nil {
		return err
	}
	var right amount
	found := false
	for _, row := range t.Rows {
		if row.Name == "not attributed" {
			continue
		}
		rows := []judged.Row{row}
		if name, _, _ := strings.Cut(row.Name, " "); name == d.row || row.Name == d.row {
			if d.part != "" {
				rows = row.Parts
			}
			if d.part != "" && len(rows) == 0 {
				return fmt.Errorf("%s is not divided", row.Name)
			}
		}
		for _, x := range rows {
			a := amountOf(x.Added)
			switch {
			case d.also != "" && x.Name == d.also:
				right = right.plus(a)
			case len(rows) > 1 && isPart(x.Name, d.part), d.part == "" && x.Name == d.row:
				right, found = right.plus(a), true
			case len(rows) > 1:
				m.others[row.Name+": "+x.Name] = append(m.others[row.Name+": "+x.Name], a)
			default:
				m.others[x.Name] = append(m.others[x.Name], a)
			}
		}
	}
	if !found {
		return fmt.Errorf("no row %s %s", d.row, d.part)
	}
	m.right = append(m.right, right)
	return nil
}

// isPart reports whether the name of a part of a row is the given one, with or without its devices.
func isPart(name, part string) bool { return name == part || strings.HasPrefix(name, part+" ") }

// traceOf returns a route's trace, which has parts.
func traceOf(r *judged.Report, route string) (t judged.Trace, err error) {
	i := slices.IndexFunc(r.Traces, func(t judged.Trace) bool { return t.Label == route })
	if i < 0 {
		return t, fmt.Errorf("%d traces, none of the %s route: failed: %v", len(r.Traces), route,
			r.Failed)
	}
	if t = r.Traces[i]; t.Words != "" || len(t.Rows) == 0 {
		return t, fmt.Errorf("no parts: %s", t.Words)
	}
	return t, nil
}

// amountOf returns a price with the wider side of its interval.
func amountOf(p analysis.Price) amount {
	return amount{p.Median, max(p.High-p.Median, p.Median-p.Low)}
}

// wakes reports whether a process is woken up in a row.
func wakes(row string) bool {
	first, _, _ := strings.Cut(row, " ")
	return row == "client" || first == "relay" || strings.HasPrefix(row, "server") &&
		!strings.HasPrefix(row, "server's")
}

// routeLimits returns how far a row that is not meant to may move, in s.
func routeLimits(row string) float64 {
	if wakes(row) {
		return wakeLimit
	}
	return routeLimit
}

// traceArgs returns the arguments that trace a plain route and another one.
func (t *trial) traceArgs(name, plain, other string, seed uint64) []string {
	return []string{"trace", "plain=http://" + plain + "/", name + "=http://" + other + "/",
		"--budget",
		t.scale.tracePlant.each.String(), "--seed", strconv.FormatUint(seed, 10), "--quiet",
		"--force",
		"--format", "json"}
}

// trace returns toll's report of the two routes.
func (w *routeWorld) trace(ctx context.Context, t *trial, seed uint64, plain, planted string) (
	*judged.Report, error) {
	out, err := w.toll(ctx, t, t.traceArgs("planted", plain, planted, seed)...)
	if err != nil {
		return nil, err
	}
	return readTrace(out)
}

const crowdSize = 300

// attached compares what toll says of the requests of many clients with what these measure.
func (t *trial) attached(ctx context.Context) (v verdict, cells []string, err error) {
	w, err := newRouteWorld(t.dir)
	if err != nil {
		return no, nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	at, err := w.add(routeKind{answer: answering{Spin: routeSpin, Alone: true}})
	if err != nil {
		return no, nil, err
	}
	crowd, err := w.crowd(at, crowdSize)
	if err != nil {
		return no, nil, err
	}
	out, err := w.toll(ctx, t, "trace", "--attach", at, "--budget",
		t.scale.tracePlant.each.String(), "--quiet", "--force", "--format", "json")
	costs, errClients := crowd.end()
	if err := errors.Join(err, errClients); err != nil {
		return no, nil, err
	}
	var served sample.Served
	if err := json.Unmarshal(out, &served); err != nil || served.Requests == 0 {
		return no, nil, fmt.Errorf("%d requests: %w", served.Requests, err)
	}
	got := served.Whole.Mean * (1 - endpoints.Slowed(&served).Median)
	t.say("trace-routes: %d clients: %s by themselves, %s attached", crowdSize, micros(costs),
		micros(got))
	return holdsIf(math.Abs(got-costs) <= plantedShare*costs), []string{micros(costs), micros(got),
		""}, nil
}
