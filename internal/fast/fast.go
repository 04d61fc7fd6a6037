package fast

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/bigtcp"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/shortcut"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/ports"
	"github.com/bridgetoll/bridgetoll/internal/ports/collect"
)

// Lease is how long shortcuts last unless renewed.
const Lease = 30 * time.Second

// Fast controls toll fast on this machine.
type Fast struct {
	// judged is what the copy of the network said last.
	judged struct {
		of  string // fingerprint; "": none
		why map[netip.AddrPort]string
		err error
	}

	mu      sync.Mutex      // guards table against suspend, and changes
	table   *shortcut.Table // nil: the part Connect is off
	changes int             // number of calls of suspend

	put map[netip.AddrPort]string // container ids of the shortcuts that apply set

	store  bigtcp.Store // "": the machine's
	links  int          // the number of links in the note
	wanted []int        // indexes
	kept   []string     // left unchanged because others changed them
}

// Status describes toll fast on this machine.
type Status struct {
	// "on", "off", or "expired": the lease ran out
	State     string                     `json:"state"`
	Lease     float64                    `json:"lease_seconds"` // time left
	All       bool                       `json:"all"`
	Ports     []uint16                   `json:"ports"` // empty if All
	Parts     []Part                     `json:"parts"`
	Shortcuts []Route                    `json:"shortcuts"`
	Left      []Refusal                  `json:"left_alone"`
	Why       map[shortcut.Reason]uint64 `json:"connections_left_alone"`
	Links     []Link                     `json:"links"`
	LinksLeft []LinkRefusal              `json:"links_left_alone"`
	Notes     []string                   `json:"notes"`
}

const (
	On      = "on"
	Off     = "off"
	Expired = "expired"
)

// What toll fast never changes.
const (
	connectNote = "not affected: clients in containers and on other machines, UDP, and clients that dial the machine's own address"
	linkNote    = "links: packets that containers send, to each other too, leave through the containers' own ends, which are not changed"
)

// ErrOff is returned if toll fast is off.
var ErrOff = &offError{}

type offError struct{}

func (*offError) Error() string { return "fast is off" }

// Hint returns the command that turns toll fast on.
func (*offError) Hint() string { return "sudo toll fast on" }

// TurnOn prepares the requested parts unless they are on, notes the choice, and turns the other
// parts off. Nothing takes effect until Update. The caller closes the Fast.
func TurnOn(c Choice) (f *Fast, err error) {
	lock, err := lockSoon()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	f = &Fast{}
	was := IsOn()
	if err = f.turnOn(c); err != nil {
		err = errors.Join(err, f.Close())
		if !was {
			_, errBack := f.takeBack()
			err = errors.Join(err, errBack, shortcut.Unpin())
		}
		return nil, err
	}
	return f, nil
}

func (f *Fast) turnOn(c Choice) (err error) {
	if !c.With(Connect) {
		if err := shortcut.Unpin(); err != nil {
			return err
		}
		return f.chooseLinks(c)
	}
	f.table, err = shortcut.Open()
	if errors.Is(err, shortcut.ErrNone) {
		if err = shortcut.Unpin(); err == nil { // left by a killed toll
			f.table, err = start()
		}
	}
	if err != nil {
		return err
	}
	if err := f.here(); err != nil {
		return err
	}
	if err := f.choose(c); err != nil {
		return err
	}
	return f.chooseLinks(c)
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

// Open opens the parts that are on. It returns ErrOff if none is.
func Open() (*Fast, error) {
	f := &Fast{}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *Fast) open() error {
	if f.table != nil && !f.table.Current() {
		if err := f.Close(); err != nil {
			return err
		}
	}
	st, err := f.noted()
	if err != nil {
		return err
	}
	if f.table != nil {
		return nil
	}
	t, err := shortcut.Open()
	switch {
	case errors.Is(err, shortcut.ErrNone) && st == nil:
		return ErrOff
	case errors.Is(err, shortcut.ErrNone):
		return nil
	case err != nil:
		return err
	}
	f.hold(t)
	if err := f.here(); err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

func (f *Fast) here() error {
	s, err := f.table.State()
	if err != nil {
		return err
	}
	cookie, err := shortcut.Namespace()
	if err == nil && cookie != s.Netns {
		err = errElsewhere
	}
	return err
}

func (f *Fast) choose(c Choice) error {
	if c.All {
		return f.table.Choose(nil)
	}
	return f.table.Choose(c.Ports)
}

// Close releases the Fast without changing shortcuts and links.
func (f *Fast) Close() error {
	if f.table == nil {
		return nil
	}
	t := f.table
	f.hold(nil)
	return t.Close()
}

func (f *Fast) hold(t *shortcut.Table) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.table = t
}

// suspend switches shortcuts off until an Update that starts later has read the rules. It may be
// called concurrently with other methods.
func (f *Fast) suspend() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
	if f.table == nil {
		return nil
	}
	return f.table.Stop()
}

