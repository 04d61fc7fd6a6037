package mode

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Key is what a tune sets.
type Key string

// Sizes are in bytes. Veth pairs are the containers'.
const (
	MTU  Key = "mtu"  // of the mode's own devices, not of the wire
	Rmem Key = "rmem" // maximum of tcp_rmem
	Wmem Key = "wmem" // maximum of tcp_wmem
	// RmemMax and WmemMax bound what any socket of the machine can ask for. All network namespaces
	// share them, so they are set only while a visit measures.
	RmemMax Key = "rmem_max"
	WmemMax Key = "wmem_max"
	GRO     Key = "gro"     // generic receive offload of veth pairs
	TSO     Key = "tso"     // TCP segmentation offload of the path's devices
	Nodelay Key = "nodelay" // TCP_NODELAY of the load's sockets
	RPS     Key = "rps"     // receive packet steering of the path's devices, to all CPUs
	Queues  Key = "queues"  // of veth pairs in each direction
	// NAPI threads of veth pairs; needs gro=on
	Threaded Key = "threaded"
	XPS      Key = "xps" // transmit packet steering of veth pairs, to all CPUs
	// BIG TCP: the largest packet before segmentation and after GRO, over IPv4 and IPv6, of bridges
	// and of the host's ends of veth pairs
	BigTCP          Key = "bigtcp"
	BigTCPContainer Key = "bigtcp-container" // the same of containers' ends
	BigTCPLoopback  Key = "bigtcp-lo"        // the same of the loopback device
	Congestion      Key = "congestion"       // TCP's, of every namespace
	// BridgeNF is whether iptables processes frames that a bridge forwards from port to port:
	// bridge-nf-call-iptables and bridge-nf-call-ip6tables.
	BridgeNF Key = "bridge-nf"
	// Idle is what CPUs without work do: poll. It is the whole machine's, too.
	Idle   Key = "idle"
	Engine Key = "engine" // the engine whose rules the lab writes: one of Engines
	// Ports is the number of other published ports, each of a container of its own.
	Ports Key = "ports"
)

// Engines whose rules the lab can write: the newest release of a generation, with iptables unless
// the name says otherwise.
const (
	Engine28 = "28"
	Engine29 = "29"
	NFTables = "29-nftables"
)

// Engines lists them. DefaultEngine is the one that the lab has unless it was asked for another.
var Engines = []string{Engine28, Engine29, NFTables}

const DefaultEngine = Engine29

// keys lists the keys in the order in which they are printed and set. Queues comes before steering,
// which applies to existing queues only.
var keys = []Key{MTU, Rmem, Wmem, RmemMax, WmemMax, Queues, GRO, TSO, Nodelay, RPS, Threaded, XPS,
	BigTCP, BigTCPContainer, BigTCPLoopback, Congestion, BridgeNF,
	Idle, Engine, Ports}

// Forms returns the syntax of all tunes: "mtu=N", "gro=on|off".
func Forms() []string {
	var out []string
	for _, k := range keys {
		value := on + "|" + off
		switch k {
		case MTU, Queues, Rmem, Wmem, RmemMax, WmemMax, BigTCP, BigTCPContainer, BigTCPLoopback,
			Ports:
			value = "N"
		case Engine:
			value = strings.Join(Engines, "|")
		case Congestion:
			value = "NAME"
		case Idle:
			value = poll
		}
		out = append(out, string(k)+"="+value)
	}
	return out
}

// Tune is one setting.
type Tune struct {
	Key   Key
	Value string // "on", "off", "poll", a number, or the name of a congestion control or an engine
}

// Number returns the value of a tune that takes a number.
func (t Tune) Number() int {
	n, _ := units.ParseSize(t.Value) // ParseTunes accepts only numbers
	return int(n)
}

// On reports whether a switch is on.
func (t Tune) On() bool { return t.Value == on }

const (
	on            = "on"
	off           = "off"
	poll          = "poll"
	tuneSeparator = "+"
)

// Bounds of an MTU, in bytes.
const (
	MinMTU = 576 // IPv4's minimum
	MaxMTU = 65535
)

// Bounds of a socket's memory, in bytes.
const (
	minMem = 4 << 10 // a page
	maxMem = 1 << 30
)

// Bounds of a packet before segmentation, in bytes: the kernel's limits without and with BIG TCP.
const (
	MinBigTCP = 65536
	MaxBigTCP = 524280
)

const maxQueues = 4096

// MaxPorts bounds the number of other published ports.
const MaxPorts = 5000

