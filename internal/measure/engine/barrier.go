package engine

import (
	"context"
	"sync"
	"time"
)

// needs has what a visit requires of the common start.
type needs struct {
	lead time.Duration // for its schedule to reach its ends
	ends int           // which get it one after another in the worst case
	took time.Duration // of its load, in which the channel is quiet
}

// beginning silences the channel and returns the common start of visits made at once. When its
// window is over or it has failed, a visit calls resume, which waits for the other visits.
type beginning func(ctx context.Context, far *distant, n needs) (
	start int64, resume func(), err error)

// barrier gives visits made at once the same window, because messages to the machines of one visit
// would be noise in the window of another.
type barrier struct {
	clock   Clock
	all     chan struct{}
	windows sync.WaitGroup

	once  sync.Once // guards the fields that follow
	start int64
	quiet func() // ends the silence
	err   error

	mu      sync.Mutex
	expects int
	needs   needs // sum of ends and longest times so far
}

func newBarrier(c Clock, n int) *barrier {
	return &barrier{clock: c, expects: n, all: make(chan struct{})}
}

// begin waits until every visit has called begin or leave, and then chooses the common start. A
// failed visit calls leave late, because it cleans up first.
func (m *barrier) begin(ctx context.Context, far *distant, n needs) (start int64, resume func(),
	err error) {
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

func (m *barrier) come(n needs) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.windows.Add(1)
	m.needs = needs{lead: max(m.needs.lead, n.lead), ends: m.needs.ends + n.ends,
		took: max(m.needs.took, n.took)}
	m.less()
}

func (m *barrier) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.less()
}

func (m *barrier) less() {
	if m.expects--; m.expects == 0 {
		close(m.all)
	}
}
