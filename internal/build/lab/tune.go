package lab

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/build/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/build/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

const (
	tcpRmem = "net.ipv4.tcp_rmem"
	tcpWmem = "net.ipv4.tcp_wmem"

	tcpCongestion = "net.ipv4.tcp_congestion_control"
)

// tunable says which hops have devices that a tune sets: those that belong to
// the mode, not the wire.
var tunable = map[mode.Key][]mode.HopKind{
	mode.MTU: {mode.HopLoopback, mode.HopVeth, mode.HopBridge, mode.HopMacvlan, mode.HopIPvlan,
		mode.HopOVS, mode.HopVXLAN, mode.HopNetkit, mode.HopIPVS},
	mode.GRO:             {mode.HopVeth},
	mode.TSO:             {mode.HopLoopback, mode.HopVeth, mode.HopNetkit}, // sub-interfaces have their card's
	mode.RPS:             {mode.HopLoopback, mode.HopVeth},
	mode.Queues:          {mode.HopVeth},
	mode.Threaded:        {mode.HopVeth},
	mode.XPS:             {mode.HopVeth},
	mode.BigTCP:          {mode.HopVeth, mode.HopBridge, mode.HopNetkit},
	mode.BigTCPContainer: {mode.HopVeth, mode.HopNetkit},
	mode.BigTCPLoopback:  {mode.HopLoopback},
}

// whyUntunable says what a path lacks that a tune would set.
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
}

// checkTunes refuses what the path has nothing for.
func (l *Lab) checkTunes(s path.Spec) error {
	m, _ := mode.Find(s.Mode)
	route, ok := m.Route(s.From, s.To)
	if !ok {
		return nil // Build says so
	}
	for _, t := range s.Tune.List() {
		if t.Key == mode.Congestion {
			if err := l.tryCongestion(t.Value); err != nil {
				return err
			}
		}
		kinds, ofDevices := tunable[t.Key]
		if !ofDevices {
			continue
		}
		if !slices.ContainsFunc(route.Hops, func(h mode.HopKind) bool { return slices.Contains(kinds, h) }) {
			remedy := "a mode with a veth pair, such as bridge"
			switch t.Key {
			case mode.MTU:
				remedy = "--wire mtu=" + t.Value
			case mode.BigTCPLoopback:
				remedy = "a mode whose path crosses lo, such as host"
			}
			return &path.UnsupportedError{Missing: fmt.Sprintf("%s=%s has no effect: %s", t.Key, t.Value, whyUntunable[t.Key]), Remedy: remedy}
		}
		if err := l.fits(t, s.Mode, route); err != nil {
			return err
		}
		if (t.Key == mode.GRO || t.Key == mode.TSO) && t.On() && slices.Contains(route.Hops, mode.HopOVS) && !link.HasOVS() {
			return &path.UnsupportedError{
				Missing: string(t.Key) + "=on: Open vSwitch's userspace datapath cannot pass on packets that are larger than the MTU",
				Remedy:  "sudo modprobe openvswitch, for the kernel's datapath",
			}
		}
		if t.Key == mode.BigTCP && tunnelled(m) {
			return &path.UnsupportedError{
				Missing: fmt.Sprintf("bigtcp=%s: the kernel lets a bridge have no larger packets than its VXLAN port", t.Value),
				Remedy:  "a mode without a tunnel, such as bridge",
			}
		}
		if gro, ok := s.Tune.Get(mode.GRO); t.Key == mode.Threaded && t.On() && (!ok || !gro.On()) {
			return &path.UnsupportedError{Missing: "threaded=on has no effect: a veth pair has no NAPI without gro=on", Remedy: "gro=on+threaded=on"}
		}
		if most := l.mostQueues; t.Key == mode.Queues && t.Number() > most {
			return &path.UnsupportedError{
				Missing: fmt.Sprintf("queues=%s: a veth pair has at most %d here", t.Value, most),
				Remedy:  fmt.Sprintf("queues=%d", most),
			}
		}
		if t.Key == mode.MTU && s.To == mode.ToLoopback6 && t.Number() < minMTU6 {
			return &path.UnsupportedError{
				Missing: fmt.Sprintf("mtu=%s: IPv6 needs at least %d", t.Value, minMTU6),
				Remedy:  fmt.Sprintf("mtu=%d", minMTU6),
			}
		}
	}
	return nil
}

