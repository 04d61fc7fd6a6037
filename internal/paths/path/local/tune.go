package local

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/idle"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sockmem"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

const (
	tcpRmem       = "net.ipv4.tcp_rmem"
	tcpWmem       = "net.ipv4.tcp_wmem"
	TCPCongestion = "net.ipv4.tcp_congestion_control"
)

// tunable lists the kinds of hops whose devices a tune sets: devices of the mode, not the wire.
var tunable = map[mode.Key][]mode.HopKind{
	mode.MTU: {mode.HopLoopback, mode.HopVeth, mode.HopBridge, mode.HopMacvlan, mode.HopIPvlan,
		mode.HopOVS, mode.HopVXLAN, mode.HopNetkit, mode.HopIPVS, mode.HopTap},
	mode.GRO: {mode.HopVeth},
	// A sub-interface has the card's setting.
	mode.TSO:             {mode.HopLoopback, mode.HopVeth, mode.HopNetkit},
	mode.RPS:             {mode.HopLoopback, mode.HopVeth},
	mode.Queues:          {mode.HopVeth},
	mode.Threaded:        {mode.HopVeth},
	mode.XPS:             {mode.HopVeth},
	mode.BigTCP:          {mode.HopVeth, mode.HopBridge, mode.HopNetkit},
	mode.BigTCPContainer: {mode.HopVeth, mode.HopNetkit},
	mode.BigTCPLoopback:  {mode.HopLoopback},
	mode.BridgeNF:        {mode.HopBridge},
}

var whyUntunable = map[mode.Key]string{
	mode.MTU: "the path has no device except the wire",
	mode.GRO: "the path has no container veth pair",
	mode.TSO: "the path has no device of its own that segments",
	mode.RPS: "the path has neither a veth pair of its own nor a loopback device",

	mode.Queues:          "the path has no container veth pair",
	mode.Threaded:        "the path has no container veth pair",
	mode.XPS:             "the path has no container veth pair",
	mode.BigTCP:          "the path has neither a bridge nor a container's pair",
	mode.BigTCPContainer: "the path has no container's pair",
	mode.BigTCPLoopback:  "the path does not cross a loopback device",
	mode.BridgeNF:        "no bridge of the path forwards frames from port to port",
}

// Sets returns the kinds of the route's hops whose devices a tune sets.
func Sets(k mode.Key, r mode.Route) (out []mode.HopKind) {
	for _, h := range r.Hops {
		if slices.Contains(tunable[k], h) {
			out = append(out, h)
		}
	}
	return out
}

// RefuseTune returns an error for a tune of the spec if the route has no device for it, or if it
// would have no effect.
func RefuseTune(s path.Spec, t mode.Tune, r mode.Route) error {
	if _, ofDevices := tunable[t.Key]; !ofDevices {
		return nil
	}
	forwards, byRules := forwarding(s.Mode, r)
	if t.Key == mode.BridgeNF && byRules && !t.On() {
		return &machine.UnsupportedError{
			Missing: "bridge-nf=off: the mode's rules would not see the bridged frames that they must match",
			Remedy:  "a mode whose bridge needs no rules, such as bridge"}
	}
	if len(Sets(t.Key, r)) == 0 || t.Key == mode.BridgeNF && !forwards {
		instead := "a mode with a veth pair, such as bridge"
		switch t.Key {
		case mode.MTU:
			instead = "--wire mtu=" + t.Value
		case mode.BigTCPLoopback:
			instead = "a mode whose path crosses lo, such as host"
		case mode.BridgeNF:
			instead = "two containers of one network: bridge --from container"
		}
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"%s=%s has no effect: %s", t.Key, t.Value, whyUntunable[t.Key]), Remedy: instead}
	}
	if (t.Key == mode.GRO || t.Key == mode.TSO) && t.On() && slices.Contains(r.Hops, mode.HopOVS) &&
		!link.HasOVS() {
		return &machine.UnsupportedError{
			Missing: string(t.Key) +
				"=on: Open vSwitch's userspace datapath cannot pass on packets that are larger than the MTU",
			Remedy: remedy.Modprobe("openvswitch") + ", for the kernel's datapath",
		}
	}
	if m, _ := mode.Find(s.Mode); t.Key == mode.BigTCP && tunnelled(m) {
		return &machine.UnsupportedError{
			Missing: fmt.Sprintf(
				"bigtcp=%s: on a bridge, the kernel permits no larger packets than on its VXLAN port",
				t.Value),
			Remedy: "a mode without a tunnel, such as bridge",
		}
	}
	if gro, ok := s.Tune.Get(mode.GRO); t.Key == mode.Threaded && t.On() && (!ok || !gro.On()) {
		return &machine.UnsupportedError{
			Missing: "threaded=on has no effect: a veth pair has no NAPI without gro=on",
			Remedy:  "gro=on+threaded=on"}
	}
	if t.Key == mode.MTU && s.To.Six() && t.Number() < minMTU6 {
		return &machine.UnsupportedError{
			Missing: fmt.Sprintf("mtu=%s: IPv6 needs at least %d", t.Value, minMTU6),
			Remedy:  fmt.Sprintf("mtu=%d", minMTU6),
		}
	}
	return nil
}

