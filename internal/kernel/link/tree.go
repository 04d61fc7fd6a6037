package link

import (
	"fmt"
	"slices"
	"time"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// States of bridge ports, of linux/if_bridge.h. A port listens, then learns, before it forwards.
const (
	portDisabled  = 0
	portListening = 1
	portLearning  = 2
	portForwards  = 3
	portBlocking  = 4
)

// portState returns the state of a bridge port. ok is false for other devices.
func (s Saved) portState() (state byte, ok bool) {
	f, err := fieldsOf(s.Slave, 0)
	if b := f[unix.IFLA_BRPORT_STATE]; err == nil && len(b) == 1 {
		return b[0], true
	}
	return 0, false
}

// Blocked reports whether the device is a bridge port that has a carrier, but passes no packets:
// the bridge is down, the spanning tree goes another way, or root has disabled the port.
func (s Saved) Blocked() bool {
	state, ok := s.portState()
	return ok && s.Up && s.Lower && (state == portDisabled || state == portBlocking)
}

// ReadSettled reads the devices as ReadLinks does, and for up to a second again, while a port with
// a carrier seems disabled in a bridge that is up: it is until the kernel notices the carrier, as
// of a container that has just been started. Among four threads that made devices, the kernel
// showed one of ten such ports as disabled.
func ReadSettled() ([]Saved, error) { return settled(ReadLinks) }

func settled(read func() ([]Saved, error)) ([]Saved, error) {
	const longest, often = 1100 * time.Millisecond, 20 * time.Millisecond
	for end := time.Now().Add(longest); ; time.Sleep(often) {
		links, err := read()
		if err != nil || !slices.ContainsFunc(links, func(l Saved) bool {
			state, ok := l.portState()
			return ok && state == portDisabled && l.Blocked() && slices.ContainsFunc(links,
				func(b Saved) bool { return b.Index == l.Master && b.Up })
		}) || time.Now().After(end) {
			return links, err
		}
	}
}

// Settling reports whether the device is a bridge port whose spanning tree does not let it pass
// packets yet.
func (s Saved) Settling() bool {
	state, ok := s.portState()
	return ok && (state == portListening || state == portLearning)
}

// SpanningTree reports whether the device is a bridge for which the kernel runs the spanning tree
// protocol.
func (s Saved) SpanningTree() bool {
	if s.Kind != "bridge" {
		return false
	}
	f, err := fieldsOf(s.Data, 0)
	return err == nil && f.number(nl.IFLA_BR_STP_STATE) == 1
}

// StopSpanningTree ends the spanning tree protocol of a bridge. Its ports stay in their states.
func StopSpanningTree(bridge Saved) error {
	data := append(linkHeader(bridge.Index, 0, 0), marshal(ofBridge(
		netlink.Attribute{Type: nl.IFLA_BR_STP_STATE, Data: word(0)}))...)
	if err := sendOne(unix.RTM_NEWLINK, 0, data); err != nil {
		return fmt.Errorf("end the spanning tree of %s: %w", bridge.Name, err)
	}
	return nil
}

// SetPort lets packets pass a bridge port, or keeps them from passing it, as a spanning tree does
// that blocks it. The bridge must have none.
func SetPort(port Saved, pass bool) error {
	state := []byte{portDisabled}
	if pass {
		state[0] = portForwards
	}
	// By RTM_NEWLINK, the kernel would check the carrier, and enable the port again.
	data := append(linkHeader(port.Index, 0, 0), marshal(nested(unix.IFLA_PROTINFO,
		netlink.Attribute{Type: unix.IFLA_BRPORT_STATE, Data: state}))...)
	data[0] = unix.AF_BRIDGE
	if err := sendOne(unix.RTM_SETLINK, 0, data); err != nil {
		return fmt.Errorf("set the state of bridge port %s: %w", port.Name, err)
	}
	return nil
}

// Hold keeps a device without a carrier. What its parent does before may give it one again.
func Hold(s Saved) error {
	data := append(linkHeader(s.Index, 0, 0),
		marshal(netlink.Attribute{Type: unix.IFLA_PROTO_DOWN, Data: []byte{1}})...)
	if err := sendOne(unix.RTM_NEWLINK, 0, data); err != nil {
		return fmt.Errorf("set protodown of %s: %w", s.Name, err)
	}
	return nil
}