// tunnelled reports whether the mode's bridges have a VXLAN port, also on routes that do
// not cross it: those of an overlay, and of the routing mesh.
func tunnelled(m mode.Mode) bool {
	return slices.ContainsFunc(m.Routes, func(r mode.Route) bool {
		return slices.Contains(r.Hops, mode.HopVXLAN) || slices.Contains(r.Hops, mode.HopIPVS)
	})
}

// fits refuses an MTU that is more than the wire's where that cannot be: on a
// sub-interface, and on a switch that would drop on the way what the wire does
// not carry. (Routers tell the sender.)
func (l *Lab) fits(t mode.Tune, m mode.Name, route mode.Route) error {
	wire := l.Wire.MTU
	if wire == 0 {
		wire = defaultMTU
	}
	if t.Key != mode.MTU || t.Number() <= wire {
		return nil
	}
	why := ""
	switch {
	case slices.Contains(route.Hops, mode.HopMacvlan), slices.Contains(route.Hops, mode.HopIPvlan):
		why = "a sub-interface cannot have more than its card's"
	case recipes[m].onSwitch && slices.Contains(route.Hops, mode.HopWire):
		why = "a switch drops frames that are larger than the wire's"
	default:
		return nil
	}
	return &path.UnsupportedError{Missing: fmt.Sprintf("mtu=%s: %s %d", t.Value, why, wire), Remedy: "--wire mtu=" + t.Value}
}

const (
	defaultMTU = 1500
	minMTU6    = 1280 // the kernel takes IPv6 off a device with less
)

// tune puts the variant's settings on the path that was built.
func (s *site) tune() error {
	for _, t := range s.path.Spec.Tune.List() {
		if err := s.set(t); err != nil {
			return fmt.Errorf("tune %s=%s: %w", t.Key, t.Value, err)
		}
	}
	return nil
}

func (s *site) set(t mode.Tune) error {
	switch t.Key {
	case mode.Rmem:
		return s.setMemory(tcpRmem, t.Number())
	case mode.Wmem:
		return s.setMemory(tcpWmem, t.Number())
	case mode.Congestion:
		return s.everywhere(func() error { return setCongestion(t.Value) })
	}
	set, ofDevices := setters[t.Key]
	if !ofDevices { // the load's own
		return nil
	}
	return s.eachDevice(t.Key, func(d device) error { return set(d, t) })
}

// setters set a tune on one device.
var setters = map[mode.Key]func(device, mode.Tune) error{
	mode.MTU: func(d device, t mode.Tune) error {
		if d.setMTU != nil {
			return d.setMTU(t.Number())
		}
		return link.SetMTU(d.name, t.Number())
	},
	mode.GRO:             func(d device, t mode.Tune) error { return link.SetOffload(d.name, link.GRO, t.On()) },
	mode.TSO:             func(d device, t mode.Tune) error { return link.SetOffload(d.name, link.TSO, t.On()) },
	mode.RPS:             func(d device, t mode.Tune) error { return link.RPS.Steer(d.name, t.On()) },
	mode.XPS:             func(d device, t mode.Tune) error { return link.XPS.Steer(d.name, t.On()) },
	mode.Queues:          func(d device, t mode.Tune) error { return link.SetQueues(d.name, t.Number()) },
	mode.Threaded:        func(d device, t mode.Tune) error { return link.SetThreaded(d.name, t.On()) },
	mode.BigTCP:          maxSizeOf(false),
	mode.BigTCPContainer: maxSizeOf(true),
	mode.BigTCPLoopback:  func(d device, t mode.Tune) error { return link.SetMaxSize(d.name, t.Number()) },
}

// maxSizeOf sets it of devices inside containers, or of the others.
func maxSizeOf(inside bool) func(device, mode.Tune) error {
	return func(d device, t mode.Tune) error {
		if d.inside != inside {
			return nil
		}
		return link.SetMaxSize(d.name, t.Number())
	}
}