// forwarding reports whether a bridge of the route forwards frames from port to port. byRules means
// that the mode also needs rules that see these frames.
func forwarding(m mode.Name, r mode.Route) (forwards, byRules bool) {
	ports := []mode.HopKind{mode.HopVeth, mode.HopVXLAN}
	if m == mode.Pipework {
		ports = append(ports, mode.HopWire)
	}
	devices := slices.DeleteFunc(slices.Clone(r.Hops), mode.HopKind.Rule)
	for i := 1; i+1 < len(devices); i++ {
		if devices[i] == mode.HopBridge && slices.Contains(ports, devices[i-1]) &&
			slices.Contains(ports, devices[i+1]) {
			return true, len(devices) < len(r.Hops)
		}
	}
	return false, false
}

const minMTU6 = 1280 // the kernel disables IPv6 on a device with a smaller MTU

// RefuseQueues returns an error for more queues than a veth pair's maximum.
func RefuseQueues(t mode.Tune, most int) error {
	if t.Key != mode.Queues || t.Number() <= most {
		return nil
	}
	return &machine.UnsupportedError{
		Missing: fmt.Sprintf("queues=%s: a veth pair has at most %d here", t.Value, most),
		Remedy:  fmt.Sprintf("queues=%d", most),
	}
}

// RefuseSubInterfaceMTU returns an error for an MTU larger than the parent card's. remedy tells how
// to raise the card's.
func RefuseSubInterfaceMTU(t mode.Tune, r mode.Route, card int, remedy string) error {
	if t.Key != mode.MTU || t.Number() <= card ||
		!slices.Contains(r.Hops, mode.HopMacvlan) && !slices.Contains(r.Hops, mode.HopIPvlan) {
		return nil
	}
	return &machine.UnsupportedError{Missing: fmt.Sprintf(
		"mtu=%s: a sub-interface cannot have a larger MTU than its card, which has %d", t.Value, card),
		Remedy: remedy}
}

func tunnelled(m mode.Mode) bool {
	return slices.ContainsFunc(m.Routes, func(r mode.Route) bool {
		return slices.Contains(r.Hops, mode.HopVXLAN) || slices.Contains(r.Hops, mode.HopIPVS)
	})
}

// TunedDevice is a network device of a hop.
type TunedDevice struct {
	Space Space
	Name  string
	// Inside means that the device is in a container.
	Inside bool
	// SetMTU sets the device's MTU. It is nil unless another program manages the device.
	SetMTU func(mtu int) error
	// SetBridgeNF sets whether iptables sees what the bridge forwards. It is nil unless the
	// namespace has other bridges.
	SetBridgeNF func(on bool) error
}

type hopID struct {
	kind        mode.HopKind
	name, where string
}

func idOf(h path.Hop) hopID { return hopID{h.Kind, h.Name, h.Where} }

// Tuned maps a path's hops to their devices.
type Tuned map[hopID][]TunedDevice

// MadeOf records a hop's devices and returns the hop.
func (d Tuned) MadeOf(h path.Hop, devices ...TunedDevice) path.Hop {
	d[idOf(h)] = devices
	return h
}

// Tune applies the variant's tunes to the path's devices and, for TCP settings, to the namespaces
// of its ends.
func (d Tuned) Tune(p *path.Path, spaces []Space) error {
	p.Hold = holdOf(p.Spec.Tune)
	for _, t := range p.Spec.Tune.List() {
		if err := d.set(p, t, spaces); err != nil {
			return fmt.Errorf("tune %s=%s: %w", t.Key, t.Value, err)
		}
	}
	return nil
}

// holdOf returns what sets the variant's settings of the whole machine, or nil.
func holdOf(t mode.Tunes) func() (release func() error, err error) {
	limits := limitsOf(t)
	_, polls := t.Get(mode.Idle)
	switch {
	case !polls && len(limits) == 0:
		return nil
	case !polls:
		return func() (func() error, error) { return sockmem.Default.Set(limits) }
	case len(limits) == 0:
		return idle.Poll
	}
	return func() (func() error, error) {
		restore, err := sockmem.Default.Set(limits)
		if err != nil {
			return nil, err
		}
		release, err := idle.Poll()
		if err != nil {
			return nil, errors.Join(err, restore())
		}
		return func() error { return errors.Join(release(), restore()) }, nil
	}
}

func limitsOf(t mode.Tunes) map[string]int {
	out := map[string]int{}
	for key, name := range map[mode.Key]string{mode.RmemMax: sockmem.Receive,
		mode.WmemMax: sockmem.Send} {
		if x, ok := t.Get(key); ok {
			out[name] = x.Number()
		}
	}
	return out
}

