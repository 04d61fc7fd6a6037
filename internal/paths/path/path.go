// Package path defines a live network mode: two places where processes can be started, an address
// to dial, and the hops in between, with counters. Backends implement Builder; pathtest checks that
// all behave the same.
//
// The witness proves from the hops' counters that a load crossed the path. Some counters do not
// prove that alone: those of a bridge and of Open vSwitch's kernel datapath count only at ports,
// and rules see only the first packet of a connection. A program at a device may redirect packets
// that the device has counted, so that they bypass the next hop. Undiverted refuses such paths.
package path

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"

	"github.com/bridgetoll/bridgetoll/internal/kernel/undo"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Spec names the path to build.
type Spec struct {
	Mode mode.Name
	From mode.Placement
	To   mode.Target
	Tune mode.Tunes
	// Servers and Clients are the numbers of servers and clients; 0 is 1. Client i uses server i
	// mod Servers.
	Servers, Clients int
	// UDP means that published ports, rules and proxies are for UDP; otherwise they are for TCP.
	UDP bool
	// Second adds a second port, with the same number at both ends, to the only server.
	Second bool
	// Server and Client name the nodes of a cluster on which the ends are; "": the backend chooses.
	Server, Client string
}

// Count returns the number of servers and clients, at least 1 each.
func (s Spec) Count() (servers, clients int) { return max(1, s.Servers), max(1, s.Clients) }

// TalkTo returns the indexes of the server's clients, or nil for all.
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

// Alone returns the client list of a hop that only this client crosses, or nil if the path has one
// client.
func (s Spec) Alone(client int) []int {
	if _, m := s.Count(); m == 1 {
		return nil
	}
	return []int{client}
}

// Loopback returns the loopback address of the family that clients dial.
func (s Spec) Loopback() netip.Addr {
	if s.To.Six() {
		return netip.IPv6Loopback()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// Anywhere returns the unspecified address of that family.
func (s Spec) Anywhere() netip.Addr {
	if s.To.Six() {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
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
	// Name returns the backend's name, as `--on` takes it.
	Name() string
	// Check returns nil if the path can be built here, an *machine.UnsupportedError if it cannot,
	// or another error if Check could not find out. It leaves nothing behind after the backend is
	// closed.
	Check(ctx context.Context, s Spec) error
	// Build builds the path. The caller closes it. A failed Build undoes its changes.
	Build(ctx context.Context, s Spec) (*Path, error)
}

// ErrOutside is the *machine.UnsupportedError of backends without a server for the target outside.
var ErrOutside error = &machine.UnsupportedError{
	Missing: "the target outside needs a server on another machine, and none was named",
	Remedy:  "--peer [user@]HOST, a machine that you reach by ssh, instead of --on; or --on lab"}

// LeftError reports that a node has left the cluster for the rest of this run.
type LeftError struct {
	Node string
	Err  error
}

func (e *LeftError) Error() string { return e.Err.Error() }
func (e *LeftError) Unwrap() error { return e.Err }

// CutError reports that the channel to a machine broke. Err names the channel. Earlier measurements
// stay valid.
type CutError struct{ Err error }

func (e *CutError) Error() string { return e.Err.Error() }
func (e *CutError) Unwrap() error { return e.Err }

// Command describes a process that runs toll itself with other arguments.
type Command struct {
	Args []string // after the program's name
	Env  []string // added to the environment
	// Apart gives the process its own PID and mount namespaces. Its children die with it.
	Apart bool
}

// Process is a started process.
type Process struct {
	PID int // in the machine's numbering; 0: unknown
	In  io.WriteCloser
	Out io.ReadCloser
	// Wait waits until the process has ended. It is called once. If the process failed, the error
	// has the end of its standard error.
	Wait func() error
	// Kill kills the process. It returns nil if the process has already ended.
	Kill func() error
}

// Place is where a process can be started.
type Place interface {
	// Name returns a name such as "container on machine A".
	Name() string
	// Start starts a process, which ends with the place or with the calling process at the latest.
	Start(c Command) (*Process, error)
}

// Server is the end that listens. A nil Machine is this machine.
type Server struct {
	Place
	Listen  netip.AddrPort // in the namespace of its place
	Machine Machine
}

// Client is the end that dials. A nil Machine is this machine.
type Client struct {
	Place
	Dial    netip.AddrPort // in the namespace of its place
	Server  int            // index into Path.Servers
	Machine Machine
}

// Path is a live mode.
type Path struct {
	Spec    Spec
	Servers []Server
	Clients []Client

	// Hops lists, from client to server, what the load's bytes cross.
	Hops   []Hop
	Second uint16
	// Guards lists rules and devices that the path must not use: their counters must not have
	// counted the load.
	Guards []Hop

	// Arrived returns the number of accepted TCP connections and received datagrams where the
	// (first) server is. Nil: unknown.
	Arrived func() (uint64, error)

	Proxies []Proxy // in user space
	// Copiers lists the PIDs of processes on this machine that copy packets from device to device.
	Copiers []int
	// Machines lists the path's other machines, each once, including relays. Channel connects to
	// them.
	Machines []Machine
	Channel  Channel

	// Cards lists the path's network cards. All packets cross those in Crosses.
	Cards   []sample.Card
	Crosses []sample.CardName

	Links   []sample.Link
	Sysctls map[string]string
	Facts   map[string]string

	// Drain removes sockets in TIME_WAIT and connection tracking entries, and returns the remaining
	// headroom for new connections. It is called while no load runs. Nil: the backend cannot.
	Drain func() (sample.Headroom, error)

	// Inspect reads the path's settings: only other programs would change them. It is called while
	// no load runs. Nil: the backend cannot.
	Inspect func() ([]Setting, error)

	// Namespaces opens the network namespaces of this machine that packets can cross, each once,
	// with all their devices. The caller closes them. Nil: the backend cannot.
	Namespaces func() ([]Namespace, error)

	// Hold sets machine-wide settings for a visit; release restores them. Nil: there are none.
	Hold func() (release func() error, err error)

	Undo undo.Stack // run by Close
}

// Namespace is an open network namespace.
type Namespace struct {
	*os.File
	Links []sample.Link // with NetNS and Index
}

// Proxy is a process that relays the load. A nil Machine is this machine.
type Proxy struct {
	Name    string // program and any known version
	PID     int
	Machine Machine
}

// Close removes the path. It runs all steps, even if some fail, and joins their errors. A second
// Close does nothing.
func (p *Path) Close() error { return p.Undo.Undo() }

// of returns the hops that a client's bytes cross, in order.
func (p *Path) of(client int) []Hop {
	var out []Hop
	for _, h := range p.Hops {
		if h.carry(client) {
			out = append(out, h)
		}
	}
	return out
}

// Route returns the route of a client, for comparison with the catalogue.
func (p *Path) Route(client int) mode.Route {
	r := mode.Route{From: p.Spec.From, To: p.Spec.To}
	for _, h := range p.of(client) {
		r.Hops = append(r.Hops, h.Kind)
	}
	return r
}

// Kinds returns the kinds of the first client's hops in order.
func (p *Path) Kinds() []string {
	var out []string
	for _, k := range p.Route(0).Hops {
		out = append(out, string(k))
	}
	return out
}

// AddCards adds network cards of a place to the path. crossed names the cards that all of the
// path's packets cross.
func (p *Path) AddCards(where string, all []sample.Card, crossed []string) {
	for _, c := range all {
		c.Where = where
		p.Cards = append(p.Cards, c)
	}
	for _, name := range crossed {
		p.Crosses = append(p.Crosses, sample.CardName{Name: name, Where: where})
	}
}
