package fast

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/build/kernel/shortcut"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/ports"
	"github.com/bridgetoll/bridgetoll/internal/ports/collect"
)

// Lease is how long shortcuts last if nobody renews them.
const Lease = 30 * time.Second

// Fast is toll fast on this machine.
type Fast struct {
	// Read reads the machine; nil: collect.Published.
	Read func(context.Context) (*ports.Facts, error)

	table *shortcut.Table
	put   map[netip.AddrPort]string // containers' ids of the shortcuts that Apply put
}

// Status is how it is.
type Status struct {
	State     string                     `json:"state"`         // "on", "off", or "expired": the lease ran out
	Lease     float64                    `json:"lease_seconds"` // that it will last if nobody renews it
	All       bool                       `json:"all"`
	Ports     []uint16                   `json:"ports"` // that were asked for, if not all
	Shortcuts []Route                    `json:"shortcuts"`
	Left      []Refusal                  `json:"left_alone"`
	Why       map[shortcut.Reason]uint64 `json:"connections_left_alone"`
	Notes     []string                   `json:"notes"`
}

// States.
const (
	On      = "on"
	Off     = "off"
	Expired = "expired"
)

// notes are what is left alone anyway.
var notes = []string{
	"clients in containers and on other machines, UDP, and clients of the machine's own address are left alone: their way is the old one",
}

// ErrOff says that it is not on.
var ErrOff = &offError{}

type offError struct{}

func (*offError) Error() string { return "fast is off" }

// Hint is what a user can do about it.
func (*offError) Hint() string { return "sudo toll fast on" }

