package collect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

// dockerTimeout is the time for each answer of the engine. Tests shorten it.
var dockerTimeout = 5 * time.Second

const (
	maxLate    = 3 // answers that took longer, after which no more are requested
	logLines   = "20"
	logBytes   = 64 << 10
	maxStopped = 50
)

func (c *collector) docker(ctx context.Context) {
	host, file, err := dockerHost()
	if err != nil {
		remedy := ""
		var e *dockerapi.HostError
		if errors.As(err, &e) {
			remedy = e.Remedy
		}
		c.missing("names of containers", err.Error(), remedy)
		return
	}
	api, err := dockerapi.NewClient(host)
	if err != nil {
		c.missing("names of containers", err.Error(), "set DOCKER_HOST="+dockerapi.DefaultHost)
		return
	}
	defer func() { _ = api.Close() }()
	version, err := answer(ctx, func(ctx context.Context) (client.ServerVersionResult, error) {
		return api.ServerVersion(ctx, client.ServerVersionOptions{})
	})
	if err != nil {
		c.noDocker(file, err)
		return
	}
	c.f.Docker = version.Version
	info, err := answer(ctx, func(ctx context.Context) (client.SystemInfoResult, error) {
		return api.Info(ctx, client.InfoOptions{})
	})
	rootless := err == nil && dockerapi.Rootless(info.Info)
	podman := slices.ContainsFunc(version.Components, func(x system.ComponentVersion) bool {
		return x.Name == "Podman Engine" // which has pools of its own
	})
	if err == nil && !c.brief && !podman {
		c.f.AddressPools = addressPools(info.Info)
	}
	list, err := answer(ctx, func(ctx context.Context) ([]container.Summary, error) {
		return dockerapi.Containers(ctx, api, client.ContainerListOptions{All: true})
	})
	if err != nil {
		c.missing("names of containers", err.Error(), "")
		return
	}
	stopped, late := 0, 0
	for _, s := range list {
		if !running(s.State) {
			if c.brief || strings.HasPrefix(s.Status, "Exited (0)") || stopped == maxStopped {
				continue
			}
			stopped++
		}
		if late == maxLate { // it does not answer any more
			break
		}
		in, err := answer(ctx, func(ctx context.Context) (client.ContainerInspectResult, error) {
			return api.ContainerInspect(ctx, s.ID, client.ContainerInspectOptions{})
		})
		if errors.Is(err, context.DeadlineExceeded) {
			late++
			continue
		}
		if err != nil || in.Container.State == nil || in.Container.Config == nil {
			continue // removed meanwhile
		}
		x := describe(in.Container)
		x.Image, x.Rootless = s.Image, rootless
		x.Space, _ = netns.ID(x.PID)
		if in.Container.State.ExitCode != 0 || x.Restarts > 0 {
			x.LastLog += lastWords(ctx, api, in.Container)
		}
		c.f.Containers = append(c.f.Containers, x)
	}
	if late > 0 {
		c.missing("names, networks and ports of some containers", fmt.Sprintf(
			"the engine did not answer within %.0f s, %s", dockerTimeout.Seconds(),
			map[bool]string{true: "several times", false: "once"}[late > 1]), "run toll ports again")
	}
	c.shares()
	c.bridges(ctx, api)
	c.ingress(ctx, api)
}

// answer calls f with a context for one answer of the engine.
func answer[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	return f(ctx)
}

// dockerHost returns the engine's address and the path of its socket. It returns an error for an
// engine on another machine.
func dockerHost() (host, file string, err error) {
	if host, err = dockerapi.FindHost(os.Getenv); err == nil {
		file, err = dockerapi.Socket(host)
	}
	return host, file, err
}

