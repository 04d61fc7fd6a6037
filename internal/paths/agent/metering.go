package agent

import (
	"errors"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// maxMeterings bounds the meterings in progress; the oldest are forgotten.
const maxMeterings = 16

type metering struct {
	request meterRequest
	from    chan struct{} // closed after the first reading
	done    chan struct{} // closed after the last; never for an open end

	mu          sync.Mutex
	first, last state
	control     path.Traffic // at the end; for an open end, before the first message
	spoken      bool
	err         error
}

type state struct {
	meter.Reading
	throttled int
}

func (s *server) read(pids []int) (state, error) {
	r, err := s.meter.Read(pids...)
	st := state{Reading: r}
	if s.throttled != nil {
		st.throttled = s.throttled()
	}
	return st, err
}

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

// take reads the meters again and replaces the last reading. It does not replace the channel's
// count, which covers only the time until the first message.
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

// word is called before each message of a process. The last message ends a window with an open end,
// so each one takes a reading.
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
		default:
		}
	}
}

func (m *metering) heard() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spoken
}

// use returns what was used since the metering began. took is the number of bytes that this request
// put on the channel; use subtracts them.
func (s *server) use(number, took uint64) (*path.Use, error) {
	s.mu.Lock()
	m := s.meterings[number]
	delete(s.meterings, number)
	s.mu.Unlock()
	if m == nil {
		return nil, errors.New("no such metering")
	}
	<-m.from
	if m.request.To != 0 {
		<-m.done
	} else if !m.heard() { // the load did not run here
		s.take(m)
		m.mu.Lock()
		m.control.Bytes -= min(m.control.Bytes, took)
		m.mu.Unlock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	u := &path.Use{CPUs: meter.Since(m.first.Reading, m.last.Reading),
		Elapsed:   m.last.At.Sub(m.first.At).Seconds(),
		Throttled: m.last.throttled - m.first.throttled, Control: m.control}
	for i := range m.request.PIDs {
		u.Procs = append(u.Procs, max(0, m.last.Procs[i]-m.first.Procs[i]))
	}
	return u, nil
}
