package agent

import (
	"errors"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
)

// maxMeterings are how many may be under way. Those that were not fetched in time
// are forgotten.
const maxMeterings = 16

// metering is two readings of the meters.
type metering struct {
	request meterRequest
	from    chan struct{} // closed when the first was taken
	done    chan struct{} // and the last; of an open end it never is

	mu          sync.Mutex // guards following
	first, last state
	control     path.Traffic // at the end: of an open one, before the first word
	spoken      bool
	err         error
}

// state is what is read at once.
type state struct {
	meter.Reading
	throttled int
}

// read reads the meters.
func (s *server) read(pids []int) (state, error) {
	r, err := s.meter.Read(pids...)
	st := state{Reading: r}
	if s.throttled != nil {
		st.throttled = s.throttled()
	}
	return st, err
}

// measure has the meters read at two instants.
func (s *server) measure(o meterRequest) {
	m := &metering{request: o, from: make(chan struct{}), done: make(chan struct{})}
	s.mu.Lock()
	s.meterings[o.Number] = m
	for len(s.meterings) > maxMeterings {
		oldest := o.Number
		for n := range s.meterings {
			oldest = min(oldest, n)
		}
		delete(s.meterings, oldest)
	}
	s.mu.Unlock()
	go func() {
		clock.SleepUntil(o.From)
		before := s.channel.traffic()
		first, err := s.read(o.PIDs)
		m.mu.Lock()
		m.first, m.control, m.err = first, before, err
		m.mu.Unlock()
		close(m.from)
		if o.To == 0 {
			return
		}
		clock.SleepUntil(o.To)
		s.take(m)
		close(m.done)
	}()
}

// take takes the last reading: another one replaces it, but not the channel's count,
// which is of the time in which nothing was to be said.
func (s *server) take(m *metering) {
	carried := s.channel.traffic()
	last, err := s.read(m.request.PIDs)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.spoken {
		m.control = since(m.control, carried)
		m.spoken = true
	}
	m.last = last
	m.err = errors.Join(m.err, err)
}

// word is called before what a process says goes to the hub: at its last word, a
// window with an open end is over.
func (s *server) word() {
	s.mu.Lock()
	var open []*metering
	for _, m := range s.meterings {
		if m.request.To == 0 {
			open = append(open, m)
		}
	}
	s.mu.Unlock()
	for _, m := range open {
		select {
		case <-m.from:
			s.take(m)
		default: // it speaks before the window
		}
	}
}

// heard reports whether the last reading was taken.
func (m *metering) heard() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spoken
}

// use is what was measured. To be asked took so many bytes of the channel.
func (s *server) use(number, took uint64) (*path.Use, error) {
	s.mu.Lock()
	m := s.meterings[number]
	delete(s.meterings, number)
	s.mu.Unlock()
	if m == nil {
		return nil, errors.New("there is no such metering")
	}
	<-m.from
	if m.request.To != 0 {
		<-m.done
	} else if !m.heard() { // nothing of the load ran here
		s.take(m)
		m.mu.Lock()
		m.control.Bytes -= min(m.control.Bytes, took) // of being asked
		m.mu.Unlock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	u := &path.Use{CPUs: meter.Since(m.first.Reading, m.last.Reading), Elapsed: m.last.At.Sub(m.first.At).Seconds(),
		Throttled: m.last.throttled - m.first.throttled, Control: m.control}
	for i := range m.request.PIDs {
		u.Procs = append(u.Procs, max(0, m.last.Procs[i]-m.first.Procs[i]))
	}
	return u, nil
}
