package lab

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// tapHolder describes a program that relays between machine A's sockets and a container's tap
// device.
type tapHolder struct {
	program string
	kind    mode.HopKind
	device  string // the tap device
	// start starts the program and configures the container's device.
	start func(s *site, file string, c *container, ports []rootless.Port) (pid int, err error)
}

const tapDevice = "tap device"

const containerFile = runDir + "/container"

// behindTap starts the program once for each container, as Podman does.
func (s *site) behindTap(h tapHolder) error {
	if err := s.leaveMachine(); err != nil {
		return err
	}
	p, out := s.path, s.path.Spec.To.Outside()
	spliced := recipe.Spliced(p.Spec)
	var relays, unused []path.Hop
	attach := func(at seat) (*container, error) {
		c, relay, err := s.attachTap(h, at)
		if err != nil {
			return nil, err
		}
		guard := s.loHop(c.ns, c.name)
		if spliced {
			guard = c.Hop(true)
		}
		relay.Clients = s.clientsOf(at)
		guard.Clients = relay.Clients
		relays, unused = append(relays, relay), append(unused, local.Unused(guard))
		return c, nil
	}
	if err := s.addServers(attach); err != nil {
		return err
	}
	if err := s.placeClients(func() error { return s.addClients(s.a, attach) }); err != nil {
		return err
	}
	s.Give(h.kind, relays...)
	p.Facts["data path"] = tapDevice
	if spliced {
		p.Facts["data path"] = "spliced sockets"
	}
	if !out {
		s.dialPublished()
	}
	if err := s.tellSource(); err != nil {
		return err
	}
	p.Guards = append(p.Guards, unused...)
	if p.Spec.From != mode.FromHost {
		p.Guards = append(p.Guards, local.Unused(s.loHop(s.a.ns, s.a.name)))
	}
	return nil
}

// clientsOf returns the client list of hops of the container at the seat.
func (s *site) clientsOf(at seat) []int {
	if s.path.Spec.To.Outside() {
		return s.path.Spec.Alone(at.number)
	}
	return s.path.Spec.TalkTo(at.number)
}

func (s *site) attachTap(h tapHolder, at seat) (*container, path.Hop, error) {
	c, pid, name, err := s.heldBy(h, at)
	if err != nil {
		return nil, path.Hop{}, fmt.Errorf("%s: %w", at.name, err)
	}
	p, out := s.path, s.path.Spec.To.Outside()
	c.kind, c.device = mode.HopTap, h.device
	proxy := local.Proxy{Space: s.a.ns, PID: pid, Listens: s.published(at.number),
		Target: netip.AddrPortFrom(c.Addr(), serverPort), Outward: out}
	if recipe.Spliced(p.Spec) {
		proxy.Dials = c.ns
	} else {
		proxy.Tap, proxy.Frames = c.ns, c.Hop(!out).Read
	}
	return c, local.RelayHop(p, h.kind, proxy, name, s.a.name), nil
}

// tellSource records which client address the server sees. It makes a connection to find out,
// because versions of pasta differ.
func (s *site) tellSource() error {
	const limit = 10 * time.Second
	client, to, listen := s.a.ns, s.b.ns, s.path.Servers[0].Listen
	switch {
	case s.path.Spec.To.Outside():
		client = s.Clients[0].ns
	case s.path.Spec.From == mode.FromRemote:
		client, to = s.b.ns, s.Servers[0].ns
	default:
		to = s.Servers[0].ns
	}
	once := local.ConnectOnce
	if s.path.Spec.UDP {
		once = local.AskOnce
	}
	ends, err := once(client.NS, to.NS, s.Dial[0], listen, limit)
	if err != nil {
		return err
	}
	s.path.Facts["source address"] = ends.String()
	return nil
}

// leaveMachine adds the default routes that rootless engines expect to machine A.
func (s *site) leaveMachine() error {
	return s.a.ns.Do(func() error {
		if err := link.AddDefaultRoute(s.b.addr.Addr()); err != nil || !s.b.addr6.IsValid() {
			return err
		}
		return link.AddDefaultRoute(s.b.addr6.Addr())
	})
}

// published returns server i's port on the machine; see rootless.Passt2023.
func (s *site) published(i int) uint16 {
	if s.path.Spec.Mode == mode.Pasta && s.path.Spec.UDP {
		return uint16(serverPort + i)
	}
	return uint16(publishedPort + i)
}