func (f *Fast) changed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changes
}

// If the rules changed since Update began, the lease is not renewed: another Update is due.
func (f *Fast) renew(changes int, lease time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changes != changes {
		return nil
	}
	return f.table.Renew(lease)
}

// TurnOff removes everything, including what a killed toll left. Open connections stay on their
// path. Links get their earlier sizes back, except those in kept, which others changed since.
func TurnOff() (kept []string, err error) {
	lock, err := lockSoon()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	out, err := (&Fast{}).takeBack()
	return out.Kept, errors.Join(err, shortcut.Unpin())
}

// Abandoned reports whether anything is on without renewal.
func Abandoned() bool {
	if st, err := (&Fast{}).noted(); err == nil && st != nil && st.Lease() == 0 {
		return true
	}
	t, err := shortcut.Open()
	if err != nil {
		return shortcut.Pinned()
	}
	defer func() { _ = t.Close() }()
	s, err := t.State()
	return err == nil && s.Lease == 0
}

// IsOn reports whether any part is on.
func IsOn() bool {
	_, err := bigtcp.Default.Load()
	return shortcut.Pinned() || !errors.Is(err, bigtcp.ErrNone)
}

func (f *Fast) Choice() (c Choice, err error) {
	st, err := f.noted()
	if err != nil {
		return c, err
	}
	if st != nil {
		c = chosenFor(st)
	}
	if f.table != nil {
		if c.Ports, c.All, err = f.table.Chosen(); err != nil {
			return c, err
		}
		c.Parts = append(c.Parts, Connect)
	}
	if st != nil {
		c.Parts = append(c.Parts, Links)
	}
	slices.Sort(c.Ports)
	return c, nil
}

// Left lists what toll fast does not change, with the reasons.
type Left struct {
	Ports []Refusal
	Links []LinkRefusal
}

// Update reads the machine, sets the allowed shortcuts and links, and renews the lease. If it
// returns an error, the lease is left to run out.
func (f *Fast) Update(ctx context.Context, lease time.Duration) (left Left, err error) {
	changes := f.changed()
	want, err := f.Choice()
	if err != nil {
		return left, err
	}
	facts, err := published(ctx)
	if err != nil {
		return left, err
	}
	if want.With(Links) {
		if err := f.keepLease(lease); err != nil { // before any link is raised
			return left, err
		}
		if left.Links, err = f.updateLinks(facts, want, lease); err != nil {
			return left, err
		}
	}
	if f.table == nil {
		return left, nil
	}
	routes, unfit := decideRoutes(facts, want)
	routes, blocked, err := f.judge(ctx, routes)
	if err != nil {
		return left, err
	}
	changed, err := f.apply(routes)
	left.Ports = slices.Concat(unfit, blocked, changed)
	if err == nil {
		err = f.abortStranded(facts)
	}
	if err != nil {
		return left, err
	}
	return left, f.renew(changes, lease)
}

const namesOfContainers = "names of containers"

// published returns an error if the engine's list of containers is missing.
func published(ctx context.Context) (*ports.Facts, error) {
	facts, err := collect.Published(ctx)
	if err = errors.Join(err, ctx.Err()); err != nil { // the last answers may be missing
		return nil, err
	}
	list := facts.Docker != ""
	for _, m := range facts.Missing {
		list = list && m.What != namesOfContainers
	}
	if !list {
		u := &path.UnsupportedError{
			Missing: "no Docker Engine answers: what it publishes is not known",
			Remedy:  "sudo systemctl start docker, or DOCKER_HOST with its address"}
		for _, m := range facts.Missing {
			if m.What == namesOfContainers {
				u.Err = errors.New(m.Why)
			}
		}
		return nil, u
	}
	return facts, nil
}

