package ports

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
)

// schema is documented in docs/results.md.
const schema = "bridgetoll.ports/1"

// Report is the output of `toll ports`.
type Report struct {
	Schema  string   `json:"schema"`
	Port    uint16   `json:"port,omitempty"`
	Docker  string   `json:"docker,omitempty"`
	Address []string `json:"own_addresses"`
	Client  string   `json:"client,omitempty"`
	// ClientDials is this machine's address in the client's direction; "": not known.
	ClientDials string   `json:"client_dials,omitempty"`
	Ports       []Row    `json:"ports"`
	Inside      []Inside `json:"inside"` // unpublished ports in containers
	// Exposure lists Ports and Inside by who reaches them. Answer states the same in sentences; it
	// is nil without ports.
	Exposure []Exposed        `json:"exposure"`
	Answer   *analysis.Answer `json:"answer,omitempty"`
	// Containers lists the running containers; nil in a report on one port.
	Containers []Home    `json:"containers,omitempty"`
	Networks   []Network `json:"networks,omitempty"` // the engine's; nil in a report on one port
	Proxies    *Proxies  `json:"proxies,omitempty"`  // nil: no docker-proxy runs
	Traps      []Trap    `json:"traps"`
	Checks     []Check   `json:"checks,omitempty"`
	Costs      *Costs    `json:"costs,omitempty"`
	Measure    []Measure `json:"measure,omitempty"` // only in a report on one port
	// MeasureServer is a command that measures the port's server over each route; "": the server is
	// unknown or has only one route.
	MeasureServer string `json:"measure_server,omitempty"`
	// TraceServer is a command that divides the time of requests over them; "" as for MeasureServer.
	// Requests over UDP are divided over one route, too.
	TraceServer string `json:"trace_server,omitempty"`
	// Expected has the judged lines of --expect; nil without it. Changes is the comparison of
	// --against; nil without it.
	Expected []Expectation `json:"expected,omitempty"`
	Changes  *Changes      `json:"changes,omitempty"`
	// Tried has the commands of --try, whose changes Changes has; nil without them.
	Tried   *Tried    `json:"tried,omitempty"`
	Missing []Missing `json:"missing"`

	guessed bool              // nothing was tried in a copy of the machine
	cards   map[string]string // the names of the machine's network cards by hardware address
	devices []Device          // the machine's
}

// Row is a port at a listening address.
type Row struct {
	Port    uint16          `json:"port"`
	Proto   string          `json:"protocol"`
	Family  string          `json:"family"`  // "ipv4", "ipv6" or "both"
	Address string          `json:"address"` // "0.0.0.0", "::", …; "*": a socket of both families
	Server  Server          `json:"server"`
	Holder  Holder          `json:"holder"`
	Paths   map[Client]Path `json:"paths"`
	// Dials has all connections that were tried in the copy of the machine; Paths has the first of
	// each kind of client. Empty: there was no copy.
	Dials []Path `json:"dials,omitempty"`

	addr    netip.Addr
	found   bool // found by a scan, or requested
	instead bool // rules bypass another row's socket
}

// Server is the program that answers the clients of a port.
type Server struct {
	Kind  string `json:"kind"` // "process", "container", "service" (of a swarm) or "unknown"
	Name  string `json:"name,omitempty"`
	PID   int    `json:"pid,omitempty"`
	Image string `json:"image,omitempty"`
	ID    string `json:"id,omitempty"`
	Port  uint16 `json:"port,omitempty"` // in the container
	// Network is "host" or "container:NAME" if the container shares a network, else "".
	Network string `json:"network,omitempty"`
	State   string `json:"state,omitempty"` // of a container, such as "paused"
}

// Holder is the process or the rules that take the connections to a listening address.
type Holder struct {
	// Kind is "server", "docker-proxy", a relay's name such as "pasta", "dockerd", "conmon",
	// "rules" (no socket) or "unknown".
	Kind string `json:"kind"`
	PID  int    `json:"pid,omitempty"`
	// Memory is a proxy's memory in bytes, and Connections the number of its clients' open
	// connections.
	Memory      int64 `json:"memory_bytes,omitempty"`
	Connections int   `json:"connections,omitempty"`
}

// Proxies sums up docker-proxies.
type Proxies struct {
	Number      int   `json:"number"`
	Memory      int64 `json:"memory_bytes"`
	Connections int   `json:"connections"`
}

