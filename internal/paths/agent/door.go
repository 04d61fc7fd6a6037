package agent

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// to authenticate and send the hello
	handshake = 5 * time.Second
	// strangers limits the unauthenticated connections, neighbours those from one address. Both are
	// larger than the number of agents in any run.
	strangers  = 512
	neighbours = 256
)

// door limits unauthenticated connections. When it is full, a new connection replaces another one.
// An attacker with hundreds of addresses can still replace an agent's connection during the one
// round trip that authentication takes.
type door struct {
	mu     sync.Mutex
	inside map[*guest]bool
	from   map[netip.Prefix]int
	count  uint64
	turned int
	last   error
}

type guest struct {
	conn  net.Conn
	from  netip.Prefix
	came  uint64
	spoke atomic.Bool // it has sent something
}

func newDoor() door { return door{inside: map[*guest]bool{}, from: map[netip.Prefix]int{}} }

func (d *door) enter(c net.Conn) *guest {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	g := &guest{conn: c, from: neighbourhood(c.RemoteAddr()), came: d.count}
	d.inside[g] = true
	d.from[g.from]++
	if d.from[g.from] > neighbours || len(d.inside) > strangers {
		out := d.crowdedOut(g)
		d.remove(out)
		out.conn.Close()
	}
	return g
}

// leave removes a connection. A second call has no effect.
func (d *door) leave(g *guest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remove(g)
}

func (d *door) remove(g *guest) {
	if !d.inside[g] {
		return
	}
	delete(d.inside, g)
	if d.from[g.from]--; d.from[g.from] == 0 {
		delete(d.from, g.from)
	}
}

// crowdedOut chooses the connection that a new one replaces: first one from the address with the
// most connections, so that a flood replaces its own; among these one that has sent nothing,
// because agents send at once; among these the oldest.
func (d *door) crowdedOut(came *guest) (out *guest) {
	worse := func(a, b *guest) bool {
		if na, nb := d.from[a.from], d.from[b.from]; na != nb {
			return na > nb
		}
		if sa, sb := a.spoke.Load(), b.spoke.Load(); sa != sb {
			return !sa
		}
		return a.came < b.came
	}
	for g := range d.inside {
		if g != came && (out == nil || worse(g, out)) {
			out = g
		}
	}
	return out
}

// neighbourhood returns the address, or for IPv6 its /64: one machine may have all its addresses.
func neighbourhood(a net.Addr) netip.Prefix {
	const network = 64 // bits
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Prefix{}
	}
	addr := at.Addr().Unmap().WithZone("")
	bits := addr.BitLen()
	if addr.Is6() {
		bits = network
	}
	p, _ := addr.Prefix(bits)
	return p
}

func (d *door) turn(from net.Addr, err error) {
	if errors.Is(err, net.ErrClosed) {
		err = errors.New("it did not authenticate, and newer connections replaced it")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turned++
	d.last = fmt.Errorf("%s: %s", from, clean(err.Error()))
}

func (d *door) told() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turned == 0 {
		return ""
	}
	return fmt.Sprintf(" (turned away: %d, the last: %v)", d.turned, d.last)
}