// noDocker records why Docker did not answer. A machine without Docker is not a fault.
func (c *collector) noDocker(path string, err error) {
	if _, errStat := os.Stat(path); os.IsNotExist(errStat) {
		if len(c.f.Proxies) > 0 || os.Getenv("DOCKER_HOST") != "" {
			c.missing("names of containers", "there is no Docker socket at "+path,
				"set DOCKER_HOST=unix://… if it is elsewhere")
		}
		return
	}
	if f, errOpen := os.Stat(path); errOpen == nil && f.Mode()&os.ModeSocket != 0 && !c.root {
		c.missing(
			"names of containers",
			"this user may not open Docker's socket, "+path,
			asRoot+", or as a member of the group docker")
		return
	}
	c.missing("names of containers", err.Error(), "check whether the engine runs: docker version")
}

func running(s container.ContainerState) bool {
	return s == container.StateRunning || s == container.StatePaused ||
		s == container.StateRestarting
}

func describe(in container.InspectResponse) ports.Container {
	x := ports.Container{Measuring: in.Config.Labels[dockerapi.RunLabel] != "", ID: in.ID,
		Name: strings.TrimPrefix(in.Name, "/"), PID: in.State.Pid, State: string(in.State.Status),
		Restarts: in.RestartCount}
	if at, err := time.Parse(time.RFC3339Nano, in.State.StartedAt); err == nil {
		x.Up = time.Since(at)
	}
	if in.State.Error != "" {
		x.LastLog = in.State.Error + "\n"
	}
	if in.HostConfig != nil {
		x.Host = in.HostConfig.NetworkMode.IsHost()
		x.Shares = in.HostConfig.NetworkMode.ConnectedContainer()
		for port, bindings := range in.HostConfig.PortBindings {
			for _, b := range bindings {
				n, _ := strconv.ParseUint(b.HostPort, 10, 16) // "" or a range: Docker chooses
				x.Asked = append(x.Asked, ports.Published{
					Proto: string(port.Proto()), Port: port.Num(),
					Host: netip.AddrPortFrom(b.HostIP, uint16(n))})
			}
		}
	}
	published := map[string]bool{}
	if in.NetworkSettings != nil {
		published = describeNetworks(&x, in.NetworkSettings)
	}
	for port := range in.Config.ExposedPorts {
		if !published[port.String()] {
			x.Exposed = append(x.Exposed, ports.Published{
				Proto: string(port.Proto()), Port: port.Num()})
		}
	}
	slices.Sort(x.Networks)
	slices.SortFunc(x.Addrs, func(a, b netip.Addr) int {
		return cmp.Or(a.BitLen()-b.BitLen(), a.Compare(b))
	})
	byPort := func(a, b ports.Published) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Proto, b.Proto),
			a.Host.Compare(b.Host))
	}
	slices.SortFunc(x.Published, byPort)
	slices.SortFunc(x.Asked, byPort)
	slices.SortFunc(x.Exposed, byPort)
	return x
}

// describeNetworks adds networks, addresses and published ports to x. It returns which of the
// container's ports are published.
func describeNetworks(x *ports.Container,
	s *container.NetworkSettings) (published map[string]bool) {
	for name, n := range s.Networks {
		x.Networks = append(x.Networks, name)
		if n == nil {
			continue
		}
		for _, a := range []netip.Addr{n.IPAddress, n.GlobalIPv6Address} {
			if a.IsValid() {
				x.Addrs = append(x.Addrs, a)
			}
		}
	}
	published = map[string]bool{}
	for port, bindings := range s.Ports {
		for _, b := range bindings {
			n, err := strconv.ParseUint(b.HostPort, 10, 16)
			if err != nil {
				continue
			}
			host := b.HostIP
			if !host.IsValid() {
				host = netip.IPv4Unspecified()
			}
			published[port.String()] = true
			x.Published = append(x.Published, ports.Published{
				Proto: string(port.Proto()), Port: port.Num(),
				Host: netip.AddrPortFrom(host, uint16(n))})
		}
	}
	return published
}

