package lab

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

const (
	// settle is how long connections may take from their process's end to
	// TIME_WAIT, where they can be swept; after that they are left.
	settle     = 200 * time.Millisecond
	settleStep = 2 * time.Millisecond
)

const portRange = "net.ipv4.ip_local_port_range"

// leavings are what ended connections left in a namespace.
type leavings struct {
	ports, timeWait int
	table           conntrack.Use
	over            bool // nothing is left, or the rest stays
}

// drain sweeps every namespace of the path: clients, servers and, for a proxy,
// the machine between them. The switches of overlays have no connections of
// their own, but a table that may see them.
func (s *site) drain() (sample.Room, error) {
	began := time.Now()
	var (
		fewest, timeWait = -1, 0
		fullest          conntrack.Use
		unswept          []string
	)
	for _, at := range s.spots() {
		l, err := sweep(at.ns, func(err error) {
			// Of many namespaces and tries, once.
			if text := strings.ReplaceAll(err.Error(), "\n", "; "); !slices.Contains(unswept, text) {
				unswept = append(unswept, text)
			}
		})
		if err != nil {
			return sample.Room{}, fmt.Errorf("drain %s: %w", at.where, err)
		}
		if free := l.ports - l.timeWait; fewest < 0 || free < fewest {
			fewest = free
		}
		timeWait = max(timeWait, l.timeWait)
		if l.table.Max > 0 && (fullest.Max == 0 || l.table.Max-l.table.Entries < fullest.Max-fullest.Entries) {
			fullest = l.table
		}
	}
	entries := 1
	if len(s.path.Proxies) > 0 {
		entries = 2 // of one table: up to the proxy, and on from it
	}
	r := sample.NewRoom(fewest, timeWait, fullest.Entries, fullest.Max, entries)
	r.Took, r.Error = time.Since(began).Seconds(), strings.Join(unswept, "; ")
	return r, nil
}

// arrived counts what came where the first server is.
func (s *site) arrived() (n uint64, err error) {
	ns := s.a.ns
	if len(s.servers) > 0 {
		ns = s.servers[0].ns
	}
	err = ns.Do(func() error { n, err = sock.Arrivals(); return err })
	return n, err
}

// spots are all namespaces of the site.
func (s *site) spots() []spot {
	out := []spot{{s.a.ns, s.a.name}, {s.b.ns, s.b.name}}
	for _, c := range s.boxes {
		out = append(out, spot{c.ns, c.name})
	}
	return append(out, s.more...)
}

// sweep sweeps one namespace and reads what is left; what the kernel refuses is
// told to refused.
func sweep(ns *space, refused func(error)) (l leavings, err error) {
	once := func() error {
		swept := sock.Sweep()
		if l.table, err = conntrack.Read(); err != nil {
			return err
		}
		if l.table.Entries > 0 {
			swept = errors.Join(swept, conntrack.Flush())
			if l.table, err = conntrack.Read(); err != nil {
				return err
			}
		}
		if l.timeWait, err = sock.Leftover(); err != nil {
			return err
		}
		if swept != nil {
			refused(swept) // and will be again
		}
		l.over = swept != nil || l.timeWait == 0
		return nil
	}
	for deadline := time.Now().Add(settle); ; time.Sleep(settleStep) {
		if err := ns.Do(once); err != nil {
			return l, err
		}
		if l.over || time.Now().After(deadline) {
			break
		}
	}
	err = ns.Do(func() error {
		l.ports, err = ephemeral()
		return err
	})
	return l, err
}

// ephemeral is how many ports the calling thread's namespace has for those who
// dial.
func ephemeral() (int, error) {
	text, err := sysctl.Get(portRange)
	if err != nil {
		return 0, err
	}
	f := strings.Fields(text)
	if len(f) != 2 {
		return 0, fmt.Errorf("read sysctl %s: %q is not two numbers", portRange, text)
	}
	low, err := strconv.Atoi(f[0])
	if err != nil {
		return 0, fmt.Errorf("read sysctl %s: %w", portRange, err)
	}
	high, err := strconv.Atoi(f[1])
	if err != nil {
		return 0, fmt.Errorf("read sysctl %s: %w", portRange, err)
	}
	return high - low + 1, nil
}