// maxName is the kernel's limit for a congestion control.
const maxName = 15

// Tunes is a variant: settings applied to a mode together, such as "mtu=9000+rmem=4M", or "". Keys
// are in order and numbers as short as possible, so equal variants are equal strings.
type Tunes string

// Name appends the variant to a name: "bridge+mtu=9000" for "bridge".
func (t Tunes) Name(of string) string {
	if t == "" {
		return of
	}
	return of + tuneSeparator + string(t)
}

// List returns the variant's settings.
func (t Tunes) List() []Tune {
	if t == "" {
		return nil
	}
	var out []Tune
	for s := range strings.SplitSeq(string(t), tuneSeparator) {
		key, value, _ := strings.Cut(s, "=")
		out = append(out, Tune{Key(key), value})
	}
	return out
}

// Get returns the variant's setting of key.
func (t Tunes) Get(key Key) (Tune, bool) {
	for _, x := range t.List() {
		if x.Key == key {
			return x, true
		}
	}
	return Tune{}, false
}

// OfMachine reports whether a setting applies to the whole machine.
func (t Tunes) OfMachine() bool { return t.Limits() || t.has(Idle) }

// Limits reports whether a setting is a limit of the machine's socket buffers.
func (t Tunes) Limits() bool { return t.has(RmemMax) || t.has(WmemMax) }

func (t Tunes) has(k Key) bool {
	_, ok := t.Get(k)
	return ok
}

type tuneError struct{ Text, Why string }

func (e *tuneError) Error() string { return fmt.Sprintf("tune %q: %s", e.Text, e.Why) }

// Hint returns how tunes are written.
func (*tuneError) Hint() string {
	return "such as mtu=9000, rmem=4M, gro=on; join the settings of one variant by +: mtu=9000+gro=on"
}

// ParseTunes parses settings joined by "+". The error is a *tuneError or a *suggest.UnknownError.
func ParseTunes(s string) (Tunes, error) {
	var list []Tune
	for word := range strings.SplitSeq(s, tuneSeparator) {
		t, err := parseTune(word)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(list, func(o Tune) bool { return o.Key == t.Key }) {
			return "", &tuneError{s, string(t.Key) + " is set twice"}
		}
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b Tune) int {
		return slices.Index(keys, a.Key) - slices.Index(keys, b.Key)
	})
	words := make([]string, len(list))
	for i, t := range list {
		words[i] = string(t.Key) + "=" + t.Value
	}
	return Tunes(strings.Join(words, tuneSeparator)), nil
}

func parseTune(word string) (Tune, error) {
	name, value, ok := strings.Cut(word, "=")
	key, err := suggest.Parse("tune", name, keys)
	if err != nil {
		return Tune{}, err
	}
	bad := func(want string) error { return &tuneError{word, string(key) + " must be " + want} }
	if !ok {
		return Tune{}, bad("given as " + name + "=VALUE")
	}
	switch key {
	case MTU, Queues, Ports:
		least, most := MinMTU, MaxMTU
		switch key {
		case Queues:
			least, most = 1, maxQueues
		case Ports:
			least, most = 1, MaxPorts
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return Tune{}, bad(fmt.Sprintf("from %d to %d", least, most))
		}
		return Tune{key, strconv.Itoa(n)}, nil
	case Rmem, Wmem, RmemMax, WmemMax:
		n, err := units.ParseSize(value)
		if err != nil || n < minMem || n > maxMem {
			return Tune{}, bad("from 4k to 1G")
		}
		return Tune{key, units.FormatSize(n)}, nil
	case BigTCP, BigTCPContainer, BigTCPLoopback:
		n, err := units.ParseSize(value)
		if err != nil || n < MinBigTCP || n > MaxBigTCP {
			return Tune{}, bad(fmt.Sprintf("from %d to %d bytes", MinBigTCP, MaxBigTCP))
		}
		return Tune{key, units.FormatSize(n)}, nil
	case Congestion:
		if !isName(value) {
			return Tune{}, bad("the name of a congestion control, such as cubic")
		}
		return Tune{key, value}, nil
	case Idle:
		if value != poll {
			return Tune{}, bad(poll)
		}
		return Tune{key, value}, nil
	case Engine:
		if !slices.Contains(Engines, value) {
			return Tune{}, bad("one of " + strings.Join(Engines, ", "))
		}
		return Tune{key, value}, nil
	}
	if value != on && value != off {
		return Tune{}, bad("on or off")
	}
	return Tune{key, value}, nil
}

func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}
