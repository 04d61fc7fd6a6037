package fast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// Trial measures ports with and without fast, in turns, and keeps fast only if it helped.
type Trial struct {
	Want   Choice
	Speaks string // one of Speeches; "" with a Load
	// Load returns the load of a port, given the address that clients dial; nil: the load is what
	// Speaks says.
	Load   func(dial netip.AddrPort) (*Load, error)
	Budget time.Duration // for all rounds
	Lease  time.Duration // the lease if fast is kept
	// Say is called with one line for each event; nil: nothing is reported.
	Say func(string)
}

// Load is a series of requests to a port, divided into visits.
type Load struct {
	Name    string   // the name to show, without secrets
	Note    string   // what its metrics measure, in one clause
	Metrics []Metric // in the order of display
	// Visit sends requests for about the time long, and not much longer than the context lasts. It
	// returns a value for each metric that it measured, in the metric's unit. Every visit must open
	// its own connections: open ones stay on their path when fast is turned on or off.
	Visit func(ctx context.Context, long time.Duration) (map[string]float64, error)
	Close func() error // called after the last visit; nil: there is nothing to close
}

// Metric is a quantity that the visits of a load measure.
type Metric struct {
	What   string
	Unit   string // base unit; "": a plain number
	Higher bool   // whether higher is better
}

// Tried is the result of a trial.
type Tried struct {
	Kept   bool        `json:"kept"`
	Why    string      `json:"why"`
	Rounds int         `json:"rounds"`
	Ports  []TriedPort `json:"ports"`
	// Notes explain the figures.
	Notes []string `json:"notes"`
}

// TriedPort is the result of one measured port.
type TriedPort struct {
	Dial    netip.AddrPort `json:"dial"`
	Speaks  string         `json:"speaks"`
	Figures []Figure       `json:"figures"`
	// Taken is the number of connections to the port that took a shortcut during the trial,
	// including other clients'; nil if the part connect was not measured.
	Taken *uint64 `json:"taken,omitempty"`
}

// Figure is one metric, measured with and without fast. Before and After are medians over the
// rounds, in Unit. Ratio is the median of the rounds' ratios, with its 95 % interval. Floor is the
// difference between two measurements without fast.
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

// The metrics of a speech.
const (
	Connecting = "connecting" // a new connection with its first answer
	Asking     = "request"    // a request over a kept connection
	Moving     = "throughput" // the rate of large requests
)

// The limits of a trial.
const (
	slice     = 100 * time.Millisecond // the time for one port in one state
	greetings = 3                      // new connections in a slice, before requests
	unrenewed = 10 * time.Second       // the lease after which a killed trial has no effect
	same      = 0.02                   // relative differences up to this count as none
)

// renewed is the interval at which a visit's state is renewed. Tests shorten it.
var renewed = unrenewed / 3

// TrialBudget is the default duration of a trial.
const TrialBudget = 20 * time.Second

// The states of a round. The state before is measured twice, to show the differences by chance.
const (
	before = iota
	beforeAgain
	after
	states
)

// ErrOn is returned if fast is on when a trial starts.
var ErrOn = &path.UnsupportedError{Missing: "fast is on already: there is no state without it to compare with", Remedy: "sudo toll fast off"}

// switches is what a trial turns on and off, for clients that connect afterwards.
type switches interface {
	toggle(on bool) error
	// refresh updates what is turned on to the machine's present state.
	refresh(ctx context.Context) error
	// keep maintains a state while a visit lasts.
	keep(ctx context.Context, on bool) error
	// taken returns the number of connections that took shortcuts, by port; nil without shortcuts.
	taken() (map[uint16]uint64, error)
}

