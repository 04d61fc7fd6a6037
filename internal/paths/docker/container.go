package docker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/undo"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

const inside = "eth0"

type bridgeNet struct {
	name, id string
	bridge   string // the bridge device, or ""
	where    string // "" is this machine
	subnet   netip.Prefix
	subnet6  netip.Prefix // invalid without IPv6
	options  map[string]string
}

// box is a sleeping container in which toll starts processes.
type box struct {
	engine *engine
	tuned  local.Tuned
	what   string
	id     string
	pid    int
	ns     *netns.NS
	addr   netip.Addr
	addr6  netip.Addr // valid if the path uses IPv6 on this network
	kind   mode.HopKind
	device string
	port   string // the veth pair's outer end, or ""
	portNS *netns.NS
	// shares means that the container has the host's network.
	shares bool
}

func (b *box) Place() path.Place { return contained{b} }

// Addr returns the address of the path's family.
func (b *box) Addr() netip.Addr {
	if b.addr6.IsValid() {
		return b.addr6
	}
	return b.addr
}

type wanted struct {
	what    string
	role    string // "server", in its name
	network string // the value of docker run --network
	publish []bound
	expose  []uint16 // exposed, unpublished ports
	links   []string // linked containers, each NAME:ALIAS
	udp     bool
}

type bound struct {
	host      netip.AddrPort // invalid on routed networks
	container uint16
}

func (s *site) addNetwork(driver string, options map[string]string) (*bridgeNet, error) {
	n, err := s.makeNetwork(&s.path.Undo, driver, options, netip.Prefix{}, s.dual())
	return s.reached(n), err
}

// reached returns n, without its bridge if the path bypasses a rootless Podman's bridges.
func (s *site) reached(n *bridgeNet) *bridgeNet {
	if e := s.engine; n != nil && e.Podman != nil && e.rootless && s.spot == e.machine {
		n.bridge = ""
	}
	return n
}

// makeNetwork makes a network and pushes its removal onto end. The zero subnet lets Docker choose
// or, if its address pools are used up, toll.
func (s *site) makeNetwork(end *undo.Stack, driver string, options map[string]string,
	subnet netip.Prefix, six bool) (*bridgeNet, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	e := s.engine
	name := s.name("net")
	if err := e.Journal.Add(dockerapi.Network, name); err != nil {
		return nil, err
	}
	end.Push("remove network "+name, func() error { return e.RemoveNetwork(name) })
	// dockerd 20.10 adds its jump to DOCKER-USER twice if networks are made in parallel.
	e.networking.Lock()
	defer e.networking.Unlock()
	if err := s.ctx.Err(); err != nil { // interrupted while waiting for the lock
		return nil, err
	}
	ctx, cancel := dockerapi.Uninterrupted()
	defer cancel()
	o := client.NetworkCreateOptions{Driver: driver, Options: options,
		Attachable: driver == "overlay", // otherwise only services may use it
		Labels:     e.Labels()}
	if subnet.IsValid() {
		o.IPAM = &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet}}}
	}
	if six {
		if err := withIPv6(&o); err != nil {
			return nil, err
		}
	}
	_, err := e.API.NetworkCreate(ctx, name, o)
	if dockerapi.PoolsUsed(err) && !subnet.IsValid() {
		err = s.createOutsidePools(ctx, name, o)
	}
	if err != nil {
		return nil, fmt.Errorf("make network: %w", err)
	}
	return e.network(s.ctx, name)
}

// createOutsidePools makes the network with a subnet that is free here. The caller holds
// networking. It does not take laying, whose holders wait for networking, so another path may take
// the subnet meanwhile. Then it chooses once more.
func (s *site) createOutsidePools(ctx context.Context, name string,
	o client.NetworkCreateOptions) error {
	ipam := network.IPAM{}
	if o.IPAM != nil {
		ipam = *o.IPAM
	}
	pools := ipam.Config
	o.IPAM = &ipam
	for again := true; ; again = false {
		subnet, err := s.freeSubnet()
		if err != nil {
			return err
		}
		ipam.Config = append(slices.Clone(pools), network.IPAMConfig{Subnet: subnet})
		_, err = s.engine.API.NetworkCreate(ctx, name, o)
		if err == nil || !again || !dockerapi.Overlaps(err.Error()) {
			return err
		}
	}
}

func (e *engine) network(ctx context.Context, name string) (*bridgeNet, error) {
	got, err := e.API.NetworkInspect(ctx, name, client.NetworkInspectOptions{})
	if err != nil {
		return nil, fmt.Errorf("read network %s: %w", name, err)
	}
	n := &bridgeNet{name: name, id: got.Network.ID, options: got.Network.Options}
	for _, c := range got.Network.IPAM.Config {
		if c.Subnet.Addr().Is4() {
			n.subnet = c.Subnet.Masked()
		} else if c.Subnet.IsValid() {
			n.subnet6 = c.Subnet.Masked()
		}
	}
	switch {
	case got.Network.Driver != "bridge":
	case e.Podman != nil:
		n.bridge, err = e.Interface(ctx, n.id)
	default:
		n.bridge = dockerapi.BridgeName(n.id, n.options)
	}
	return n, err
}

func (s *site) addBox(o wanted) (*box, error) {
	made, err := s.addBoxes([]wanted{o})
	if err != nil {
		return nil, err
	}
	return made[0], nil
}

// addBoxes starts the containers. They end with this process, which has their standard inputs.
func (s *site) addBoxes(wants []wanted) ([]*box, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	e := s.engine
	out, names := make([]*box, len(wants)), make([]string, len(wants))
	for i, o := range wants {
		names[i] = s.name(o.role)
		if err := e.Journal.Add(dockerapi.Container, names[i]); err != nil {
			return nil, err
		}
	}
	s.path.Undo.Push("remove containers", func() error {
		return atOnce(len(names), func(i int) error { return e.RemoveContainer(names[i]) })
	})
	return out, atOnce(len(wants), func(i int) (err error) {
		out[i], err = s.startBox(wants[i], names[i])
		return err
	})
}

