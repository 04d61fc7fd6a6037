package engine

import (
	"context"
	"sync"
	"time"
)

// needs are what a visit needs before and after the start of its load.
type needs struct {
	lead time.Duration // in which its schedule gets to its ends
	ends int           // that are told, one after the other at worst
	took time.Duration // by its load, for which the channel is quiet
}

// beginning finds the start of visits that are made at once, before which the
// channel is hushed. A visit whose window is over, or that has failed, calls resume,
// which waits for the others' windows: what it says after it would be noise in them.
type beginning func(ctx context.Context, far *distant, n needs) (start int64, resume func(), err error)

// muster is where visits that are made at once wait for each other, so that all
// have the same window: what is said to one's machines would be noise in another's.
type muster struct {
	clock   Clock
	all     chan struct{}  // closed when no more ends are expected
	windows sync.WaitGroup // of those that came

	once  sync.Once // sets following
	start int64
	quiet func() // lets the channel go on
	err   error

	mu      sync.Mutex // guards following
	expects int
	needs   needs // of all that came: the ends of all, and the longest times
}

func newMuster(c Clock, n int) *muster {
	return &muster{clock: c, expects: n, all: make(chan struct{})}
}

// begin waits until all have come or left, as a beginning does. Only then the channel is
// hushed and the start found: one that fails takes its time to leave. The channel is
// the same for all.
func (m *muster) begin(ctx context.Context, far *distant, n needs) (start int64, resume func(), err error) {
	m.come(n)
	<-m.all
	m.once.Do(func() {
		lead := m.needs.lead + time.Duration(m.needs.ends)*leadEach
		m.quiet, m.err = far.hush(ctx, lead+m.needs.took)
		m.start = m.clock.Now() + int64(lead)
	})
	if m.err != nil {
		return 0, nil, m.err
	}
	return m.start, sync.OnceFunc(func() {
		m.windows.Done()
		m.windows.Wait()
		m.quiet()
	}), nil
}

// come notes one that waits, and leave one that never will.
func (m *muster) come(n needs) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.windows.Add(1)
	m.needs = needs{lead: max(m.needs.lead, n.lead), ends: m.needs.ends + n.ends, took: max(m.needs.took, n.took)}
	m.less()
}

func (m *muster) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.less()
}

func (m *muster) less() {
	if m.expects--; m.expects == 0 {
		close(m.all)
	}
}