// lastWords returns the end of the container's output, or "" if the log driver keeps no logs.
func lastWords(ctx context.Context, api *client.Client, in container.InspectResponse) string {
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	r, err := api.ContainerLogs(ctx, in.ID,
		client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: logLines})
	if err != nil {
		return ""
	}
	defer r.Close()
	var out bytes.Buffer
	limited := io.LimitReader(r, logBytes)
	if in.Config.Tty {
		_, _ = io.Copy(&out, limited)
	} else {
		_, _ = stdcopy.StdCopy(&out, &out, limited) // output before a fault is useful too
	}
	return out.String()
}

// shares replaces ids in Shares by names.
func (c *collector) shares() {
	for i := range c.f.Containers {
		x := &c.f.Containers[i]
		for _, o := range c.f.Containers {
			if x.Shares != "" && strings.HasPrefix(o.ID, x.Shares) {
				x.Shares = o.Name
			}
		}
	}
}

// bridges marks the devices that are bridges of Docker, which may have any name, and sets the
// drivers of the containers' networks.
func (c *collector) bridges(ctx context.Context, api *client.Client) {
	list, err := api.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return // the usual names are known
	}
	internal, drivers := map[string]bool{}, map[string]string{}
	for _, n := range list.Items {
		internal[n.Name], drivers[n.Name] = n.Internal, n.Driver
		x := ports.Network{Name: n.Name, Driver: n.Driver, Scope: n.Scope}
		if n.Driver == "bridge" {
			x.Bridge = dockerapi.BridgeName(n.ID, n.Options)
			x.Unmasqueraded = unmasqueraded(n.Options)
		}
		for _, p := range n.IPAM.Config {
			if p.Subnet.IsValid() {
				x.Pools = append(x.Pools, p.Subnet)
			}
			if p.IPRange.IsValid() {
				x.Ranges = append(x.Ranges, p.IPRange)
			}
		}
		c.f.Networks = append(c.f.Networks, x)
	}
	slices.SortFunc(c.f.Networks, func(a, b ports.Network) int {
		return cmp.Compare(a.Name, b.Name)
	})
	for i := range c.f.Containers {
		x := &c.f.Containers[i]
		x.Internal = len(x.Networks) > 0 && !slices.ContainsFunc(
			x.Networks, func(name string) bool {
				return !internal[name]
			})
		for _, name := range x.Networks {
			x.Drivers = append(x.Drivers, drivers[name])
		}
		slices.Sort(x.Drivers)
		x.Drivers = slices.Compact(x.Drivers)
	}
	for _, n := range c.f.Networks {
		for i := range c.f.Devices {
			if n.Bridge != "" && c.f.Devices[i].Name == n.Bridge {
				c.f.Devices[i].Docker = true
			}
		}
	}
}

// unmasqueraded returns the option of a bridge network by which its packets keep their source
// addresses, or "".
func unmasqueraded(options map[string]string) string {
	const prefix = "com.docker.network.bridge."
	const masquerade, mode = "enable_ip_masquerade", "gateway_mode_ipv4"
	if on, err := strconv.ParseBool(options[prefix+masquerade]); err == nil && !on {
		return masquerade + "=" + options[prefix+masquerade]
	}
	if options[prefix+mode] == "routed" {
		return mode + "=routed"
	}
	return ""
}

// addressPools returns what the engine takes new networks from: what its configuration names, or
// its defaults.
func addressPools(info system.Info) (out []ports.AddressPool) {
	for _, p := range info.DefaultAddressPools {
		out = append(out, ports.AddressPool{Base: p.Base, Size: p.Size})
	}
	if len(out) > 0 {
		return out
	}
	const first, last, large, small = 17, 31, 16, 20 // moby's daemon/libnetwork/ipamutils
	for i := byte(first); i <= last; i++ {
		base := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, i, 0, 0}), large)
		out = append(out, ports.AddressPool{Base: base, Size: large})
	}
	base := netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, 0, 0}), large)
	return append(out, ports.AddressPool{Base: base, Size: small})
}
