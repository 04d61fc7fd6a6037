package fast

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Trial turns fast on and off between the visits of a measurement. Afterwards fast is off.
type Trial struct {
	to        switches
	refreshed time.Time
	end       func() error
}

// unrenewed is the lease after which a killed trial has no effect.
const unrenewed = 10 * time.Second

// renewed is the time between renewals of the lease. Tests shorten it.
var renewed = unrenewed / 3

// ErrOn is returned if fast is on when a trial starts.
var ErrOn = &machine.UnsupportedError{Remedy: "sudo toll fast off",
	Missing: "fast is on already, so the port cannot be measured without it"}

// switches turns fast on and off, for clients that connect afterwards.
type switches interface {
	toggle(on bool) error
	// refresh updates what is turned on to the machine's present state.
	refresh(ctx context.Context) error
	// keep maintains a state while a visit lasts.
	keep(ctx context.Context, on bool) error
	// taken returns the number of connections to the port that took a shortcut. known is false if
	// that does not show whether fast was on.
	taken(port uint16) (n uint64, known bool, err error)
}

// NewTrial prepares fast, so that it only has to be switched. It returns ErrOn if fast is on. The
// caller closes the Trial.
func NewTrial(ctx context.Context, want Choice) (*Trial, error) {
	if IsOn() {
		return nil, ErrOn
	}
	f, err := TurnOn(want)
	if err != nil {
		return nil, err
	}
	t := &Trial{to: f, end: f.endTrial}
	if err := errors.Join(f.refresh(ctx), f.toggle(false)); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	t.refreshed = time.Now()
	return t, nil
}

// Close turns fast off, unless somebody else did.
func (t *Trial) Close() error { return t.end() }

func (f *Fast) endTrial() error {
	gone := errors.Is(f.still(), ErrOff)
	if err := f.Close(); err != nil || gone {
		return err
	}
	_, err := TurnOff()
	return err
}

type visiting = func(context.Context) error

// During calls visit with fast on or off, and keeps that state until visit returns. If the state
// cannot be kept, visit's context ends. It returns ErrOff if somebody else turned fast off, and an
// error if visit's connections to the port did not show the state.
func (t *Trial) During(ctx context.Context, port uint16, on bool, visit visiting) error {
	if time.Since(t.refreshed) > renewed {
		if err := t.to.refresh(ctx); err != nil {
			return err
		}
		t.refreshed = time.Now()
	}
	if err := t.to.toggle(on); err != nil {
		return err
	}
	before, known, err := t.to.taken(port)
	if err != nil {
		return err
	}
	if err := t.kept(ctx, on, visit); err != nil {
		return err
	}
	after, _, err := t.to.taken(port)
	switch {
	case err != nil || !known:
		return err
	case on && after == before:
		return errors.New("no connection took the shortcut")
	case !on && after > before:
		return fmt.Errorf("%s took the shortcut although fast was off",
			units.Plural(int(after-before), "connection"))
	}
	return nil
}

func (t *Trial) kept(ctx context.Context, on bool, visit visiting) error {
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
			if err := t.to.keep(during, on); err != nil {
				cancel(err) // no effect if the visit is over: nil came first
			}
		}
	}()
	err := visit(during)
	stopped := context.Cause(during) // by the caller, or because the state could not be kept
	cancel(nil)
	<-kept
	if stopped != nil && ctx.Err() == nil {
		return stopped
	}
	return err
}

// Published returns the address at which local clients dial a published TCP port, and the port's
// number in the container. It prefers a loopback address, because only that can have a shortcut.
func Published(ctx context.Context, port uint16) (dial netip.AddrPort, inside uint16, err error) {
	facts, err := published(ctx)
	if err != nil {
		return dial, 0, err
	}
	if dial, inside = dialOf(facts, port); inside > 0 {
		return dial, inside, nil
	}
	return dial, 0, &machine.UnsupportedError{Remedy: "docker ps lists what is published",
		Missing: fmt.Sprintf("no running container publishes port %d over TCP", port)}
}

// dialOf returns 0 as the number in the container if nothing publishes the port.
func dialOf(facts *ports.Facts, port uint16) (dial netip.AddrPort, inside uint16) {
	for _, c := range facts.Containers {
		for _, p := range c.Published {
			if p.Proto != "tcp" || p.Host.Port() != port {
				continue
			}
			if d, ok := dials(p.Host); ok {
				return d, p.Port
			}
			if inside == 0 {
				dial, inside = p.Host, p.Port
			}
		}
	}
	return dial, inside
}

// toggle turns on or off what the last Update set, with a lease so short that a killed trial does
// no harm. It does not read the machine, which would disturb the measurement.
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

// still returns an error that wraps ErrOff if somebody else turned fast off.
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
		return fmt.Errorf("it was turned off during the measurement: %w", ErrOff)
	}
	return nil
}

// refresh returns an error if neither a route nor a link is allowed, because then nothing could be
// measured.
func (f *Fast) refresh(ctx context.Context) error {
	if err := f.still(); err != nil {
		return err
	}
	left, err := f.Update(ctx, unrenewed)
	if err != nil || f.table != nil && len(f.put) > 0 || len(f.wanted) > 0 {
		return err
	}
	want, err := f.choice()
	if err != nil {
		return err
	}
	return left.Refuse(want)
}

// keep updates fast as a Watcher does, so that rules that change during a long visit take effect.
// While fast is off it reads as much, so that both states are disturbed equally.
func (f *Fast) keep(ctx context.Context, on bool) error {
	if on {
		return f.refresh(ctx)
	}
	want, err := f.choice()
	if err != nil {
		return err
	}
	facts, err := published(ctx)
	if err != nil {
		return err
	}
	if f.table != nil {
		routes, _ := decideRoutes(facts, want)
		if _, _, err := f.judge(ctx, facts, routes); err != nil {
			return err
		}
	}
	return f.toggle(false)
}

func (f *Fast) taken(port uint16) (n uint64, known bool, err error) {
	if f.table == nil || len(f.wanted) > 0 { // links help without shortcuts, too
		return 0, false, nil
	}
	all, err := f.table.Entries()
	for _, e := range all {
		if e.Dial.Port() == port {
			n += e.Taken
		}
	}
	return n, true, err
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
