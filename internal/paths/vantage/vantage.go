// Package vantage makes a client's connections from a given place: from this machine, from inside a
// running container, or from a new container on a network of Docker or Podman. A socket belongs to
// the network namespace in which it was made, so the program itself stays where it is. Its
// connections use the place's routes, and names are looked up as in the place. Start starts a
// program whose whole network is the place's.
//
// CPU time and CPU limits are those of this process. Entering a container's network needs
// CAP_SYS_ADMIN. A name that is not in a container's hosts file is looked up in this machine's
// hosts file first, as Go's resolver does, and then by the container's name servers.
package vantage

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http/httptrace"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// Remote is another machine, where a toll that runs there makes the connections.
const (
	Here   = string(mode.FromHost)
	Remote = string(mode.FromRemote)
)

// Error reports an invalid place, with a remedy.
type Error struct {
	msg, hint string
	err       error
}

func (e *Error) Error() string {
	if e.err != nil {
		return e.msg + ": " + e.err.Error()
	}
	return e.msg
}

// Hint returns a remedy, or "".
func (e *Error) Hint() string  { return e.hint }
func (e *Error) Unwrap() error { return e.err }

// New returns the place for a placement that mode.OfServers has parsed. It is not open yet: see
// Open.
func New(p mode.Placement) *Vantage { return &Vantage{name: string(p)} }

// Vantage is a place. Once it is open, its methods are safe for concurrent use.
type Vantage struct {
	name  string
	pid   int         // PID of a process in the place; 0: this machine
	files string      // root of the place's file system; "": this machine's
	space fs.FileInfo // the place's network namespace, which held keeps alive
	held  *os.File
}

// Local returns this machine.
func Local() *Vantage { return &Vantage{name: Here} }

// Name returns the placement.
func (v *Vantage) Name() string { return v.name }

// Distant reports whether the place is another machine. Then this process can neither connect from
// it nor start programs there.
func (v *Vantage) Distant() bool { return v.name == Remote }

// Contained reports whether the place is in a container.
func (v *Vantage) Contained() bool { return v.name != Here && !v.Distant() }

// PID returns the PID of a process in the place; 0: this machine.
func (v *Vantage) PID() int { return v.pid }

func (v *Vantage) visit(f func() error) error {
	if err := v.lives(); err != nil {
		return err
	}
	return netns.Visit(v.pid, f)
}

// lives returns an error if the place's process has ended, even if another process has its PID now.
func (v *Vantage) lives() error {
	now, err := os.Stat(netns.File(v.pid))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, v.space) {
		return &Error{msg: v.name + " has ended",
			hint: "run toll again: a container that was restarted is a new place"}
	}
	return err
}

// Took has the times of connecting.
type Took struct {
	Began  time.Time     // when connecting began, after the name was looked up
	LookUp time.Duration // how long the look-up took; 0: the host was an address
	First  netip.Addr    // the host's address that was tried first; invalid: unknown
}

// Dial connects from the place.
func (v *Vantage) Dial(ctx context.Context, network, addr string) (net.Conn, Took, error) {
	if v.name == Here {
		return dialHere(ctx, network, addr)
	}
	if network == "unix" {
		return nil, Took{},
			&Error{msg: "a Unix socket is a file of this machine and cannot be reached from " +
				v.name, hint: "give a host and a port, or --from host"}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, Took{}, err
	}
	addrs, lookUp, err := v.LookUp(ctx, host)
	if err != nil {
		return nil, Took{}, err
	}
	took := Took{LookUp: lookUp, Began: time.Now()}
	if len(addrs) > 0 {
		took.First = addrs[0]
	}
	var failed []error
	for _, a := range addrs {
		var c net.Conn
		err := v.visit(func() (err error) {
			var d net.Dialer // with an address, it makes the socket on this thread
			c, err = d.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
			return err
		})
		if err == nil {
			return c, took, nil
		}
		if errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EACCES) {
			err = &Error{msg: "only root may connect from " + v.name, hint: remedy.AsRoot("toll …"), err: err}
		}
		failed = append(failed, err)
	}
	return nil, took, errors.Join(failed...)
}

// LookUp looks up a host in the place. It returns the host's addresses in order, and how long the
// look-up took; 0 means that the host is an address.
func (v *Vantage) LookUp(ctx context.Context, host string) (addrs []netip.Addr, took time.Duration,
	err error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, 0, nil
	}
	asked := time.Now()
	if v.name != Here {
		addrs, err = v.lookUp(ctx, host)
	} else {
		addrs, err = net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, time.Since(asked), err
}

func dialHere(ctx context.Context, network, addr string) (net.Conn, Took, error) {
	var mu sync.Mutex
	var took Took
	var asked time.Time
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { asked = time.Now() },
		DNSDone:  func(httptrace.DNSDoneInfo) { took.LookUp = time.Since(asked) },
	})
	begun := time.Now()
	first := func(_ context.Context, _, address string, _ syscall.RawConn) error {
		mu.Lock()
		defer mu.Unlock()
		if took.Began.IsZero() {
			took.Began = time.Now()
			if a, err := netip.ParseAddrPort(address); err == nil { // not of a Unix socket
				took.First = a.Addr().Unmap()
			}
		}
		return nil
	}
	d := net.Dialer{ControlContext: first}
	c, err := d.DialContext(ctx, network, addr)
	mu.Lock()
	defer mu.Unlock()
	if took.Began.IsZero() {
		took.Began = begun
	}
	return c, took, err
}