// TurnOn loads and pins what is needed, unless it is on, and notes the choice. Nothing
// takes a shortcut before Update. The caller closes the Fast.
func TurnOn(c Choice) (f *Fast, err error) {
	lock, err := shortcut.Lock()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	t, err := shortcut.Open()
	if errors.Is(err, shortcut.ErrNone) {
		if err = shortcut.Unpin(); err == nil { // what a killed toll left
			t, err = start()
		}
	}
	if err != nil {
		return nil, err
	}
	f = &Fast{table: t}
	if err = f.here(); err == nil {
		err = f.choose(c)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return f, nil
}

func start() (*shortcut.Table, error) {
	t, err := shortcut.Load()
	if err != nil {
		return nil, err
	}
	if err := t.Pin(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Open opens what is on; ErrOff if nothing is.
func Open() (*Fast, error) {
	t, err := shortcut.Open()
	if errors.Is(err, shortcut.ErrNone) {
		return nil, ErrOff
	}
	if err != nil {
		return nil, err
	}
	f := &Fast{table: t}
	if err := f.here(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return f, nil
}

// here refuses shortcuts that are another network namespace's.
func (f *Fast) here() error {
	s, err := f.table.State()
	if err != nil {
		return err
	}
	cookie, err := shortcut.Namespace()
	if err == nil && cookie != s.Netns {
		err = &path.UnsupportedError{Missing: "fast is on in another network namespace than this one", Remedy: "toll fast off there, or here"}
	}
	return err
}

func (f *Fast) choose(c Choice) error {
	if c.All {
		return f.table.Choose(nil)
	}
	return f.table.Choose(c.Ports)
}

// Close lets go of it. It stays as it is.
func (f *Fast) Close() error { return f.table.Close() }

// TurnOff takes everything away, also what a killed toll left. Connections stay, on the
// way that they have.
func TurnOff() (err error) {
	lock, err := shortcut.Lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return shortcut.Unpin()
}

// Abandoned reports whether there is what nobody renews: what a killed toll left.
func Abandoned() bool {
	t, err := shortcut.Open()
	if err != nil {
		return shortcut.Pinned()
	}
	defer func() { _ = t.Close() }()
	s, err := t.State()
	return err == nil && s.Lease == 0
}

// IsOn reports whether there is anything, and TurnOff something to do.
func IsOn() bool { return shortcut.Pinned() }

// Choice is what was asked for.
func (f *Fast) Choice() (Choice, error) {
	p, all, err := f.table.Chosen()
	slices.Sort(p)
	return Choice{Ports: p, All: all}, err
}

// Update reads the machine, has the shortcuts be what Decide says, and renews the
// lease. An error of any kind leaves the lease to run out.
func (f *Fast) Update(ctx context.Context, lease time.Duration) (left []Refusal, err error) {
	want, err := f.Choice()
	if err != nil {
		return nil, err
	}
	facts, err := f.read(ctx)
	if err != nil {
		return nil, err
	}
	routes, left := Decide(facts, want)
	changed, err := f.apply(routes)
	left = append(left, changed...)
	if err != nil {
		return left, err
	}
	return left, f.table.Renew(lease)
}

// read reads the machine, and refuses to do with less than is needed.
func (f *Fast) read(ctx context.Context) (*ports.Facts, error) {
	read := f.Read
	if read == nil {
		read = collect.Published
	}
	facts, err := read(ctx)
	if err != nil {
		return nil, err
	}
	if facts.Docker == "" {
		u := &path.UnsupportedError{Missing: "no Docker Engine answers: what it publishes is not known", Remedy: "sudo systemctl start docker, or DOCKER_HOST with its address"}
		for _, m := range facts.Missing {
			if m.What == "names of containers" {
				u.Err = errors.New(m.Why)
			}
		}
		return nil, u
	}
	return facts, nil
}

// apply has the table hold these routes and no others: first what goes, then what comes.
func (f *Fast) apply(routes []Route) (left []Refusal, err error) {
	have, err := f.table.Entries()
	if err != nil {
		return nil, err
	}
	for _, e := range have {
		if !slices.ContainsFunc(routes, func(r Route) bool { return r.Dial == e.Dial && r.Target == e.Target }) {
			if err := f.table.Remove(e.Dial); err != nil {
				return nil, err
			}
		}
	}
	f.put = map[netip.AddrPort]string{}
	for _, r := range routes {
		f.put[r.Dial] = r.ContainerID
		err := f.table.Add(shortcut.Entry{Dial: r.Dial, Target: r.Target}, r.listener)
		if errors.Is(err, shortcut.ErrChanged) {
			delete(f.put, r.Dial)
			left = append(left, Refusal{r.Container, "tcp", r.Dial, err.Error(), "toll fast status"})
			err = f.table.Remove(r.Dial)
		}
		if err != nil {
			return left, err
		}
	}
	return left, nil
}

// Preview is what Update would come to, without changing anything.
func Preview(ctx context.Context, want Choice) ([]Route, []Refusal, error) {
	facts, err := (&Fast{}).read(ctx)
	if err != nil {
		return nil, nil, err
	}
	routes, left := Decide(facts, want)
	return routes, left, nil
}

// Drop takes a container's shortcuts away at once; "": all of them.
func (f *Fast) Drop(containerID string) error {
	if containerID == "" {
		all, err := f.table.Entries()
		for _, e := range all {
			err = errors.Join(err, f.table.Remove(e.Dial))
		}
		return err
	}
	var err error
	for dial, id := range f.put {
		if id == containerID {
			err = errors.Join(err, f.table.Remove(dial))
		}
	}
	return err
}

// Look says how it is, without changing anything. Names of containers need the engine;
// without it there are none.
func Look(ctx context.Context) (*Status, error) {
	out := &Status{State: Off, Shortcuts: []Route{}, Left: []Refusal{}, Ports: []uint16{}, Why: map[shortcut.Reason]uint64{}, Notes: notes}
	if os.Geteuid() != 0 {
		return nil, &path.UnsupportedError{Missing: "only root sees BPF maps", Remedy: "sudo toll fast status"}
	}
	f, err := Open()
	if errors.Is(err, ErrOff) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return out, f.look(ctx, out)
}

func (f *Fast) look(ctx context.Context, out *Status) error {
	s, err := f.table.State()
	if err != nil {
		return err
	}
	out.State, out.Lease = On, s.Lease.Seconds()
	if !s.On || s.Lease == 0 {
		out.State = Expired
	}
	want, err := f.Choice()
	if err != nil {
		return err
	}
	out.All, out.Ports = want.All, append(out.Ports, want.Ports...)
	have, err := f.table.Entries()
	if err != nil {
		return err
	}
	if out.Why, err = f.table.Left(); err != nil {
		return err
	}
	facts, err := f.read(ctx)
	if err != nil {
		out.Notes = append(slices.Clone(out.Notes), fmt.Sprintf("%v: what is published now is not known", err))
		facts = &ports.Facts{}
		want = Choice{All: want.All}
	}
	routes, left := Decide(facts, want)
	out.Left = append(out.Left, left...)
	for _, e := range have {
		r := Route{Dial: e.Dial, Target: e.Target, Taken: e.Taken}
		for _, now := range routes {
			if now.Dial == e.Dial && now.Target == e.Target {
				r.Container, r.ContainerID = now.Container, now.ContainerID
			}
		}
		out.Shortcuts = append(out.Shortcuts, r)
	}
	slices.SortFunc(out.Shortcuts, func(a, b Route) int { return a.Dial.Compare(b.Dial) })
	return nil
}
