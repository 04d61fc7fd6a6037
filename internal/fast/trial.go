package fast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

// Trial measures ports with fast and without it, in turns, and keeps it only if that helped.
type Trial struct {
	Want   Choice
	Speaks string        // a word of Speeches
	Budget time.Duration // for all rounds
	Lease  time.Duration // of what is kept
	// Say is told what goes on, in a line each; nil: nobody.
	Say func(string)
}

// Tried is what came of a trial.
type Tried struct {
	Kept   bool        `json:"kept"`
	Why    string      `json:"why"`
	Rounds int         `json:"rounds"`
	Ports  []TriedPort `json:"ports"`
}

// TriedPort is a port that was measured.
type TriedPort struct {
	Dial    netip.AddrPort `json:"dial"`
	Speaks  string         `json:"speaks"`
	Figures []Figure       `json:"figures"`
}

// Figure is one thing that was measured with fast and without it. Before and After are
// medians over rounds, in the unit; Ratio is the median of the rounds' own ratios, with its
// 95 % interval; Floor is how far the state before differs from itself.
type Figure struct {
	What    string        `json:"what"`
	Unit    string        `json:"unit"`
	Before  float64       `json:"before"`
	After   float64       `json:"after"`
	Ratio   float64       `json:"ratio"`
	Low     float64       `json:"low"`
	High    float64       `json:"high"`
	Floor   float64       `json:"noise_floor"`
	Verdict stats.Verdict `json:"verdict"`
}

// What a figure is of.
const (
	Connecting = "connecting" // a new connection with its first answer
	Asking     = "request"    // over a kept connection
	Moving     = "throughput" // of requests that move much
)

// Bounds of a trial.
const (
	slice     = 100 * time.Millisecond // of one port in one state
	greetings = 3                      // new connections in a slice, before requests
	unrenewed = 10 * time.Second       // what ends a trial that is killed
	same      = 0.02                   // what is no difference
)

// TrialBudget is how long a trial takes unless it is told.
const TrialBudget = 20 * time.Second

// The states of a round; before is measured twice, which shows what differs by chance.
const (
	before = iota
	beforeAgain
	after
	states
)

// ErrOn says that a trial needs to begin with fast off.
var ErrOn = &path.UnsupportedError{Missing: "fast is on already: there is no state without it to compare with", Remedy: "sudo toll fast off"}

// switches is what a trial turns on and off, for clients that come from then on.
type switches interface {
	toggle(on bool) error
	// refresh has what is turned on be what the machine now has.
	refresh(ctx context.Context) error
}

// Run measures, and leaves fast on if it was better somewhere and worse nowhere. In any other
// case, an error and the end of the context among them, all is as it was.
func (t *Trial) Run(ctx context.Context) (out *Tried, err error) {
	if IsOn() {
		return nil, ErrOn
	}
	targets, err := t.targets(ctx)
	if err != nil {
		return nil, err
	}
	for _, x := range targets {
		t.say(fmt.Sprintf("measuring %s (%s) with fast and without, in turns, for %s; local clients of the port meet both", x.dial, x.speech.name, t.Budget))
	}
	f, err := TurnOn(t.Want)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil || !out.Kept {
			_, errOff := TurnOff()
			err = errors.Join(err, errOff)
		}
	}()
	if out, err = t.measure(ctx, targets, f); err != nil || !out.Kept {
		return out, err
	}
	_, err = f.Update(ctx, t.Lease)
	return out, err
}

func (t *Trial) say(text string) {
	if t.Say != nil {
		t.Say(text)
	}
}

// target is a port that is asked.
type target struct {
	dial   netip.AddrPort
	speech speech
}

