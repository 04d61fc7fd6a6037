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
	Speaks string // a word of Speeches; "" with a Load
	// Load is what each port is asked instead, at the address that it is dialled by; nil: what
	// Speaks says.
	Load   func(dial netip.AddrPort) (*Load, error)
	Budget time.Duration // for all rounds
	Lease  time.Duration // of what is kept
	// Say is told what goes on, in a line each; nil: nobody.
	Say func(string)
}

// Load is what a port is asked, visit by visit.
type Load struct {
	Name    string   // as it is shown: no secrets
	Note    string   // what its metrics are of, in one clause
	Metrics []Metric // in the order in which they are shown
	// Visit asks for about so long, and not much longer than the context lasts. It returns a
	// figure of each metric that it found, in the metric's unit. Every visit begins with
	// connections of its own: those that are open stay on the way that they have.
	Visit func(ctx context.Context, long time.Duration) (map[string]float64, error)
	Close func() error // when nothing is asked any more; nil: nothing is to be done
}

// Metric is one thing that visits of a load measure.
type Metric struct {
	What   string
	Unit   string // base unit; "": of a number
	Higher bool   // is better
}

// Tried is what came of a trial.
type Tried struct {
	Kept   bool        `json:"kept"`
	Why    string      `json:"why"`
	Rounds int         `json:"rounds"`
	Ports  []TriedPort `json:"ports"`
	// Notes say what the figures are of.
	Notes []string `json:"notes"`
}

// TriedPort is a port that was measured.
type TriedPort struct {
	Dial    netip.AddrPort `json:"dial"`
	Speaks  string         `json:"speaks"`
	Figures []Figure       `json:"figures"`
	// Taken is how many connections to the port took a shortcut meanwhile, other clients'
	// included; nil if the part connect was not measured.
	Taken *uint64 `json:"taken,omitempty"`
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

// What a figure of a speech is of.
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

// renewed is how often a visit's state is renewed. A var, so that tests need not wait.
var renewed = unrenewed / 3

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
	// keep has a state last while a visit goes on.
	keep(ctx context.Context, on bool) error
	// taken counts the connections that took shortcuts, by port; nil if there are to be none.
	taken() (map[uint16]uint64, error)
}

// Run measures, and leaves fast on if it was better somewhere and worse nowhere. In any other
// case, an error and the end of the context among them, all is as it was.
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
		if errors.Is(err, ErrOff) { // by somebody else, and what is on now, if anything is, is theirs
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

// announce says what is about to be measured, and if that takes longer than was asked for.
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

// target is a port that is asked.
type target struct {
	dial netip.AddrPort
	load *Load
	took time.Duration // by a first visit, which counted for nothing
}

func closeAll(targets []target) (err error) {
	for _, x := range targets {
		if x.load.Close != nil {
			err = errors.Join(err, x.load.Close())
		}
	}
	return err
}

// targets are the ports that are asked, each of which answered once. The caller closes them,
// also after an error.
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

// loadOf is what a port is asked.
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

// toggle turns on or off what the last Update put, for less time than a trial that is killed
// should matter. It reads nothing of the machine, which would disturb what is measured next.
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

// still is ErrOff if somebody turned it off meanwhile, who is to be obeyed at once.
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

// refresh puts what decideRoutes and decideLinks say; a trial without anything to turn on is none.
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

// keep renews the lease before it runs out, and looks at the machine as watch does: rules that
// came meanwhile hold for a long visit, too. Without fast as much is read, so that both states
// are disturbed alike; of links the note is renewed.
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

// series are figures by state, what and round.
type series [states]map[string]map[int]float64

// measure takes turns until the budget is spent.
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

// visit asks a port once in a state, which lasts as long as the visit.
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
				cancel(err) // of a visit that is over, nil was first
			}
		}
	}()
	figures, err = x.load.Visit(during, slice)
	stopped := context.Cause(during) // by the caller, or because the state did not last
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
	if ratio.N == 0 || control.N == 0 { // all are 0: there is nothing to compare
		return f, false
	}
	f = Figure{What: m.What, Unit: m.Unit, Before: stats.Median(values(was)), After: stats.Median(values(now)),
		Ratio: ratio.Median, Low: ratio.Low, High: ratio.High, Floor: stats.Floor(control)}
	f.Verdict = stats.Judge(ratio, f.Floor, same, m.Higher)
	return f, true
}

// judge decides: better somewhere, worse nowhere. Without links only what took a shortcut can
// have been better.
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
