// Package path defines a live network mode for its users: two places where
// processes can be started, an address to dial, and the hops in between with
// counters that can be read. Backends implement Builder; the conformance suite in
// pathtest checks that all of them behave the same.
package path

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/build/undo"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Spec names the path to build.
type Spec struct {
	Mode mode.Name
	From mode.Placement
	To   mode.Target
	Tune mode.Tunes
	// Servers and Clients are how many containers there are of each, 0 is one;
	// client i talks to server i mod Servers.
	Servers, Clients int
	// UDP says that the load goes over UDP: rules and proxies are for one
	// protocol.
	UDP bool
	// Second asks for a second port of the (one) server, as some programs open
	// one beside the first. It has the same number for both ends.
	Second bool
	// Server and Client are the nodes of a cluster that the ends are on, by name;
	// empty: as the backend chooses.
	Server, Client string
}

// Count is how many servers and clients the path has.
func (s Spec) Count() (servers, clients int) { return max(1, s.Servers), max(1, s.Clients) }

// TalkTo are the clients of a server, as hops name them: nil is all.
func (s Spec) TalkTo(server int) []int {
	n, m := s.Count()
	if n == 1 {
		return nil
	}
	out := []int{}
	for i := server; i < m; i += n {
		out = append(out, i)
	}
	return out
}

// Alone is a client, as hops that are its own name it: nil if there is no other.
func (s Spec) Alone(client int) []int {
	if _, m := s.Count(); m == 1 {
		return nil
	}
	return []int{client}
}

func (s Spec) String() string {
	out := fmt.Sprintf("%s from %s to %s", s.Tune.Name(string(s.Mode)), s.From, s.To)
	if n, m := s.Count(); n > 1 || m > 1 {
		out = fmt.Sprintf("%s (servers: %d, clients: %d)", out, n, m)
	}
	if s.UDP {
		out += " by UDP"
	}
	if s.Client != "" {
		out += " (" + s.Client + " to " + s.Server + ")"
	}
	return out
}

// Builder builds paths.
type Builder interface {
	// Name is the backend's name, as `--on` takes it.
	Name() string
	// Check reports whether the path can be built here, without leaving
	// anything behind: nil, an error that wraps ErrUnsupported and is an
	// *UnsupportedError, or another error if it could not tell.
	Check(ctx context.Context, s Spec) error
	// Build builds the path. The caller closes it. If Build fails it has
	// undone what it did.
	Build(ctx context.Context, s Spec) (*Path, error)
}

// ErrUnsupported says that this machine cannot have the path.
var ErrUnsupported = errors.New("not supported here")

// UnsupportedError says what is missing and what to do about it.
type UnsupportedError struct {
	Missing string // kernel option, privilege or program
	Remedy  string
	Err     error // what was seen; may be nil
}

func (e *UnsupportedError) Error() string {
	if e.Err == nil {
		return e.Missing
	}
	return fmt.Sprintf("%s (%v)", e.Missing, e.Err)
}

// Is makes errors.Is(err, ErrUnsupported) true.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }
func (e *UnsupportedError) Unwrap() error        { return e.Err }

// Hint is the remedy.
func (e *UnsupportedError) Hint() string { return e.Remedy }

// LeftError says that a node of a cluster has gone, and will not come back in this run.
type LeftError struct {
	Node string
	Err  error // how that was seen
}

func (e *LeftError) Error() string { return e.Err.Error() }
func (e *LeftError) Unwrap() error { return e.Err }

// CutError says that the channel to a machine broke. The machine and the path there may be as they
// were: that cannot be told any more, and nothing says that what was measured before is wrong.
type CutError struct{ Err error } // whose channel, and why

func (e *CutError) Error() string { return e.Err.Error() }
func (e *CutError) Unwrap() error { return e.Err }

// Command is a process to start in a place: toll itself with other arguments.
type Command struct {
	Args []string // after the program's name
	Env  []string // added to the environment
	// Apart gives the process PID and mount namespaces of its own, in which it is
	// the first: whatever it starts there dies with it.
	Apart bool
}

// Process is a started process.
type Process struct {
	PID int // as the machine sees it
	In  io.WriteCloser
	Out io.ReadCloser
	// Wait waits for the end and returns how it ended, with the last lines
	// of the standard error if it ended badly. It is called once.
	Wait func() error
	// Kill kills the process; one that has ended is no error.
	Kill func() error
}

// Place is where a process can be started.
type Place interface {
	// Name says where it is in words, "container on machine A".
	Name() string
	// Start starts c there. The process dies with the place and with the
	// calling process, at the latest.
	Start(c Command) (*Process, error)
}

// Server is the end that listens.
type Server struct {
	Place
	Listen  netip.AddrPort // in its place
	Machine Machine        // that it is on; nil: this one
}

// Client is the end that dials.
type Client struct {
	Place
	Dial    netip.AddrPort // in its place
	Server  int            // the server that it reaches: an index into Path.Servers
	Machine Machine        // that it is on; nil: this one
}

// Path is a live mode.
type Path struct {
	Spec    Spec
	Servers []Server
	Clients []Client

	// Hops are what the load's bytes cross, from client to server. Those of
	// several clients stand together: the hops of each client are in order.
	Hops []Hop
	// Second is the second port, if Spec asks for one.
	Second uint16
	// Guards are what they must not touch: the rule or device that a wrong
	// path would use.
	Guards []Hop

	// Arrived counts the TCP connections that were accepted, and the datagrams that
	// came, where the (first) server is. Nil: the backend cannot tell.
	Arrived func() (uint64, error)

	Proxies []Proxy // user-space ones on the path
	// Machines are the other machines that the path is on, each once: those of the
	// ends and those that only relay. Nil: the path is on this machine alone. Channel
	// is the way to them.
	Machines []Machine
	Channel  Channel

	// Cards are network cards of the path's machines, and Crosses those that all of its
	// packets cross.
	Cards   []sample.Card
	Crosses []sample.CardName

	Links   []sample.Link
	Sysctls map[string]string
	Facts   map[string]string

	// Drain takes away what connections leave behind when they end, sockets in
	// TIME_WAIT and entries of connection tables, and returns the headroom for
	// new ones. What cannot be taken away is in the headroom, not an error. It is
	// called while no load runs. Nil: the backend cannot.
	Drain func() (sample.Headroom, error)

	// Inspect reads the path's settings. Undisturbed they are the same as long as the
	// path lives, whatever it carries. It is called while no load runs, and costs
	// milliseconds. Nil: the backend cannot.
	Inspect func() ([]Setting, error)

	Undo undo.Stack // run by Close
}

// Proxy is the process that relays the load.
type Proxy struct {
	Name    string // program and, if known, version
	PID     int
	Machine Machine // that it is on; nil: this one
}

// Close takes the path down. It never stops early; a second Close does
// nothing.
func (p *Path) Close() error { return p.Undo.Undo() }

// Of are the hops that a client's bytes cross, in order.
func (p *Path) Of(client int) []Hop {
	var out []Hop
	for _, h := range p.Hops {
		if h.Carry(client) {
			out = append(out, h)
		}
	}
	return out
}

// Route is the way of a client's bytes, as the catalogue has it.
func (p *Path) Route(client int) mode.Route {
	r := mode.Route{From: p.Spec.From, To: p.Spec.To}
	for _, h := range p.Of(client) {
		r.Hops = append(r.Hops, h.Kind)
	}
	return r
}

// Kinds are the kinds of the first client's hops in order.
func (p *Path) Kinds() []string {
	var out []string
	for _, k := range p.Route(0).Hops {
		out = append(out, string(k))
	}
	return out
}
