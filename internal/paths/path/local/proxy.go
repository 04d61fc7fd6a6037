package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Proxy describes a process that accepts TCP connections and dials one for each, such as
// docker-proxy, or that has a TCP stack of its own towards a container's tap device, such as
// slirp4netns. It relays each client's datagrams by a socket, or by the tap device.
type Proxy struct {
	Space // where it listens
	// Dials is the namespace where it dials. Nil: where it listens. RootlessKit has sockets in two
	// namespaces.
	Dials Space
	// Tap is the namespace of the container with the tap device, or of one behind it. Then all
	// sockets of the process are on the other side. Nil: there is no tap device.
	Tap Space
	// Frames reads the tap device's counters, to the server and back. It is needed for datagrams.
	Frames Reader
	// Outward means that the clients are in the container with the tap device or behind it. Without
	// Tap, all connections that the process's machine dials are then the process's.
	Outward bool
	PID     int
	// Others means that the process also has other ports, or that toll may not list its sockets,
	// because it is in a user namespace. Its connections are then found by the ports of Listens and
	// Target, which no other process has.
	Others  bool
	Listens uint16         // published port
	Target  netip.AddrPort // the server's
	Second  uint16         // with Others, the path's second port, the same at both ends; 0: none
	// Beside means that, where the proxy dials, another process dials as many connections: a client
	// on the proxy's machine, or another proxy behind this one.
	Beside bool
}

// Relayed returns a reader of the proxy's TCP sockets: of the bytes to the server and back, and of
// resent bytes. It uses sock_diag, because /proc/PID/io misses spliced bytes. Sockets vanish with
// their connections, so the reader keeps the last counts of each. Hits is the number of
// connections, including those whose sockets were never read.
func (p Proxy) Relayed() func() (sample.Counters, error) {
	seen := map[uint32]leg{}
	var last *opens
	var passed uint64
	return func() (sample.Counters, error) {
		conns, err := p.conns(p.Space)
		if err != nil {
			return sample.Counters{}, err
		}
		for _, c := range conns {
			toServer := c.RemotePort == p.Target.Port() && c.LocalPort != p.Listens
			if p.Tap != nil || p.Outward {
				toServer = p.Outward
			}
			if !p.Others || c.LocalPort == p.Listens || p.isSecond(c.LocalPort) ||
				p.Outward && c.RemotePort == p.Target.Port() {
				seen[c.Inode] = leg{toServer, c}
			}
		}
		if p.Dials != nil {
			if conns, err = p.conns(p.Dials); err != nil {
				return sample.Counters{}, err
			}
			for _, c := range conns {
				if !p.Others || c.RemotePort == p.Target.Port() || p.isSecond(c.RemotePort) {
					seen[c.Inode] = leg{true, c}
				}
			}
		}
		up, down, resent := sums(seen)
		switch {
		case p.Outward:
			up = down
		case p.Tap != nil:
			down = up
		}
		now, err := p.passed()
		if last != nil {
			passed += now.since(*last)
		}
		last = &now
		return sample.Counters{ForwardBytes: min(up.ForwardBytes, down.ForwardBytes),
			BackwardBytes: min(up.BackwardBytes, down.BackwardBytes), Hits: passed,
			ResentBytes: resent}, err
	}
}

// leg is a connection of the proxy to the server or to a client.
type leg struct {
	toServer bool
	conn     sock.Conn
}

// sums returns the bytes between clients and the proxy, those between it and the server, and the
// resent ones of both. legs are by inode.
func sums(legs map[uint32]leg) (up, down sample.Counters, resent uint64) {
	for _, l := range legs {
		resent += l.conn.Resent
		if l.toServer {
			down.ForwardBytes += l.conn.Sent
			down.BackwardBytes += l.conn.Received
		} else {
			up.ForwardBytes += l.conn.Received
			up.BackwardBytes += l.conn.Sent
		}
	}
	return up, down, resent
}