func (s *site) heldBy(h tapHolder, at seat) (c *container, pid int, name string, err error) {
	file, err := rootless.Find(h.program)
	if err != nil {
		return nil, 0, "", err
	}
	if c, err = s.box(s.a, at.name); err != nil {
		return nil, 0, "", err
	}
	if err := c.ns.Do(func() error { return s.quietSix() }); err != nil {
		return nil, 0, "", err
	}
	var ports []rootless.Port
	if !s.path.Spec.To.Outside() {
		udp := s.path.Spec.UDP
		ports = append(ports,
			rootless.Port{Host: s.published(at.number), Container: serverPort, UDP: udp})
		if s.path.Spec.Second {
			ports = append(ports, rootless.Port{Host: secondPort, Container: secondPort, UDP: udp})
		}
	}
	if pid, err = h.start(s, file, c, ports); err != nil {
		return nil, 0, "", fmt.Errorf("start %s: %w", file, err)
	}
	return c, pid, rootless.Named(h.program, file), nil
}

// quietSix prevents IPv6 from being set up while the path is measured.
func (s *site) quietSix() error {
	if s.path.Spec.To.Six() {
		return settle()
	}
	const key = "net.ipv6.conf.default.disable_ipv6"
	if _, err := sysctl.Get(key); err != nil {
		return nil
	}
	return sysctl.Set(key, "1")
}

// run starts a program in a space and kills it when the path is closed. The program is the first
// process of a PID namespace, so if it is a wrapper, the programs that it starts end with it.
func (s *site) run(ns *space, cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
	}
	if err := ns.Start(cmd); err != nil {
		return err
	}
	s.path.Undo.Push("stop "+cmd.Path, func() error {
		err := local.Kill(cmd)
		_ = cmd.Wait()
		return err
	})
	return nil
}

const relayReadyTimeout = 10 * time.Second

// await polls until ready returns true. It returns an error if the process ends or a timeout passes
// first.
func await(cmd *exec.Cmd, ready func() (bool, error)) error {
	const step = 2 * time.Millisecond
	for deadline := time.Now().Add(relayReadyTimeout); ; time.Sleep(step) {
		if ok, err := ready(); ok || err != nil {
			return err
		}
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info,
			unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		switch {
		case err != nil:
			return fmt.Errorf("wait until it is ready: %w", err)
		case info.Signo != 0:
			return errors.New("it ended")
		case time.Now().After(deadline):
			return fmt.Errorf("it was not ready after %v", relayReadyTimeout)
		}
	}
}

// configured reports whether a container's device has its address and default routes. It is not a
// step of fault tests, because the number of calls varies.
func (c *container) configured(device string) (ok bool, err error) {
	err = c.ns.NS.Do(func() error {
		for _, a := range []netip.Prefix{c.addr, c.addr6} {
			if !a.IsValid() {
				continue
			}
			if ok, err = link.HasAddr(device, a.Addr()); !ok || err != nil {
				return err
			}
		}
		routes, err := link.Routes()
		leaves := func(to netip.Prefix) bool {
			return slices.ContainsFunc(routes, func(r link.Routed) bool {
				return r.To == to && r.Device == device
			})
		}
		ok = leaves(anyPrefix) && (!c.addr6.IsValid() || leaves(anyPrefix6))
		return err
	})
	return ok, err
}

func (m *hostMachine) listensAt(p rootless.Port) (ok bool, err error) {
	err = m.ns.NS.Do(func() (err error) { ok, err = sock.Bound(p.Protocol(), p.Host); return err })
	return ok, err
}

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

func (s *site) slirp4netns() error {
	return s.behindTap(tapHolder{
		program: rootless.Slirp4netns,
		kind:    mode.HopSlirp,
		device:  rootless.SlirpTap,
		start:   (*site).startSlirp,
	})
}

const slirpSocket = runDir + "/api"

func (s *site) startSlirp(file string, c *container, ports []rootless.Port) (pid int, err error) {
	ns, err := s.private("mounts of slirp4netns")
	if err != nil {
		return 0, err
	}
	if err := ns.Do(func() error { return c.share(containerFile) }); err != nil {
		return 0, err
	}
	c.addr = rootless.SlirpAddr
	cmd, stderr := marked(file, rootless.SlirpArgs(containerFile, slirpSocket)...)
	if _, err := cmd.StdinPipe(); err != nil { // closed by Wait
		return 0, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	cmd.ExtraFiles = []*os.File{w}
	err = s.run(ns, cmd)
	w.Close()
	if err != nil {
		return 0, err
	}
	if err := r.SetReadDeadline(time.Now().Add(relayReadyTimeout)); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
		return 0, stderr.Explain(err)
	}
	for _, p := range ports {
		err := ns.Do(func() error { return rootless.SlirpPublish(slirpSocket, p) })
		if err != nil {
			return 0, stderr.Explain(err)
		}
	}
	return cmd.Process.Pid, nil
}