// eachDevice calls f once for each device that a tune sets.
func (s *site) eachDevice(k mode.Key, f func(device) error) error {
	type id struct {
		ns   *space
		name string
	}
	done := map[id]bool{}
	for _, h := range s.path.Hops {
		if !slices.Contains(tunable[k], h.Kind) {
			continue
		}
		for _, d := range s.devices[idOf(h)] {
			if done[id{d.ns, d.name}] {
				continue
			}
			done[id{d.ns, d.name}] = true
			if err := d.ns.Do(func() error { return f(d) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// everywhere calls f in every namespace of the path.
func (s *site) everywhere(f func() error) error {
	spaces := []*space{s.a.ns, s.b.ns}
	for _, c := range s.boxes {
		spaces = append(spaces, c.ns)
	}
	for _, ns := range spaces {
		if err := ns.Do(f); err != nil {
			return err
		}
	}
	return nil
}

// setMemory sets the most that the kernel lets a TCP socket queue, in every
// namespace of the path.
func (s *site) setMemory(key string, most int) error {
	return s.everywhere(func() error {
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
	})
}

// tuneNeeds are what tunes need of the kernel, or of the user's rights.
var tuneNeeds = map[mode.Key]need{
	mode.RPS: needRPS, mode.XPS: needXPS, mode.Queues: needQueues, mode.Threaded: needThreaded,
	mode.BigTCP: needBigTCP, mode.BigTCPContainer: needBigTCP, mode.BigTCPLoopback: needBigTCP,
}

// tryRPS steers the packets of a device, which only real root may.
func tryRPS() error {
	return trySteering(link.RPS, "lo", "receive packet steering", "CONFIG_RPS")
}

// tryXPS does the same with those that a pair sends.
func tryXPS() error {
	if err := tryPair("try-xps"); err != nil {
		return err
	}
	q, err := link.QueuesOf("try-xps")
	if err == nil && q.MostSend < 2 { // the kernel then has no such file
		return &path.UnsupportedError{Missing: "transmit packet steering has no effect: a veth pair has one queue on a machine with one CPU",
			Remedy: "a machine with more CPUs"}
	}
	return trySteering(link.XPS, "try-xps", "transmit packet steering", "CONFIG_XPS")
}

func trySteering(s link.Steering, name, what, option string) error {
	err := s.Steer(name, true)
	if err == nil {
		return s.Steer(name, false)
	}
	missing := what + " cannot be set (" + option + ")"
	remedy := "use a kernel that has it"
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		missing, remedy = what+" can only be set by root, not in a user namespace", "run toll as root"
	}
	return &path.UnsupportedError{Missing: missing, Remedy: remedy, Err: err}
}

// tryPair makes a veth pair to try something on.
func tryPair(name string) error {
	return missingDevice(link.AddVeth(name, name+"-p", unix.Gettid()), "veth", "CONFIG_VETH")
}

// tryQueues finds out how many queues a pair can have.
func (l *Lab) tryQueues() error {
	const name = "try-queues"
	if err := tryPair(name); err != nil {
		return err
	}
	q, err := link.QueuesOf(name)
	if err == nil {
		l.mostQueues = min(q.MostSend, q.MostReceive)
		err = link.SetQueues(name, l.mostQueues)
	}
	if err == nil {
		return nil
	}
	return &path.UnsupportedError{Missing: "the number of a veth pair's queues cannot be set (Linux 5.13)", Remedy: "use a kernel that can", Err: err}
}

func tryThreaded() error {
	const name = "try-napi"
	if err := tryPair(name); err != nil {
		return err
	}
	for _, f := range []func() error{
		func() error { return link.SetOffload(name, link.GRO, true) },
		func() error { return link.Up(name) },
		func() error { return link.Up(name + "-p") },
		func() error { return link.SetThreaded(name, true) },
	} {
		if err := f(); err != nil {
			return &path.UnsupportedError{Missing: "a veth pair's NAPI cannot run in threads (Linux 5.13)", Remedy: "use a kernel that can", Err: err}
		}
	}
	return nil
}

func tryBigTCP() error {
	const name = "try-bigtcp"
	if err := tryPair(name); err != nil {
		return err
	}
	err := link.SetMaxSize(name, mode.MaxBigTCP)
	if err == nil {
		return nil
	}
	return &path.UnsupportedError{Missing: "the kernel has no BIG TCP over IPv4 (gso_ipv4_max_size, Linux 6.3)", Remedy: "use a kernel that has it", Err: err}
}