// Run measures, and leaves fast on if some metric was better and none was worse. Otherwise, and
// after an error or the end of ctx, it restores the state before.
func (t *Trial) Run(ctx context.Context) (out *Tried, err error) {
	if IsOn() {
		return nil, ErrOn
	}
	targets, err := t.targets(ctx)
	defer func() { err = errors.Join(err, closeAll(targets)) }()
	if err != nil {
		return nil, err
	}
	t.announce(targets)
	f, err := TurnOn(t.Want)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if errors.Is(err, ErrOff) { // somebody else turned it off; what is on now, if anything, is theirs
			return
		}
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

// announce reports what is about to be measured, and whether that takes longer than the budget.
func (t *Trial) announce(targets []target) {
	var round time.Duration
	for _, x := range targets {
		t.say(fmt.Sprintf("measuring %s (%s) with fast and without, in turns, for %s; local clients of the port meet both", x.dial, x.load.Name, t.Budget))
		round += states * x.took
	}
	if least := stats.MinJudged * round; least > t.Budget+t.Budget/10 {
		t.say(fmt.Sprintf("the %d rounds that a verdict needs may take %s, longer than --budget %s: a visit took %s", stats.MinJudged,
			least.Round(time.Second), t.Budget, (round / states).Round(time.Millisecond)))
	}
}

func (t *Trial) say(text string) {
	if t.Say != nil {
		t.Say(text)
	}
}

// target is a port to measure.
type target struct {
	dial netip.AddrPort
	load *Load
	took time.Duration // the duration of a first visit, whose results do not count
}

func closeAll(targets []target) (err error) {
	for _, x := range targets {
		if x.load.Close != nil {
			err = errors.Join(err, x.load.Close())
		}
	}
	return err
}

// targets returns the ports to measure. Each has answered once. The caller closes them, even after
// an error.
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
				if x.load, err = t.loadOf(ctx, x.dial, p.Port); err != nil {
					return out, fmt.Errorf("ask port %d: %w", port, err)
				}
				out = append(out, x)
				began := time.Now()
				if _, err := x.load.Visit(ctx, slice); err != nil {
					return out, fmt.Errorf("ask port %d: %w", port, errors.Join(err, ctx.Err()))
				}
				out[len(out)-1].took = time.Since(began)
			}
		}
	}
	if len(out) == 0 {
		return nil, &path.UnsupportedError{Missing: "no running container publishes these ports over TCP", Remedy: "docker ps lists what is published"}
	}
	return out, nil
}

// loadOf returns the load of a port.
func (t *Trial) loadOf(ctx context.Context, dial netip.AddrPort, containerPort uint16) (*Load, error) {
	if t.Load != nil {
		return t.Load(dial)
	}
	at := dial.String()
	if t.Speaks == auto {
		s, err := recognize(ctx, at, containerPort)
		if err != nil {
			return nil, err
		}
		return s.load(at), nil
	}
	s, err := speechOf(t.Speaks, at)
	if err == nil {
		err = try(ctx, at, s, answering)
	}
	if err != nil && !errors.Is(err, errLast) {
		return nil, err
	}
	return s.load(at), nil
}

// toggle turns on or off what the last Update set, with a lease so short that a killed trial does
// no harm. It does not read the machine, which would disturb the measurement that follows.
func (f *Fast) toggle(on bool) error {
	if err := f.still(); err != nil {
		return err
	}
	var err error
	switch {
	case f.table != nil && on:
		err = f.table.Renew(unrenewed)
	case f.table != nil:
		err = f.table.Stop()
	}
	return errors.Join(err, f.toggleLinks(on))
}

// still returns ErrOff if somebody turned fast off meanwhile; the trial must obey at once.
func (f *Fast) still() error {
	gone := f.table != nil && !f.table.Current()
	if len(f.wanted) > 0 {
		st, err := f.noted()
		if err != nil {
			return err
		}
		gone = gone || st == nil
	}
	if gone {
		return fmt.Errorf("it was turned off meanwhile: %w", ErrOff)
	}
	return nil
}

