package local

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bigtcp"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/shortcut"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Fast redirects a path's clients past docker-proxies, as toll fast does, until the path is closed
// or this process ends.
type Fast struct {
	path  *path.Path
	space Space
	table *shortcut.Table
}

// NewFast attaches the programs for clients in the given namespace.
func NewFast(p *path.Path, space Space) (*Fast, error) {
	const forever = 365 * 24 * time.Hour // the lease is not renewed
	f := &Fast{path: p, space: space}
	err := space.Do(func() (err error) {
		if f.table, err = shortcut.Load(); err != nil {
			return err
		}
		p.Undo.Push("end shortcuts", f.table.Close)
		return f.table.Renew(forever)
	})
	if err != nil {
		return nil, fmt.Errorf("bypass docker-proxy: %w", err)
	}
	return f, nil
}

// Lead redirects the clients of a published port. It makes the proxy that was added last, given by
// its hop, a guard: the proxy must have no connection.
func (f *Fast) Lead(proxy path.Hop, dial, target netip.AddrPort) error {
	pid := f.path.Proxies[len(f.path.Proxies)-1].PID
	f.path.Proxies = nil
	err := f.space.Do(func() error {
		l, err := shortcut.ListenerOf(pid, dial.Port())
		if err != nil {
			return err
		}
		return f.table.Add(shortcut.Entry{Dial: dial, Target: target}, l)
	})
	if err != nil {
		return fmt.Errorf("bypass docker-proxy: %w", err)
	}
	proxy = Unused(proxy)
	proxy.Read = func() (c sample.Counters, err error) {
		left, err := f.table.Left()
		if err != nil {
			return c, err
		}
		for _, n := range left {
			c.Hits += n
		}
		return c, f.space.Do(func() error {
			conns, err := sock.Of(pid)
			for _, x := range conns {
				c.ForwardBytes += x.Received
				c.BackwardBytes += x.Sent
			}
			return err
		})
	}
	f.path.Guards = append(f.path.Guards, proxy)
	return nil
}

// LargerPackets turns on BIG TCP for links of a space.
func LargerPackets(space Space, links ...string) error {
	return space.Do(func() error {
		for _, name := range links {
			if err := link.SetMaxSize(name, bigtcp.Size); err != nil {
				return err
			}
		}
		return nil
	})
}
