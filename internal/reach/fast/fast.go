package fast

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bigtcp"
	"github.com/bridgetoll/bridgetoll/internal/kernel/bpf"
	"github.com/bridgetoll/bridgetoll/internal/kernel/shortcut"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
)

// Lease is how long shortcuts and links last unless renewed.
const Lease = 30 * time.Second

// Fast controls toll fast on this machine. It is not safe for concurrent use.
type Fast struct {
	// judged has the last result of the trials in a copy of the network.
	judged struct {
		of       string // fingerprint; "": none, or the answer was doubtful
		why      map[netip.AddrPort]string
		err      error
		doubtful bool
	}

	mu      sync.Mutex      // guards table against suspend, and changes
	table   *shortcut.Table // nil: the part Connect is off
	changes int             // number of calls of suspend

	put map[netip.AddrPort]string // container ids of the shortcuts that apply set
	// waiting means that a shortcut is possible as soon as the container's server listens, which
	// nothing reports.
	waiting bool

	store  bigtcp.Store // "": the machine's
	links  int          // the number of links in the note
	wanted []int        // indexes of the links to raise
	kept   []string     // left unchanged because others changed them
}

// ErrOff is returned if toll fast is off.
var ErrOff = &offError{}

type offError struct{}

func (*offError) Error() string { return "fast is off" }

// Hint returns the command that turns toll fast on.
func (*offError) Hint() string { return remedy.AsRoot("toll fast on all") }

// Enable turns fast on and updates it. After an error it is off if it was off, or else the choice is
// what it was.
func Enable(ctx context.Context, c Choice, lease time.Duration) error {
	was, before, errBefore := IsOn(), Choice{}, error(nil)
	if was {
		before, errBefore = chosen()
	}
	f, err := TurnOn(c)
	if err != nil {
		return err
	}
	_, err = f.Update(ctx, lease)
	if err = errors.Join(err, f.Close()); err == nil {
		return nil
	}
	if !was {
		_, errOff := TurnOff()
		return errors.Join(err, errOff)
	}
	if errBefore != nil {
		return errors.Join(err, errBefore)
	}
	f, errBack := TurnOn(before)
	if errBack == nil {
		errBack = f.Close()
	}
	return errors.Join(err, errBack)
}

// chosen returns the choice of what is on.
func chosen() (c Choice, err error) {
	f, err := Open()
	if err != nil {
		return c, err
	}
	c, err = f.choice()
	return c, errors.Join(err, f.Close())
}

// TurnOn prepares the requested parts unless they are on, notes the choice, and turns the other
// parts off. Nothing takes effect until Update. The caller closes the Fast.
func TurnOn(c Choice) (f *Fast, err error) {
	if err := bpf.CheckClock(); err != nil { // the lease would be wrong
		return nil, err
	}
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

// Open opens the parts that are on. It returns ErrOff if none is, and a *machine.UnsupportedError
// in a time namespace, where leases cannot be read.
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
	if clock := bpf.CheckClock(); clock != nil && (err == nil || st != nil) {
		if err == nil {
			err = t.Close()
		}
		return errors.Join(clock, err)
	}
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

// renew renews the lease, unless the rules changed since Update began, so that another is due.
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

// Abandoned reports whether anything is on whose lease has run out, or that cannot be read. It
// returns false in a time namespace, where leases cannot be read.
func Abandoned() bool {
	if bpf.CheckClock() != nil {
		return false
	}
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

func (f *Fast) choice() (c Choice, err error) {
	st, err := f.noted()
	if err != nil {
		return c, err
	}
	return f.choiceOf(st)
}

// choiceOf returns the choice of a note, which may be nil, and of the table.
func (f *Fast) choiceOf(st *bigtcp.State) (c Choice, err error) {
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