// Client is a client's place and the address that it dials.
type Client string

// The clients, in the order of the table's columns.
const (
	Loopback  Client = "127.0.0.1"
	Loopback6 Client = "::1"
	OwnAddr   Client = "own"       // this machine, at its own address
	Neighbour Client = "container" // a container of the same network, at the machine's address
	Remote    Client = "machine"   // another machine
)

var clients = []Client{Loopback, Loopback6, OwnAddr, Neighbour, Remote}

// Clients returns the clients in column order.
func Clients() []Client { return slices.Clone(clients) }

// PathKind is how a connection reaches its server, or how it ends without one.
type PathKind string

const (
	Direct     PathKind = "direct"
	ByProxy    PathKind = "proxy"    // docker-proxy or a relay accepts and dials the container
	ByShortcut PathKind = "shortcut" // toll fast redirects the connect to the container
	ByNAT      PathKind = "DNAT"     // rules translate the destination
	Hairpin    PathKind = "hairpin"  // DNAT back to the bridge where the packet came from
	Blocked    PathKind = "blocked"
	Held       PathKind = "held"    // a socket accepts, but no process answers
	Nothing    PathKind = "nothing" // refused: nothing listens
	Unknown    PathKind = "?"       // the program of the socket that accepts is not known
)

// Path is a client's path to the server, or the reason why the client reaches none.
type Path struct {
	Kind PathKind `json:"way"`
	// Client is the kind of client. In Row.Paths it equals the key.
	Client Client `json:"client,omitempty"`
	Dial   string `json:"dial"`
	// From is the client's place in words, such as "a container on shop_default" or "a machine
	// behind eth0"; "": the kind of client suffices.
	From   string `json:"from,omitempty"`
	Source string `json:"source,omitempty"` // the client's address
	Seen   string `json:"seen,omitempty"`   // the client's address as the server sees it
	// Servers lists the servers that answered in turn if rules choose at random; else nil.
	Servers []string `json:"servers,omitempty"`
	// Block is the place where packets were lost; nil: none, or not known.
	Block *Block `json:"block,omitempty"`
	// Masqueraded means that the server does not see the client's address.
	Masqueraded bool   `json:"masqueraded,omitempty"`
	Hops        []Hop  `json:"hops"`
	Why         Reason `json:"why,omitzero"` // why the path ends where it does
	// Remedy is the commands of Trial in one line, with the words for how they were tried; "": none.
	Remedy string   `json:"remedy,omitempty"`
	Trial  *Trial   `json:"trial,omitempty"` // nil: no command is known
	Doubt  []Reason `json:"doubt,omitempty"` // what is not known of it
	// Depends lists rules that treat other clients in the same place differently.
	Depends []string `json:"depends,omitempty"`
	Cost    []Cost   `json:"cost,omitempty"`
	// Tried is what this machine's own connection got, as in a check; "": there was none, or only in
	// the copy.
	Tried string `json:"tried,omitempty"`

	target     netip.AddrPort // address in the container's network
	proxy      *Proxy         // that relays the connection; nil: none
	server     Server         // the server that answered
	socket     netip.AddrPort // address of the machine's socket that took the connection
	inode      uint32         // of that socket; 0: none, or not known
	lost       *Loss          // without what sent the packet there; nil: no packet was lost
	candidates []Command
	vain       bool           // nothing listens on the target either
	nobody     string         // the container in which nothing listens
	localnet   string         // the device that does not carry 127.0.0.1
	answered   netip.AddrPort // the source of a datagram's answer if it is not Dial; else zero
	own        bool           // Dial is the container's own address
	card       string         // the device behind which the client is; "": on this machine
	self       bool           // the client is the server's own container
	single     bool           // rules may treat the client differently from others of its network
	network    string         // of a client in a container; "": not known
	moved      bool           // rules redirect to another socket of the machine than the dialled one
}

// Block is where the packets of a connection are lost.
type Block struct {
	Where  string `json:"where"`           // "this machine" or "container vpn"
	Reply  bool   `json:"reply"`           // the server's answer is lost, not the client's packet
	Rule   string `json:"rule,omitempty"`  // as the user wrote it; "": a policy, or no rule
	Table  string `json:"table,omitempty"` // "filter"; "": no rule
	Chain  string `json:"chain,omitempty"`
	Number int    `json:"number,omitempty"` // the rule's number in the chain, from 1
	Policy bool   `json:"policy,omitempty"` // the chain's policy dropped the packet
	Cause  string `json:"cause,omitempty"`  // if there is no rule, in words
}

