package lab

import (
	"net"
	"net/netip"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// pasta copies the machine's addresses, routes and device name to the container. It splices only
// connections from a loopback address (passt 2023_03 to 2025_05).
func (s *site) pasta() error {
	err := s.behindTap(tapHolder{
		program: rootless.Pasta,
		kind:    mode.HopPasta,
		device:  wireName,
		start:   (*site).startPasta,
	})
	f := s.path.Facts
	if strings.Contains(f["proxy"], rootless.Passt2023) && f["data path"] == tapDevice &&
		!s.path.Spec.To.Outside() && !s.path.Spec.UDP {
		f["proxy"] += ", which hangs if the server sends first (bulk-reverse)"
	}
	return err
}

func tryPastaAnswers() error {
	file, err := rootless.Find(rootless.Pasta)
	if err != nil {
		return err
	}
	return rootless.CheckAnswers(rootless.Named(rootless.Pasta, file))
}

func (s *site) startPasta(file string, c *container, ports []rootless.Port) (pid int, err error) {
	ns, err := s.private("mounts of pasta")
	if err != nil {
		return 0, err
	}
	if err := ns.Do(func() error { return c.share(containerFile) }); err != nil {
		return 0, err
	}
	c.addr, c.addr6 = s.a.addr, s.a.addr6
	cmd, stderr := marked(file, rootless.PastaArgs(containerFile, ports)...)
	if err := s.run(ns, cmd); err != nil {
		return 0, err
	}
	err = await(cmd, func() (bool, error) {
		for _, p := range ports {
			if ok, err := s.a.listensAt(p); !ok || err != nil {
				return false, err
			}
		}
		return c.configured(wireName)
	})
	if err == nil {
		err = await(cmd, func() (bool, error) { return c.greets(s.b.addr.Addr()) })
	}
	return cmd.Process.Pid, stderr.Explain(err)
}

// greets makes the container resolve its gateway and reports whether pasta has answered. passt
// 2023_03 learns the container's MAC address from the container's first frame. Until then it
// broadcasts its SYNs, which the container drops.
func (c *container) greets(gateway netip.Addr) (answered bool, err error) {
	err = c.ns.NS.Do(func() error {
		const discard = 9
		to, err := net.Dial("udp", netip.AddrPortFrom(gateway, discard).String())
		if err != nil {
			return err
		}
		defer to.Close()
		_, _ = to.Write([]byte{0}) // may return the ICMP error of an earlier datagram
		n, err := link.Stats(wireName)
		answered = n.RxPackets > 0
		return err
	})
	return answered, err
}
