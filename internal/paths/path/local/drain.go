package local

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	// the time until connections of an ended process are in TIME_WAIT and can be swept
	settle     = 200 * time.Millisecond
	settleStep = 2 * time.Millisecond
)

const portRange = "net.ipv4.ip_local_port_range"

// Swept is a namespace to sweep.
type Swept struct {
	Space
	Where string
	// Ours picks the path's connections by the address of an end; nil: the namespace belongs to the
	// path.
	Ours func(netip.AddrPort) bool
}

type leavings struct {
	ports, timeWait int
	table           conntrack.Use
	over            bool // no connection is left, or the kernel refuses to remove the rest
}

// Drain sweeps ended connections from the namespaces of a path's clients and servers and, if there
// is a proxy, of the machine between them. relayed means that a proxy makes two connections of one.
// (To wait for the end of TIME_WAIT would take a minute, and to shorten it by sysctls would change
// what is measured.)
func Drain(spots []Swept, relayed bool) (sample.Headroom, error) {
	began := time.Now()
	var (
		fewest, timeWait = -1, 0
		fullest          conntrack.Use
		unswept          []string
	)
	for _, at := range spots {
		l, err := at.sweep(func(err error) {
			if text := path.OneLine(err); !slices.Contains(unswept, text) {
				unswept = append(unswept, text)
			}
		})
		if err != nil {
			return sample.Headroom{}, fmt.Errorf("drain %s: %w", at.Where, err)
		}
		if free := l.ports - l.timeWait; fewest < 0 || free < fewest {
			fewest = free
		}
		timeWait = max(timeWait, l.timeWait)
		if l.table.Max > 0 && (fullest.Max == 0 ||
			l.table.Max-l.table.Entries < fullest.Max-fullest.Entries) {
			fullest = l.table
		}
	}
	entries := 1
	if relayed {
		entries = 2 // to the proxy, and from it to the server
	}
	r := sample.NewHeadroom(fewest, timeWait, fullest.Entries, fullest.Max, entries)
	r.Took, r.Error = time.Since(began).Seconds(), strings.Join(unswept, "; ")
	return r, nil
}

func (s Swept) sweep(refused func(error)) (l leavings, err error) {
	once := func() error {
		swept := sock.Sweep(s.ends())
		if l.table, err = conntrack.Read(); err != nil {
			return err
		}
		if l.table.Entries > 0 {
			swept = errors.Join(swept, s.untrack())
			if l.table, err = conntrack.Read(); err != nil {
				return err
			}
		}
		if l.timeWait, err = sock.Leftover(s.ends()); err != nil {
			return err
		}
		if swept != nil {
			refused(swept) // the kernel would refuse it again
		}
		l.over = swept != nil || l.timeWait == 0
		return nil
	}
	for deadline := time.Now().Add(settle); ; time.Sleep(settleStep) {
		if err := s.Do(once); err != nil {
			return l, err
		}
		if l.over || time.Now().After(deadline) {
			break
		}
	}
	err = s.Do(func() error {
		l.ports, err = ephemeral()
		return err
	})
	return l, err
}

func (s Swept) ends() sock.Ends {
	if s.Ours == nil {
		return nil
	}
	return func(local, remote netip.AddrPort) bool { return s.Ours(local) || s.Ours(remote) }
}

func (s Swept) untrack() error {
	if s.Ours == nil {
		return conntrack.Flush()
	}
	return conntrack.Remove(s.Ours)
}

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