// apply removes entries before it adds any.
func (f *Fast) apply(routes []Route) (left []Refusal, err error) {
	have, err := f.table.Entries()
	if err != nil {
		return nil, err
	}
	for _, e := range have {
		if !slices.ContainsFunc(routes, func(r Route) bool {
			return r.Dial == e.Dial && r.Target == e.Target
		}) {
			if err := f.table.Remove(e.Dial); err != nil {
				return nil, err
			}
		}
	}
	f.put = map[netip.AddrPort]string{}
	for _, r := range routes {
		f.put[r.Dial] = r.ContainerID
		err := f.table.Add(shortcut.Entry{Dial: r.Dial, Target: r.Target, Server: r.server},
			r.listener)
		if errors.Is(err, shortcut.ErrChanged) {
			delete(f.put, r.Dial)
			left = append(left, Refusal{r.Container, "tcp", r.Dial, err.Error(),
				"toll fast status"})
			err = f.table.Remove(r.Dial)
		}
		if err != nil {
			return left, err
		}
	}
	return left, nil
}

// abortStranded ends connections that took a shortcut to a container whose docker-proxy is gone:
// its end would have ended them, too. Where the kernel cannot abort them, they time out.
func (f *Fast) abortStranded(facts *ports.Facts) error {
	_, err := f.table.Abort(func(e shortcut.Entry) bool {
		return slices.ContainsFunc(facts.Proxies, func(p ports.Proxy) bool {
			return p.Container == e.Target && p.Host.Port() == e.Dial.Port()
		})
	})
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// Preview returns what Update would set and leave alone, without changing anything.
func Preview(ctx context.Context, want Choice) (routes []Route, links []Link, left Left,
	err error) {
	f := &Fast{}
	facts, err := published(ctx)
	if err != nil {
		return nil, nil, left, err
	}
	if want.With(Connect) {
		all, unfit := decideRoutes(facts, want)
		routes, left.Ports, err = f.judge(ctx, all)
		if err != nil {
			return nil, nil, left, err
		}
		left.Ports = slices.Concat(unfit, left.Ports)
	}
	if want.With(Links) {
		links, left.Links = decideLinks(facts, want)
	}
	return routes, links, left, nil
}

// Drop removes a container's shortcuts at once, or all of them if containerID is "".
func (f *Fast) Drop(containerID string) error {
	if f.table == nil {
		return nil
	}
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

// Look returns the status. Container names are empty if the engine does not answer.
func Look(ctx context.Context) (*Status, error) {
	out := &Status{State: Off, Shortcuts: []Route{}, Left: []Refusal{}, Ports: []uint16{},
		Parts: []Part{}, Why: map[shortcut.Reason]uint64{},
		Links: []Link{}, LinksLeft: []LinkRefusal{}, Notes: []string{}}
	if os.Geteuid() != 0 {
		return nil, &path.UnsupportedError{Missing: "only root sees BPF maps",
			Remedy: "sudo toll fast status"}
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
	want, err := f.Choice()
	if err != nil {
		return err
	}
	out.State, out.All, out.Ports, out.Parts = On, want.All, append(out.Ports, want.Ports...),
		want.Parts
	facts, err := published(ctx)
	if err != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("%v: what is published now is not known", err))
		facts = &ports.Facts{}
		want.Ports = nil
	}
	var leases []time.Duration
	if want.With(Links) {
		st, err := f.noted()
		if err != nil || st == nil {
			return err
		}
		leases = append(leases, st.Lease())
		links, left, err := f.lookLinks(st, facts, want)
		if err != nil {
			return err
		}
		out.Links, out.LinksLeft = append(out.Links, links...), append(out.LinksLeft, left...)
		out.Notes = append(out.Notes, linkNote)
	}
	if f.table != nil {
		s, err := f.table.State()
		if err != nil {
			return err
		}
		if !s.On {
			s.Lease = 0
		}
		leases = append(leases, s.Lease)
		if err := f.lookShortcuts(ctx, facts, want, out); err != nil {
			return err
		}
		out.Notes = append(out.Notes, connectNote)
	}
	lease := slices.Min(leases)
	if out.Lease = lease.Seconds(); lease == 0 {
		out.State = Expired
	}
	return nil
}

func (f *Fast) lookShortcuts(ctx context.Context, facts *ports.Facts, want Choice,
	out *Status) error {
	have, err := f.table.Entries()
	if err != nil {
		return err
	}
	if out.Why, err = f.table.Left(); err != nil {
		return err
	}
	routes, left := decideRoutes(facts, want)
	routes, blocked, err := f.judge(ctx, routes)
	if err != nil {
		out.Notes = append(out.Notes, err.Error())
	}
	out.Left = slices.Concat(out.Left, left, blocked)
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