// Answers reports whether the path ends at a server.
func (p Path) Answers() bool {
	return p.Kind == Direct || p.Kind == ByProxy || p.Kind == ByShortcut || p.Kind == ByNAT ||
		p.Kind == Hairpin || p.Kind == Unknown
}

type Hop struct {
	Kind string `json:"kind"` // lo, wire, DNAT, MASQ, proxy, bridge, veth, socket, server
	Text string `json:"text"`
}

// Trap is a fault or a doubt, with evidence and remedy.
type Trap struct {
	Code  string   `json:"code"`
	Ports []string `json:"ports,omitempty"` // "8080/tcp"
	// About is of what Report.Say makes Text. Its code may be more exact than Code.
	About    Reason `json:"-"`
	Text     string `json:"text"`
	Evidence string `json:"evidence"`
	Remedy   string `json:"remedy"`

	container string      // an ID, for PortConflict
	trials    []TrapTrial // what can be tried
	seen      []sight     // of each port, or of the machine; Evidence is made of it
}

// Check is the result of one TCP connection attempt.
type Check struct {
	Client Client `json:"client"`
	Dial   string `json:"dial"`
	// Got is "connected", "refused", "timeout", "closed" (at once after accepting) or "error".
	Got      string   `json:"got"`
	Detail   string   `json:"detail,omitempty"`
	Elapsed  float64  `json:"elapsed_s"`
	Expected PathKind `json:"expected"`
	Agrees   bool     `json:"agrees"`
}

// Cost is the measured cost of a path, as a ratio to the results file's baseline.
type Cost struct {
	Mode    string  `json:"mode"`
	Load    string  `json:"load"`
	Metric  string  `json:"metric"`
	Ratio   float64 `json:"ratio"`
	Text    string  `json:"text"` // with its interval
	Verdict string  `json:"verdict"`
}

// Costs names the source of the costs.
type Costs struct {
	File     string   `json:"file"`
	Baseline string   `json:"baseline"`
	Lacks    []string `json:"lacks,omitempty"` // modes that have no result in the file
}

// Contradict replaces the answer if checks contradict it, and reports whether they do.
func (r *Report) Contradict() bool {
	var said []string
	for _, k := range r.Checks {
		if !k.Agrees {
			said = append(said, fmt.Sprintf("%s was expected to be %s, and a real connection was %s.",
				k.Dial, k.Expected.past(), k.Got))
		}
	}
	if len(said) == 0 || r.Answer == nil {
		return len(said) > 0
	}
	r.Answer.Text = append([]string{"toll read something wrongly, or it has changed since: what " +
		"follows may be false."}, said...)
	for i := range r.Exposure {
		r.Exposure[i].Sure = false
	}
	return true
}

// past returns words for what a connection of that kind does.
func (k PathKind) past() string {
	switch k {
	case Nothing:
		return "refused"
	case Blocked:
		return "blocked"
	case Held:
		return "accepted and not answered"
	}
	return "answered"
}

// Served reports whether a client on this machine gets an answer. If Check made the connection, its
// result decides, unless the connection was closed at once.
func (r *Report) Served() bool {
	served := false
	try := func(c Client, p Path) {
		i := slices.IndexFunc(r.Checks, func(k Check) bool {
			return k.Client == c && k.Dial == p.Dial && k.Got != "closed"
		})
		switch {
		case i >= 0:
			k := r.Checks[i] // a relay accepts although nothing listens behind it
			served = served || k.Got == "connected" && p.Kind != Held && (p.Kind != Nothing || !k.Agrees)
		default:
			served = served || p.Answers() || len(p.Doubt) > 0
		}
	}
	for _, row := range r.Ports {
		for _, c := range []Client{Loopback, Loopback6, OwnAddr} {
			if p, ok := row.Paths[c]; ok {
				try(c, p)
			}
		}
	}
	for _, x := range r.Inside {
		if p, ok := x.Paths[OwnAddr]; ok {
			try(OwnAddr, p)
		}
	}
	return served
}

// hasAddress reports whether the machine has the address that a path dials.
func (r *Report) hasAddress(p Path) bool {
	to, _ := netip.ParseAddrPort(p.Dial)
	return slices.ContainsFunc(r.devices, func(d Device) bool { return d.has(to.Addr()) })
}
