// Package agent is the way to other machines. On each of them toll runs as an
// agent, which dials the toll that measures, starts its workers there and reads
// counters, meters and clocks:
//
//	toll (Hub)                              agent on another machine
//	                        <- TLS 1.3, both sides with the run's key
//	                        <- hello (identity, host, kernel, version)
//	welcome                 ->
//	order                   -> JSON lines, each with a number
//	                        <- answer of that number; notes of processes that ended
//	start (one-time token)  ->
//	                        <- a further TLS connection, which begins with the token
//	standard input          -> and is the process's
//	                        <- standard output
//
// No port of a machine is opened, so agents may be behind any NAT. What an agent
// started dies with it, and an agent ends itself when its control connection ends
// or is silent for too long; so nothing is left when toll dies.
//
// While a window is measured the channel is quiet (Hub.Hush), and the agents count
// what it carried all the same.
package agent

import (
	"context"
	"net/netip"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// Arg is the argument that makes toll an agent.
const Arg = "agent"

// Hello is how an agent presents itself.
type Hello struct {
	ID      string `json:"id"`      // what Hub.Wait asks for, such as a Swarm task's or node's id with a role
	Name    string `json:"name"`    // where it is in words, "container on node b"
	Host    string `json:"host"`    // host name, as the agent sees it
	Kernel  string `json:"kernel"`  // release
	Boot    string `json:"boot"`    // the kernel's boot_id: agents that have the same are on one machine
	Version string `json:"version"` // of toll
	CPUs    int    `json:"cpus"`    // that the agent may run on
}

// Counter is something on an agent's machine that counts, in a network namespace:
// exactly one of the kinds is set.
type Counter struct {
	// Namespace is a file that stands for a network namespace, as the agent sees it,
	// such as /run/docker/netns/1-abcdef; "" is the agent's own. Another one needs
	// CAP_SYS_ADMIN.
	Namespace string  `json:"namespace,omitempty"`
	Device    *Device `json:"device,omitempty"`
	NAT       *NAT    `json:"nat,omitempty"`
	ESP       *ESP    `json:"esp,omitempty"`
	Proxy     *Proxy  `json:"proxy,omitempty"`
}

// Device is a network device's counters, as path/local.Device reads them.
type Device struct {
	Name string `json:"name"`
	// ForwardRx says that what the device receives is on its way to the server.
	ForwardRx bool `json:"forward_rx,omitempty"`
	// OneWay keeps what counts as forward only, of a device that sees both directions
	// of the load that way.
	OneWay bool `json:"one_way,omitempty"`
}

// NAT is the connections that were rewritten: those that dialled To and are
// answered by Now. Hits are the entries of the connection table. It needs
// CAP_NET_ADMIN.
type NAT struct {
	Proto string         `json:"proto"` // tcp or udp
	To    netip.AddrPort `json:"to"`
	Now   netip.AddrPort `json:"now"`
	// Ended counts TCP connections that the table only remembers, too.
	Ended bool `json:"ended,omitempty"`
}

// ESP is what the ESP states between two machines have carried, whatever their
// keys. It needs CAP_NET_ADMIN.
type ESP struct {
	Client netip.Addr `json:"client"` // source of what is on its way to the server
	Server netip.Addr `json:"server"`
}

// Proxy is what a docker-proxy for TCP relayed, as path/local.Proxy tells it. It
// needs CAP_SYS_PTRACE and the machine's PID namespace.
type Proxy struct {
	PID     int            `json:"pid"` // as the agent sees it
	Listens uint16         `json:"listens"`
	Target  netip.AddrPort `json:"target"`
	Beside  bool           `json:"beside,omitempty"` // the client is on the proxy's machine, too
}

// Key is what a run's toll and its agents know each other by. It is made for the
// run, never leaves memory but in the agents' bundle, and is good for a day.
type Key struct{}

// NewKey makes a key: a certificate authority that exists only while this function
// runs, a certificate for toll and one for all agents, on Ed25519.
func NewKey() (*Key, error) { return nil, errLater }

// Bundle is the agents' side of the key as PEM, about 2 kB: secret.
func (k *Key) Bundle() []byte { return nil }

// Hub is the toll that measures, as its agents see it.
type Hub struct{}

var _ path.Channel = (*Hub)(nil)

// Listen waits for agents that have the key and are of the same version. Whoever
// else dials is turned away and disturbs nobody. Port 0 is any. The caller closes
// the hub.
func Listen(addr netip.AddrPort, key *Key, version string) (*Hub, error) { return nil, errLater }

// Addr is where the hub listens.
func (h *Hub) Addr() netip.AddrPort { return netip.AddrPort{} }

// Wait waits until ctx ends for the agent that has the identity. One that was
// refused, for its version, is an error that names it, at once.
func (h *Hub) Wait(ctx context.Context, id string) (*Agent, error) { return nil, errLater }

// Hush stops the pings of all agents for at most d. If that is longer than agents
// bear they are told beforehand.
func (h *Hub) Hush(ctx context.Context, d time.Duration) (resume func(), err error) {
	return nil, errLater
}

// Moved counts the bytes that the hub has written and read on all connections.
func (h *Hub) Moved() uint64 { return 0 }

// Close ends all connections; the agents kill what they started and end
// themselves. A second Close does nothing.
func (h *Hub) Close() error { return errLater }

// Agent is an agent that has come, as the hub sees it: a place where processes
// can be started, and the machine that it is on. When it is lost every call
// returns at once, with an error that names it.
type Agent struct{}

var (
	_ path.Place   = (*Agent)(nil)
	_ path.Machine = (*Agent)(nil)
)

// Hello is how the agent presented itself.
func (a *Agent) Hello() Hello { return Hello{} }

// Name is the name that the agent gave itself.
func (a *Agent) Name() string { return "" }

// Err is why the agent is lost: "node b left: …"; nil: it is there.
func (a *Agent) Err() error { return nil }

// Lost is closed when the agent is lost.
func (a *Agent) Lost() <-chan struct{} { return nil }

// Start starts c beside the agent: toll itself, with the arguments of a worker or
// of a keeper of programs.
func (a *Agent) Start(c path.Command) (*path.Process, error) { return nil, errLater }

// Clock compares the clocks by several round trips.
func (a *Agent) Clock(ctx context.Context) (path.Offset, error) { return path.Offset{}, errLater }

// Meter is path.Machine's.
func (a *Agent) Meter(ctx context.Context, from, to int64, pids ...int) (path.Metering, error) {
	return nil, errLater
}

// Counters reads the counters, all at once, in their order. A capability that the
// agent lacks is a *path.UnsupportedError that names it.
func (a *Agent) Counters(ctx context.Context, what []Counter) ([]sample.Counters, error) {
	return nil, errLater
}

// Read is a hop's reader of one counter: path.Hop.Read. It takes 5 s at most.
func (a *Agent) Read(c Counter) func() (sample.Counters, error) { return nil }

// Interface is a network device as an agent sees it.
type Interface struct {
	sample.Link                // Where is the agent's name
	Index       int            `json:"index"`
	Up          bool           `json:"up"`
	Peer        int            `json:"peer,omitempty"`   // of a veth: the other end's index in its namespace
	Master      string         `json:"master,omitempty"` // the bridge of which it is a port
	Addrs       []netip.Prefix `json:"addrs,omitempty"`
	Uplink      bool           `json:"uplink,omitempty"` // a default route leaves by it
}

// Interfaces lists the devices of a network namespace, as in Counter.
func (a *Agent) Interfaces(ctx context.Context, namespace string) ([]Interface, error) {
	return nil, errLater
}

// Files lists a directory of the agent's machine, such as /run/docker/netns, as
// the agent sees it.
func (a *Agent) Files(ctx context.Context, dir string) ([]string, error) { return nil, errLater }

// Config is what an agent must know.
type Config struct {
	Bundle  []byte           // of the run's key
	Dial    []netip.AddrPort // where the hub may be reached, tried in turn
	ID      string
	Name    string // "": the host name
	Version string // of toll
	// Starts are the first arguments of what may be started: toll's own parts.
	Starts []string
	// Patience is how long the hub may be out of reach before the agent gives up;
	// 0: a minute.
	Patience time.Duration
}

// Main runs an agent until its hub lets go of it, which is no error, or ctx ends.
// What it started is dead when it returns.
func Main(ctx context.Context, c Config) error { return errLater }
