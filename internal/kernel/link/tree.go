package link

import (
	"fmt"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// States of bridge ports, of linux/if_bridge.h. A port listens, then learns, before it forwards.
const (
	portDisabled  = 0
	portListening = 1
	portLearning  = 2
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

// StopSpanningTree ends the spanning tree protocol of a bridge, after which all ports with a
// carrier pass packets that are not disabled.
func StopSpanningTree(bridge Saved) error {
	err := setInfo(bridge.Index, netlink.Attribute{Type: unix.IFLA_INFO_KIND,
		Data: nl.ZeroTerminated("bridge")}, nested(unix.IFLA_INFO_DATA,
		netlink.Attribute{Type: nl.IFLA_BR_STP_STATE, Data: word(0)}))
	if err != nil {
		return fmt.Errorf("end the spanning tree of %s: %w", bridge.Name, err)
	}
	return nil
}

// DisablePort keeps packets from passing a bridge port, as a spanning tree does that blocks it. The
// bridge must have none.
func DisablePort(port Saved) error {
	err := setInfo(port.Index, netlink.Attribute{Type: unix.IFLA_INFO_SLAVE_KIND,
		Data: nl.ZeroTerminated("bridge")}, nested(unix.IFLA_INFO_SLAVE_DATA,
		netlink.Attribute{Type: unix.IFLA_BRPORT_STATE, Data: []byte{portDisabled}}))
	if err != nil {
		return fmt.Errorf("disable bridge port %s: %w", port.Name, err)
	}
	return nil
}

// setInfo sets attributes of IFLA_LINKINFO.
func setInfo(index int, list ...netlink.Attribute) error {
	c, err := openSender()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return c.send(unix.RTM_NEWLINK, 0,
		append(linkHeader(index, 0, 0), marshal(nested(unix.IFLA_LINKINFO, list...))...))
}