// refresh sets what decideRoutes and decideLinks allow. It returns an error if that is nothing,
// because a trial then has nothing to measure.
func (f *Fast) refresh(ctx context.Context) error {
	if err := f.still(); err != nil {
		return err
	}
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

// keep renews the lease before it runs out, and watches the machine as watch does, so that rules
// that change during a long visit take effect. Without fast it reads as much, so that both states
// are disturbed equally; for links it renews the note.
func (f *Fast) keep(ctx context.Context, on bool) error {
	if on {
		return f.refresh(ctx)
	}
	if _, err := f.read(ctx); err != nil {
		return err
	}
	return f.toggle(false)
}

func (f *Fast) taken() (map[uint16]uint64, error) {
	if f.table == nil {
		return nil, nil
	}
	all, err := f.table.Entries()
	out := map[uint16]uint64{}
	for _, e := range all {
		out[e.Dial.Port()] += e.Taken
	}
	return out, err
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

// series holds values by state, metric and round.
type series [states]map[string]map[int]float64

// measure takes turns until the budget is used up.
func (t *Trial) measure(ctx context.Context, targets []target, to switches) (*Tried, error) {
	out := &Tried{Notes: []string{}}
	var all []*series // by target
	for range targets {
		s := &series{}
		for i := range s {
			s[i] = map[string]map[int]float64{}
		}
		all = append(all, s)
	}
	refreshed := time.Time{}
	for end := time.Now().Add(t.Budget); out.Rounds < stats.MinJudged || time.Now().Before(end); out.Rounds++ {
		if time.Since(refreshed) > renewed {
			if err := to.refresh(ctx); err != nil {
				return nil, err
			}
			refreshed = time.Now()
		}
		for _, state := range rand.Perm(states) {
			for i, x := range targets {
				figures, err := x.visit(ctx, to, state == after)
				if err != nil {
					return nil, err
				}
				for what, v := range figures {
					if all[i][state][what] == nil {
						all[i][state][what] = map[int]float64{}
					}
					all[i][state][what][out.Rounds] = v
				}
			}
		}
	}
	taken, err := to.taken()
	if err != nil {
		return nil, err
	}
	for i, x := range targets {
		p := TriedPort{Dial: x.dial, Speaks: x.load.Name}
		if taken != nil {
			n := taken[x.dial.Port()]
			p.Taken = &n
		}
		for _, m := range x.load.Metrics {
			if f, ok := figure(m, all[i]); ok {
				p.Figures = append(p.Figures, f)
			}
		}
		out.Ports = append(out.Ports, p)
		if n := x.load.Note; n != "" && !slices.Contains(out.Notes, n) {
			out.Notes = append(out.Notes, n)
		}
	}
	out.judge(t.Want.With(Links))
	return out, nil
}

// visit visits a port once in a state, and keeps the state until the visit ends.
func (x target) visit(ctx context.Context, to switches, on bool) (figures map[string]float64, err error) {
	if err := to.toggle(on); err != nil {
		return nil, err
	}
	during, cancel := context.WithCancelCause(ctx)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		renew := time.NewTicker(renewed)
		defer renew.Stop()
		for {
			select {
			case <-during.Done():
				return
			case <-renew.C:
			}
			if err := to.keep(during, on); err != nil {
				cancel(err) // does not matter if the visit is over: nil came first
			}
		}
	}()
	figures, err = x.load.Visit(during, slice)
	stopped := context.Cause(during) // by the caller, or because the state could not be kept
	cancel(nil)
	<-kept
	switch {
	case ctx.Err() != nil:
		return nil, errors.Join(err, context.Cause(ctx))
	case stopped != nil:
		return nil, stopped
	case err != nil:
		return nil, fmt.Errorf("ask %s: %w", x.dial, err)
	}
	return figures, nil
}

func figure(m Metric, s *series) (f Figure, ok bool) {
	values := func(m map[int]float64) (out []float64) {
		for _, v := range m {
			out = append(out, v)
		}
		return out
	}
	was, again, now := s[before][m.What], s[beforeAgain][m.What], s[after][m.What]
	if len(was) == 0 || len(again) == 0 || len(now) == 0 {
		return f, false
	}
	ratio, control := stats.Summarize(stats.Ratios(now, was)), stats.Summarize(stats.Ratios(again, was))
	if ratio.N == 0 || control.N == 0 { // all values are 0: there is no ratio
		return f, false
	}
	f = Figure{What: m.What, Unit: m.Unit, Before: stats.Median(values(was)), After: stats.Median(values(now)),
		Ratio: ratio.Median, Low: ratio.Low, High: ratio.High, Floor: stats.Floor(control)}
	f.Verdict = stats.Judge(ratio, f.Floor, same, m.Higher)
	return f, true
}

// judge decides to keep fast if some metric was better and none was worse. Without links it decides
// against fast if no connection took a shortcut.
func (t *Tried) judge(links bool) {
	better, worse, unclear := 0, 0, 0
	none := !links
	for _, p := range t.Ports {
		none = none && p.Taken != nil && *p.Taken == 0
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
	case none:
		t.Why = "no connection took a shortcut, so both measurements used the same path"
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
