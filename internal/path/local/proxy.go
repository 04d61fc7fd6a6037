package local

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// Proxy is a docker-proxy for TCP.
type Proxy struct {
	Space   // of the machine that it runs on
	PID     int
	Listens uint16         // the published port
	Target  netip.AddrPort // the container's
	// Beside says that the client is on the proxy's machine, too: it dials once for
	// each connection that is accepted.
	Beside bool
}

// Relayed are the proxy's own sockets: what it received from clients and sent
// on to the server, and the other way round. Sockets end with their
// connections, so the last that was seen of each is kept; of those that ended
// unseen there is at least their number.
func (p Proxy) Relayed() func() (sample.Counters, error) {
	type leg struct {
		toServer bool
		conn     sock.Conn
	}
	seen := map[uint32]leg{}
	return func() (sample.Counters, error) {
		var conns []sock.Conn
		err := p.Do(func() (err error) { conns, err = sock.Of(p.PID); return err })
		if err != nil {
			return sample.Counters{}, err
		}
		for _, c := range conns {
			seen[c.Inode] = leg{c.RemotePort == p.Target.Port() && c.LocalPort != p.Listens, c}
		}
		var up, down sample.Counters // the client's leg, the server's leg
		for _, l := range seen {
			if l.toServer {
				down.ForwardBytes += l.conn.Sent
				down.BackwardBytes += l.conn.Received
			} else {
				up.ForwardBytes += l.conn.Received
				up.BackwardBytes += l.conn.Sent
			}
		}
		passed, err := p.passed()
		return sample.Counters{ForwardBytes: min(up.ForwardBytes, down.ForwardBytes),
			BackwardBytes: min(up.BackwardBytes, down.BackwardBytes), Hits: passed}, err
	}
}

// passed is how many connections were accepted on the proxy's machine and dialled
// on from there, by the counters of its TCP: what NAT sends on to a server in a
// container never meets the machine's TCP. A client on the machine itself dials
// once for each that is accepted; a dial beyond that which comes to nothing is
// not counted, because it is not accepted.
func (p Proxy) passed() (uint64, error) {
	var dialled, accepted uint64
	err := p.Do(func() (err error) {
		dialled, accepted, err = sock.Opens()
		return err
	})
	if p.Beside {
		dialled -= min(dialled, accepted)
	}
	return min(dialled, accepted), err
}