func (d Tuned) set(p *path.Path, t mode.Tune, spaces []Space) error {
	switch t.Key {
	case mode.Rmem:
		return everywhere(spaces, func() error { return setMemory(tcpRmem, t.Number()) })
	case mode.Wmem:
		return everywhere(spaces, func() error { return setMemory(tcpWmem, t.Number()) })
	case mode.Congestion:
		return everywhere(spaces, func() error { return SetCongestion(t.Value) })
	}
	set, ofDevices := setters[t.Key]
	if !ofDevices {
		return nil
	}
	return d.each(p, t.Key, func(d TunedDevice) error { return set(d, t) })
}

func (d Tuned) each(p *path.Path, k mode.Key, f func(TunedDevice) error) error {
	type id struct {
		in   Space
		name string
	}
	done := map[id]bool{}
	for _, h := range p.Hops {
		if !slices.Contains(tunable[k], h.Kind) {
			continue
		}
		for _, x := range d[idOf(h)] {
			if done[id{x.Space, x.Name}] {
				continue
			}
			done[id{x.Space, x.Name}] = true
			if err := x.Space.Do(func() error { return f(x) }); err != nil {
				return err
			}
		}
	}
	return nil
}

var setters = map[mode.Key]func(TunedDevice, mode.Tune) error{
	mode.MTU: func(d TunedDevice, t mode.Tune) error {
		if d.SetMTU != nil {
			return d.SetMTU(t.Number())
		}
		return link.SetMTU(d.Name, t.Number())
	},
	mode.GRO: func(d TunedDevice, t mode.Tune) error {
		return link.SetOffload(d.Name, link.GRO, t.On())
	},
	mode.TSO: func(d TunedDevice, t mode.Tune) error {
		return link.SetOffload(d.Name, link.TSO, t.On())
	},
	mode.RPS: func(d TunedDevice, t mode.Tune) error {
		return link.RPS.Steer(d.Name, t.On())
	},
	mode.XPS: func(d TunedDevice, t mode.Tune) error {
		return link.XPS.Steer(d.Name, t.On())
	},
	mode.Queues: func(d TunedDevice, t mode.Tune) error {
		return link.SetQueues(d.Name, t.Number())
	},
	mode.Threaded: func(d TunedDevice, t mode.Tune) error {
		return link.SetThreaded(d.Name, t.On())
	},
	mode.BigTCP:          maxSizeOf(false),
	mode.BigTCPContainer: maxSizeOf(true),
	mode.BigTCPLoopback: func(d TunedDevice, t mode.Tune) error {
		return link.SetMaxSize(d.Name, t.Number())
	},
	mode.BridgeNF: func(d TunedDevice, t mode.Tune) error {
		if d.SetBridgeNF != nil {
			return d.SetBridgeNF(t.On())
		}
		return setBridgeNF(t.On())
	},
}

// BridgeNF lists the sysctls of mode.BridgeNF. The second one does not exist without IPv6.
var BridgeNF = []string{"net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables"}

// setBridgeNF sets the sysctls in BridgeNF for all bridges of the calling thread's namespace.
func setBridgeNF(on bool) error {
	value := "0"
	if on {
		value = "1"
	}
	for i, key := range BridgeNF {
		err := sysctl.Set(key, value)
		if err != nil && (i == 0 || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

func maxSizeOf(inside bool) func(TunedDevice, mode.Tune) error {
	return func(d TunedDevice, t mode.Tune) error {
		if d.Inside != inside {
			return nil
		}
		return link.SetMaxSize(d.Name, t.Number())
	}
}

func everywhere(spaces []Space, f func() error) error {
	for _, at := range spaces {
		if err := at.Do(f); err != nil {
			return err
		}
	}
	return nil
}

// setMemory limits the number of bytes that a TCP socket of the calling thread's namespace may
// queue.
func setMemory(key string, most int) error {
	now, err := sysctl.Get(key)
	if err != nil {
		return err
	}
	v := strings.Fields(now)
	if len(v) != 3 {
		return fmt.Errorf("read sysctl %s: %q is not three numbers", key, now)
	}
	for i := range v {
		if n, err := strconv.Atoi(v[i]); err == nil && n > most {
			v[i] = strconv.Itoa(most)
		}
	}
	v[2] = strconv.Itoa(most)
	return sysctl.Set(key, strings.Join(v, " "))
}

// SetCongestion sets the congestion control of the calling thread's namespace.
func SetCongestion(name string) error {
	if err := sysctl.Set(TCPCongestion, name); err != nil {
		allowed, _ := sysctl.Get("net.ipv4.tcp_allowed_congestion_control")
		return &machine.UnsupportedError{
			Missing: "congestion control " + name + " cannot be chosen in a network namespace",
			Remedy: "one of those that can: " + allowed +
				", or add it to net.ipv4.tcp_allowed_congestion_control",
			Err: err,
		}
	}
	return nil
}
