package engine

import "sync"

// muster is where visits that are made at once wait for each other, so that all
// have the same window: what is said to one's machines would be noise in another's.
type muster struct {
	mu      sync.Mutex // guards following
	expects int
	latest  int64
	all     chan struct{} // closed when nobody is expected any more
}

func newMuster(n int) *muster { return &muster{expects: n, all: make(chan struct{})} }

// begin waits until all have come or left, and returns the latest of the instants
// that they could begin at.
func (m *muster) begin(own int64) int64 {
	m.arrive(own)
	<-m.all
	return m.latest
}

// arrive notes one that will wait, or one that has left: 0.
func (m *muster) arrive(own int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.latest = max(m.latest, own)
	if m.expects--; m.expects == 0 {
		close(m.all)
	}
}