func (t *Trial) targets(ctx context.Context) (out []target, err error) {
	facts, err := (&Fast{}).read(ctx)
	if err != nil {
		return nil, err
	}
	for _, port := range t.Want.Ports {
		for _, c := range facts.Containers {
			for _, p := range c.Published {
				if p.Proto != "tcp" || p.Host.Port() != port || slices.ContainsFunc(out, func(o target) bool { return o.dial.Port() == port }) {
					continue
				}
				x := target{dial: p.Host}
				if d, ok := dials(p.Host); ok {
					x.dial = d
				}
				if t.Speaks == auto {
					x.speech, err = recognize(ctx, x.dial.String(), p.Port)
				} else {
					x.speech, err = speechOf(t.Speaks, x.dial.String())
				}
				if err == nil {
					err = try(ctx, x.dial.String(), x.speech, answering)
				}
				if err != nil && !errors.Is(err, errLast) {
					return nil, fmt.Errorf("ask port %d: %w", port, err)
				}
				out = append(out, x)
			}
		}
	}
	if len(out) == 0 {
		return nil, &path.UnsupportedError{Missing: "no running container publishes these ports over TCP", Remedy: "docker ps lists what is published"}
	}
	return out, nil
}

// toggle turns on or off what the last Update put, for less time than a trial that is killed
// should matter. It reads nothing of the machine, which would disturb what is measured next.
func (f *Fast) toggle(on bool) error {
	var err error
	switch {
	case f.table != nil && on:
		err = f.table.Renew(unrenewed)
	case f.table != nil:
		err = f.table.Stop()
	}
	return errors.Join(err, f.toggleLinks(on))
}

// refresh puts what Decide and DecideLinks say; a trial without anything to turn on is none.
func (f *Fast) refresh(ctx context.Context) error {
	left, err := f.Update(ctx, unrenewed)
	if err != nil || f.table != nil && len(f.put) > 0 || len(f.wanted) > 0 {
		return err
	}
	why := "it changed meanwhile"
	if len(left.Ports) > 0 {
		why = left.Ports[0].Why
	} else if len(left.Links) > 0 {
		why = left.Links[0].Why
	}
	return &path.UnsupportedError{Missing: "there is nothing to turn on: " + why, Remedy: "toll fast on without --measure says more"}
}

func (f *Fast) toggleLinks(on bool) (err error) {
	if st, err := f.noted(); st == nil {
		return err
	}
	lock, err := lockSoon()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	var want []int
	if on {
		want = f.wanted
	}
	_, _, err = f.setLinks(want, unrenewed)
	return err
}

// measure takes turns until the budget is spent.
func (t *Trial) measure(ctx context.Context, targets []target, to switches) (*Tried, error) {
	out := &Tried{}
	var series []*[states]map[string]map[int]float64 // by target, state, what and round
	for range targets {
		s := &[states]map[string]map[int]float64{}
		for i := range s {
			s[i] = map[string]map[int]float64{}
		}
		series = append(series, s)
	}
	refreshed := time.Time{}
	for end := time.Now().Add(t.Budget); out.Rounds < stats.MinJudged || time.Now().Before(end); out.Rounds++ {
		if time.Since(refreshed) > unrenewed/3 {
			if err := to.refresh(ctx); err != nil {
				return nil, err
			}
			refreshed = time.Now()
		}
		for _, state := range rand.Perm(states) {
			if err := to.toggle(state == after); err != nil {
				return nil, err
			}
			for i, x := range targets {
				figures, err := x.visit(ctx, slice)
				if err = errors.Join(err, context.Cause(ctx)); err != nil {
					return nil, fmt.Errorf("ask %s: %w", x.dial, err)
				}
				for what, v := range figures {
					if series[i][state][what] == nil {
						series[i][state][what] = map[int]float64{}
					}
					series[i][state][what][out.Rounds] = v
				}
			}
		}
	}
	for i, x := range targets {
		p := TriedPort{Dial: x.dial, Speaks: x.speech.name}
		for _, what := range []string{Connecting, Asking, Moving} {
			if f, ok := figure(what, series[i]); ok {
				p.Figures = append(p.Figures, f)
			}
		}
		out.Ports = append(out.Ports, p)
	}
	out.judge()
	return out, nil
}

