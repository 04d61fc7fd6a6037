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
)

// tunable says which hops have devices that a tune sets: those that belong to
// the mode, not the wire.
var tunable = map[mode.Key][]mode.HopKind{
	mode.MTU: {mode.HopLoopback, mode.HopVeth, mode.HopBridge, mode.HopMacvlan, mode.HopIPvlan,
		mode.HopOVS, mode.HopVXLAN, mode.HopNetkit, mode.HopIPVS},
	mode.GRO: {mode.HopVeth},
	mode.TSO: {mode.HopLoopback, mode.HopVeth, mode.HopNetkit}, // sub-interfaces have their card's
	mode.RPS: {mode.HopLoopback, mode.HopVeth},
}

// whyUntunable says what a path lacks that a tune would set.
var whyUntunable = map[mode.Key]string{
	mode.MTU: "the path has no device except the wire",
	mode.GRO: "the path has no container veth pair",
	mode.TSO: "the path has no device of its own that segments",
	mode.RPS: "the path has neither a veth pair of its own nor a loopback device",
}

// checkTunes refuses what the path has nothing for.
func (l *Lab) checkTunes(s path.Spec) error {
	m, _ := mode.Find(s.Mode)
	route, ok := m.Route(s.From, s.To)
	if !ok {
		return nil // Build says so
	}
	for _, t := range s.Tune.List() {
		kinds, ofDevices := tunable[t.Key]
		if !ofDevices {
			continue
		}
		if !slices.ContainsFunc(route.Hops, func(h mode.HopKind) bool { return slices.Contains(kinds, h) }) {
			remedy := "a mode with a veth pair, such as bridge"
			if t.Key == mode.MTU {
				remedy = "--wire mtu=" + t.Value
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
		if t.Key == mode.MTU && s.To == mode.ToLoopback6 && t.Number() < minMTU6 {
			return &path.UnsupportedError{
				Missing: fmt.Sprintf("mtu=%s: IPv6 needs at least %d", t.Value, minMTU6),
				Remedy:  fmt.Sprintf("mtu=%d", minMTU6),
			}
		}
	}
	return nil
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
	case mode.MTU:
		return s.eachDevice(t.Key, func(d device) error {
			if d.setMTU != nil {
				return d.setMTU(t.Number())
			}
			return link.SetMTU(d.name, t.Number())
		})
	case mode.GRO:
		return s.eachDevice(t.Key, func(d device) error { return link.SetOffload(d.name, link.GRO, t.On()) })
	case mode.TSO:
		return s.eachDevice(t.Key, func(d device) error { return link.SetOffload(d.name, link.TSO, t.On()) })
	case mode.RPS:
		return s.eachDevice(t.Key, func(d device) error { return link.SetRPS(d.name, t.On()) })
	case mode.Nodelay: // the load's own
	}
	return nil
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

// setMemory sets the most that the kernel lets a TCP socket queue, in every
// namespace of the path.
func (s *site) setMemory(key string, most int) error {
	spaces := []*space{s.a.ns, s.b.ns}
	for _, c := range s.boxes {
		spaces = append(spaces, c.ns)
	}
	for _, ns := range spaces {
		err := ns.Do(func() error {
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
		if err != nil {
			return err
		}
	}
	return nil
}

// tryRPS steers the packets of a device, which only real root may.
func tryRPS() error {
	err := link.SetRPS("lo", true)
	if err == nil {
		return link.SetRPS("lo", false)
	}
	missing := "receive packet steering cannot be set (CONFIG_RPS)"
	remedy := "use a kernel that has it"
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		missing, remedy = "receive packet steering can only be set by root, not in a user namespace", "run toll as root"
	}
	return &path.UnsupportedError{Missing: missing, Remedy: remedy, Err: err}
}