func atOnce(n int, f func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *site) startBox(o wanted, name string) (*box, error) {
	e := s.engine
	done, err := e.starting.take(s.ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	config, host := e.config(o, name)
	ctx, cancel := dockerapi.Uninterrupted()
	defer cancel()
	made, err := e.API.ContainerCreate(ctx,
		client.ContainerCreateOptions{Name: name, Config: config, HostConfig: host})
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", o.what, err)
	}
	held, err := e.API.ContainerAttach(ctx, made.ID,
		client.ContainerAttachOptions{Stream: true, Stdin: true})
	if err != nil {
		return nil, fmt.Errorf("attach to %s: %w", o.what, err)
	}
	s.path.Undo.Push("let go of container "+name, func() error { held.Close(); return nil })
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := e.API.ContainerStart(ctx, made.ID, client.ContainerStartOptions{}); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.what, err)
	}
	b := &box{engine: e, tuned: s.tuned, what: o.what, id: made.ID, device: inside, portNS: e.ns}
	return b, s.enter(b, name)
}

func (e *engine) config(o wanted, name string) (*container.Config, *container.HostConfig) {
	proto := network.TCP
	if o.udp {
		proto = network.UDP
	}
	c := &container.Config{Image: e.image.tag,
		Cmd:    []string{dockerapi.InImage, dockerapi.PauseArg, name},
		Labels: e.Labels(), OpenStdin: true, StdinOnce: true, AttachStdin: true,
		ExposedPorts: network.PortSet{}}
	h := &container.HostConfig{NetworkMode: container.NetworkMode(o.network), AutoRemove: true,
		Links: o.links, UsernsMode: e.HostUsers(o.network),
		LogConfig: container.LogConfig{Type: "none"}, PortBindings: network.PortMap{}}
	for _, p := range o.publish {
		inner, _ := network.PortFrom(p.container, proto)
		c.ExposedPorts[inner] = struct{}{}
		b := network.PortBinding{HostIP: p.host.Addr()}
		if p.host.Port() != 0 {
			b.HostPort = strconv.Itoa(int(p.host.Port()))
		}
		h.PortBindings[inner] = append(h.PortBindings[inner], b)
	}
	for _, n := range o.expose {
		inner, _ := network.PortFrom(n, proto)
		c.ExposedPorts[inner] = struct{}{}
	}
	return c, h
}

func (s *site) enter(b *box, name string) error {
	got, err := s.engine.API.ContainerInspect(s.ctx, b.id, client.ContainerInspectOptions{})
	if err != nil {
		return fmt.Errorf("read %s: %w", b.what, err)
	}
	c := got.Container
	if c.State == nil || !c.State.Running {
		return fmt.Errorf("%s ended at once", b.what)
	}
	b.pid = c.State.Pid
	if err := s.engine.sameProcesses(b.pid, name); err != nil {
		return err
	}
	own, err := s.engine.hosts.netns()
	if err != nil {
		return fmt.Errorf("%s: %w", b.what, err)
	}
	its, err := netns.ID(b.pid)
	if err != nil {
		return fmt.Errorf("%s: %w", b.what, err)
	}
	if b.shares = its == own; b.shares { // a user may not enter the machine's network namespace again
		b.ns = s.engine.hosts.ns
	} else {
		if b.ns, err = netns.Join(netns.File(b.pid)); err != nil {
			return fmt.Errorf("%s: %w", b.what, err)
		}
		s.path.Undo.Push("leave "+b.what, b.ns.Close)
	}
	if c.NetworkSettings == nil {
		return nil
	}
	for _, n := range c.NetworkSettings.Networks {
		if n != nil && n.IPAddress.IsValid() {
			b.addr = n.IPAddress
		}
		if n != nil && s.dual() && n.GlobalIPv6Address.IsValid() {
			b.addr6 = n.GlobalIPv6Address
		}
	}
	return nil
}

// sameProcesses returns an error if the daemon's PIDs are not valid here. It reads the command line
// of a container's first process, which appears shortly after the start. Until then it is that of
// the runtime's init.
func (e *engine) sameProcesses(pid int, name string) error {
	const (
		moment = 2 * time.Second
		busy   = 30 * time.Second
		again  = time.Millisecond
	)
	for began := time.Now(); ; time.Sleep(again) {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
		if err == nil && slices.Contains(args, name) {
			return nil
		}
		limit := moment
		if args[len(args)-1] == "init" {
			limit = busy
		}
		if time.Since(began) > limit {
			u := &machine.UnsupportedError{
				Missing: "toll does not see the processes of " + e.words().daemon + "'s containers",
				Remedy:  "run toll outside containers, or with --pid host --network host --privileged", Err: err}
			// A sandbox or a virtual machine has a network stack and processes of its own.
			if r := e.Info.DefaultRuntime; err == nil && r != "" && r != "runc" && r != "crun" {
				u.Missing += ": their runtime is " + printable.Words(r)
				u.Remedy = `"default-runtime": "runc" in ` + e.settings() +
					", if that one starts no processes of this machine; or " + u.Remedy
			}
			return u
		}
	}
}

func (s *site) findPort(b *box) error {
	var peer int
	err := b.ns.Do(func() (err error) { peer, err = link.Peer(b.device); return err })
	if err == nil {
		err = b.portNS.Do(func() (err error) { b.port, err = link.NameOf(peer); return err })
	}
	if err != nil {
		return fmt.Errorf("find the pair of %s: %w", b.what, err)
	}
	return nil
}