func (p Proxy) isSecond(port uint16) bool { return port == p.Second && port != 0 }

func (p Proxy) conns(in Space) (out []sock.Conn, err error) {
	err = in.Do(func() (err error) {
		if p.Others {
			out, err = sock.All()
		} else {
			out, err = sock.Of(p.PID)
		}
		return err
	})
	return out, err
}

// opens has the numbers of connections that came to the proxy and that left it, by the TCP counters
// of the namespaces. These do not count connections that NAT forwards, and dials that fail. besides
// is the number of connections that other processes dialled.
type opens struct{ came, left, besides uint64 }

func (p Proxy) passed() (o opens, err error) {
	dialled, accepted, err := opensIn(p.Space)
	o = opens{came: accepted, left: dialled}
	there := accepted
	switch {
	case err != nil:
		return o, err
	case p.Dials != nil:
		o.left, there, err = opensIn(p.Dials)
	case p.Tap != nil && p.Outward:
		o.came, _, err = opensIn(p.Tap)
	case p.Tap != nil:
		_, o.left, err = opensIn(p.Tap)
	case p.Outward:
		o.came = dialled
	}
	if p.Beside {
		o.besides = there
	}
	return o, err
}

// since returns the number of connections that passed the proxy since an earlier count. It compares
// differences, because the namespaces are of different ages and have connections of other
// processes, too.
func (o opens) since(last opens) uint64 {
	less := func(a, b uint64) uint64 { return a - min(a, b) }
	left := less(o.left, last.left)
	return min(less(o.came, last.came), less(left, less(o.besides, last.besides)))
}

func opensIn(s Space) (dialled, accepted uint64, err error) {
	err = s.Do(func() (err error) { dialled, accepted, err = sock.Opens(); return err })
	return dialled, accepted, err
}

// processIO returns the number of bytes that a process wrote by write(2), as forward, and read by
// read(2), as backward, from /proc/PID/io. If this process may not read that file, it asks ServeIO.
func processIO(pid int) (c sample.Counters, err error) {
	c, err = readIO(pid)
	if errors.Is(err, fs.ErrPermission) {
		if outside, errAsk := askOutside(pid); errAsk == nil {
			return outside, nil
		}
	}
	return c, err
}

func readIO(pid int) (c sample.Counters, err error) {
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

// Child returns the PID of a child of the given process that runs the named program.
func Child(parent int, program string) (int, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	for _, p := range all {
		if s, err := p.Stat(); err == nil && s.PPID == parent && s.Comm == program {
			return p.PID, nil
		}
	}
	return 0, fmt.Errorf("process %d has no child %s", parent, program)
}

// CheckIO returns a *machine.UnsupportedError if processIO cannot read the process's counts. remedy
// is the remedy if this process lacks permission.
func CheckIO(pid int, remedy string) error {
	_, err := processIO(pid)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return &machine.UnsupportedError{
			Missing: "counting datagrams needs /proc/" + strconv.Itoa(pid) + "/io, which toll may not read",
			Remedy:  remedy, Err: err}
	}
	return &machine.UnsupportedError{
		Missing: "counting the bytes of a UDP proxy needs /proc/PID/io (CONFIG_TASK_IO_ACCOUNTING)",
		Remedy:  "use a kernel that has it", Err: err}
}

var versionWord = regexp.MustCompile(`version (\S+)`)

// ProxyVersion returns a docker-proxy's version with a space in front, such as " 28.5.2". It
// returns "" for versions before 23.0, which do not print it.
func ProxyVersion(file string) string {
	const limit, most = time.Second, 64 << 10 // bytes
	out, _ := exchange.Output(context.Background(), exec.Command(file, "--version"),
		exchange.Limits{Time: limit, Output: most})
	if m := versionWord.FindSubmatch(out); m != nil {
		return " " + string(m[1])
	}
	return ""
}
