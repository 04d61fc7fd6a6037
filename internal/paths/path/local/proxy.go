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

	"github.com/bridgetoll/bridgetoll/internal/paths/exchange"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Proxy is a process that accepts TCP connections and dials one for each, such as docker-proxy, or
// has a TCP of its own towards a container's tap device, such as slirp4netns. Of datagrams it relays
// each client's by a socket, or by the tap device.
type Proxy struct {
	Space // where it listens
	// Dials is where it dials, if that is another network namespace: rootlesskit's sockets are in
	// two. Nil: where it listens.
	Dials Space
	// Tap is the container with the tap device, or behind it; then all sockets are on the other
	// side. Nil: none.
	Tap Space
	// Frames reads the tap device's counters, to the server and back, for datagrams. Nil: none.
	Frames Reader
	// Outward means that the clients are in the container with the tap device or, without Tap,
	// behind it: then all dials of the process's machine are the process's.
	Outward bool
	PID     int
	// Others means that the process has other ports too, or is of a user namespace whose processes'
	// sockets may not be listed: its connections are those of Listens and Target, whose ports are
	// no other process's.
	Others  bool
	Listens uint16         // published port
	Target  netip.AddrPort // the server's
	Second  uint16         // of Others, the path's second port, the same everywhere; 0: none
	// Beside means that others dial as often as the proxy where it dials: a client on the proxy's
	// machine, or another proxy behind it.
	Beside bool
}

// Relayed returns a reader of the proxy's own sockets: bytes to the server and back, and resent
// ones. It uses sock_diag, because /proc/PID/io misses spliced bytes. Sockets end with their
// connections, so the last reading of each is kept; the number of unread ones is known.
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

// opens counts the connections that came to the proxy and those that left it, as the namespaces'
// TCP counts them, which is without those that NAT forwards and dials that fail. Others dialled as
// often as besides.
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

// since returns the number of connections that passed after an earlier count. The namespaces are
// of different ages and have others' connections too, so only what came in between is compared.
func (o opens) since(last opens) uint64 {
	less := func(a, b uint64) uint64 { return a - min(a, b) }
	left := less(o.left, last.left)
	return min(less(o.came, last.came), less(left, less(o.besides, last.besides)))
}

func opensIn(s Space) (dialled, accepted uint64, err error) {
	err = s.Do(func() (err error) { dialled, accepted, err = sock.Opens(); return err })
	return dialled, accepted, err
}

// processIO returns from /proc/PID/io what a process wrote by write(2), as forward, and read by
// read(2). What this process may not read it asks of ServeIO.
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

// Child returns the PID of the named program, a child of the given process.
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

// CheckIO returns a *path.UnsupportedError if processIO cannot read the process. remedy helps where
// this process may not.
func CheckIO(pid int, remedy string) error {
	_, err := processIO(pid)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return &path.UnsupportedError{
			Missing: "datagrams are counted by /proc/" + strconv.Itoa(pid) + "/io, which toll may not read",
			Remedy:  remedy, Err: err}
	}
	return &path.UnsupportedError{
		Missing: "reading the bytes of a UDP proxy needs /proc/PID/io (CONFIG_TASK_IO_ACCOUNTING)",
		Remedy:  "use a kernel that has it", Err: err}
}

var versionWord = regexp.MustCompile(`version (\S+)`)

// ProxyVersion returns a docker-proxy's version, " 28.5.2", or "" before 23.0.
func ProxyVersion(file string) string {
	const limit, most = time.Second, 64 << 10 // bytes
	out, _ := exchange.Output(context.Background(), exec.Command(file, "--version"),
		exchange.Limits{Time: limit, Output: most})
	if m := versionWord.FindSubmatch(out); m != nil {
		return " " + string(m[1])
	}
	return ""
}
