package docker

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

func (s *site) reflectedHop() path.Hop {
	return local.ReflectedHop(s.engine.ns, thisMachine, s.engine.docker.Parent)
}

// tryReflection returns an error if two namespaces with devices on the card cannot exchange a
// datagram.
func (s *site) tryReflection() error {
	e := s.engine
	e.laying.Lock()
	defer e.laying.Unlock()
	subnet, err := s.freeSubnet()
	if err != nil {
		return err
	}
	l := &lan{subnet: subnet}
	var ends [2]*netns.NS
	var addrs [2]netip.AddrPort
	for i := range ends {
		ns, err := netns.New() // its devices end with it, even after a SIGKILL
		if err != nil {
			return err
		}
		s.path.Undo.Push("close a namespace", ns.Close)
		addr, err := l.take()
		if err != nil {
			return err
		}
		if err := e.addVEPA(ns, addr); err != nil {
			return err
		}
		ends[i], addrs[i] = ns, netip.AddrPortFrom(addr.Addr(), serverPort)
	}
	err = pingPong(ends, addrs)
	if errors.Is(err, errNoEcho) {
		return &machine.UnsupportedError{
			Missing: "the switch behind " + e.docker.Parent +
				" does not send frames back to the port they came from, which vepa needs",
			Remedy: "turn on reflective relay on the switch's port (IEEE 802.1Qbg; on a Linux bridge: bridge link set dev PORT hairpin on); or macvlan-bridge", Err: err}
	}
	return err
}

func (e *engine) addVEPA(ns *netns.NS, addr netip.Prefix) error {
	tid, err := ns.TID()
	if err != nil {
		return err
	}
	name := deviceName + dockerapi.NewID()
	err = e.ns.Do(func() error {
		return link.AddMacvlan(link.SubInterface{Name: name, Parent: e.docker.Parent, TID: tid},
			"vepa")
	})
	if err != nil {
		return err
	}
	return ns.Do(func() error { return errors.Join(link.AddAddr(name, addr), link.Up(name)) })
}

var errNoEcho = errors.New("no datagram came back")

func pingPong(ends [2]*netns.NS, addrs [2]netip.AddrPort) error {
	const (
		patience = 3 * time.Second
		again    = 50 * time.Millisecond
	)
	var socks [2]*net.UDPConn
	for i := range ends {
		err := ends[i].Do(func() (err error) {
			socks[i], err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(addrs[i]))
			return err
		})
		if err != nil {
			return err
		}
		defer socks[i].Close()
	}
	echo := make(chan struct{})
	go func() {
		defer close(echo)
		buf := make([]byte, 1)
		for {
			_, from, err := socks[1].ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			_, _ = socks[1].WriteToUDPAddrPort(buf, from) // the next datagram replaces a lost one
		}
	}()
	defer func() { _ = socks[1].Close(); <-echo }()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		_, _ = socks[0].WriteToUDPAddrPort([]byte{0}, addrs[1])
		if err := socks[0].SetReadDeadline(time.Now().Add(again)); err != nil {
			return err
		}
		if _, _, err := socks[0].ReadFromUDPAddrPort(make([]byte, 1)); err == nil {
			return nil
		}
	}
	return errNoEcho
}
