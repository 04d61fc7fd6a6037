package lab

import (
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func (s *site) drain() (sample.Headroom, error) {
	var all []local.Swept
	for _, at := range s.spots() {
		all = append(all, local.Swept{Space: at.ns, Where: at.where})
	}
	return local.Drain(all, len(s.path.Proxies) > 0)
}

func (s *site) arrived() (n uint64, err error) {
	ns := s.a.ns
	switch {
	case s.path.Spec.To.Outside():
		ns = s.b.ns
	case len(s.Servers) > 0:
		ns = s.Servers[0].ns
	}
	err = ns.Do(func() error { n, err = sock.Arrivals(); return err })
	return n, err
}

func (s *site) spots() []spot {
	out := []spot{{s.a.ns, s.a.name}, {s.b.ns, s.b.name}}
	for _, c := range s.boxes {
		out = append(out, spot{c.ns, c.name})
	}
	return append(out, s.more...)
}

func (s *site) inspected() []local.Inspected {
	var all []local.Inspected
	for _, at := range s.spots() {
		all = append(all, local.Inspected{Space: at.ns, Where: at.where})
	}
	return all
}