// visit asks a port for so long: the median time of a new connection, and of a request over
// a kept one, in s, or what requests move, in bit/s.
func (x target) visit(ctx context.Context, long time.Duration) (map[string]float64, error) {
	var connecting, asking []float64
	var moved, first int64 // over kept connections, and by first requests
	var spent, firstTook time.Duration
	for end := time.Now().Add(long); len(connecting) < greetings || time.Now().Before(end); {
		began := time.Now()
		c, rw, err := dialTo(ctx, x.dial.String(), answering)
		if err != nil {
			return nil, err
		}
		if x.speech.open != nil {
			err = x.speech.open(rw)
		}
		var n int64
		if err == nil && x.speech.ask != nil {
			n, err = x.speech.ask(rw)
		}
		took := time.Since(began)
		connecting = append(connecting, took.Seconds())
		first, firstTook = first+n, firstTook+took
		for last := len(connecting) >= greetings; err == nil && last && x.speech.ask != nil && time.Now().Before(end) && ctx.Err() == nil; {
			began := time.Now()
			_ = c.SetDeadline(began.Add(answering))
			var n int64
			n, err = x.speech.ask(rw)
			if err == nil || errors.Is(err, errLast) {
				took := time.Since(began)
				asking, moved, spent = append(asking, took.Seconds()), moved+n, spent+took
			}
		}
		c.Close()
		if err != nil && !errors.Is(err, errLast) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	out := map[string]float64{Connecting: stats.Median(connecting)}
	switch {
	case len(asking) == 0 && first/int64(len(connecting)) >= bulkReply: // a server that keeps no connection
		out[Moving] = 8 * float64(first) / firstTook.Seconds()
	case len(asking) == 0:
	case x.speech.bulk || moved/int64(len(asking)) >= bulkReply:
		out[Moving] = 8 * float64(moved) / spent.Seconds()
	default:
		out[Asking] = stats.Median(asking)
	}
	return out, nil
}

// bulkReply is an answer, in bytes, whose rate counts rather than its time.
const bulkReply = 64 << 10

func figure(what string, s *[states]map[string]map[int]float64) (f Figure, ok bool) {
	values := func(m map[int]float64) (out []float64) {
		for _, v := range m {
			out = append(out, v)
		}
		return out
	}
	was, again, now := s[before][what], s[beforeAgain][what], s[after][what]
	if len(was) == 0 || len(again) == 0 || len(now) == 0 {
		return f, false
	}
	ratio, control := stats.Summarize(stats.Ratios(now, was)), stats.Summarize(stats.Ratios(again, was))
	f = Figure{What: what, Unit: "s", Before: stats.Median(values(was)), After: stats.Median(values(now)),
		Ratio: ratio.Median, Low: ratio.Low, High: ratio.High, Floor: stats.Floor(control)}
	if what == Moving {
		f.Unit = "bit/s"
	}
	f.Verdict = stats.Judge(ratio, f.Floor, same, what == Moving)
	return f, true
}

// judge decides: better somewhere, worse nowhere.
func (t *Tried) judge() {
	better, worse, unclear := 0, 0, 0
	for _, p := range t.Ports {
		for _, f := range p.Figures {
			switch f.Verdict {
			case stats.Better:
				better++
			case stats.Worse:
				worse++
			case stats.Unclear:
				unclear++
			}
		}
	}
	switch {
	case worse > 0 && better > 0:
		t.Why = "something was certainly worse, although something else was better"
	case worse > 0:
		t.Why = "something was certainly worse, and nothing better"
	case better > 0:
		t.Kept, t.Why = true, "something was certainly better, and nothing certainly worse"
	case unclear > 0:
		t.Why = "nothing was certainly better; a longer --budget or a quieter machine may tell"
	default:
		t.Why = "nothing was better"
	}
}
