package local

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"regexp"
	"time"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/build/exchange"
	"github.com/bridgetoll/bridgetoll/internal/build/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
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
// on to the server, and the other way round, and what they sent again either way.
// Sockets end with their connections, so the last that was seen of each is kept; of those that ended
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
		var resent uint64
		for _, l := range seen {
			resent += l.conn.Resent
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
			BackwardBytes: min(up.BackwardBytes, down.BackwardBytes), Hits: passed, ResentBytes: resent}, err
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

// ProcessIO is what a process has written by write(2), as forward, and read by
// read(2), of /proc/PID/io. docker-proxy (udp_proxy_linux.go, 20.10 to 29.8) writes
// a client's datagrams to the server's socket so and reads the server's so, and
// talks to clients by recvmsg(2) and sendmsg(2) or their like, which are not counted
// there. So every byte that came to the server through it is counted once, also if
// it was lost later, and it wrote none that it had not got from a client. UDP
// sockets have no byte counters of their own.
func ProcessIO(pid int) (c sample.Counters, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return c, fmt.Errorf("read what process %d moved: %w", pid, err)
	}
	io, err := p.IO()
	if err != nil {
		return c, fmt.Errorf("read what process %d moved: %w", pid, err)
	}
	return sample.Counters{ForwardBytes: io.WChar, BackwardBytes: io.RChar}, nil
}

var versionWord = regexp.MustCompile(`version (\S+)`)

// ProxyVersion asks a docker-proxy for its version: " 28.5.2", or "" (before 23.0 it
// could not tell).
func ProxyVersion(file string) string {
	const limit, most = time.Second, 64 << 10 // bytes
	out, _ := exchange.Output(context.Background(), exec.Command(file, "--version"), exchange.Limits{Time: limit, Output: most})
	if m := versionWord.FindSubmatch(out); m != nil {
		return " " + string(m[1])
	}
	return ""
}
