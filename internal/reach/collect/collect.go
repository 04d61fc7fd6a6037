// Package collect reads the facts that internal/reach/ports needs from this machine: sockets and
// their processes, devices, settings and Docker's containers. It changes nothing. What it cannot
// read is listed in Facts.Missing.
package collect

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/shortcut"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// readFacts reads the machine. What its proxies use is in the facts once rest has returned. It
// returns an error only if it cannot read the sockets.
func readFacts(ctx context.Context) (f *ports.Facts, rest func(), err error) {
	c := &collector{f: &ports.Facts{}, pid: os.Getpid(), root: os.Geteuid() == 0}
	contained := machine.Machine{}.Contained()
	c.inside = contained != ""
	c.processes()
	rest = c.proxyUse()
	if err := c.sockets(); err != nil {
		return nil, rest, err
	}
	c.network()
	c.shortcuts()
	c.docker(ctx)
	c.containersProcesses()
	c.flows()
	c.uplinks()
	c.spaces()
	c.published()
	c.usedPorts()
	if len(c.f.Containers) == 0 { // else it is a machine of its own
		c.setContained(contained)
	}
	for _, p := range []any{&c.f.Listeners, &c.f.Containers, &c.f.Devices, &c.f.Docker,
		&c.f.Ingress, &c.f.Missing} {
		printable.Fields(p)
	}
	return c.f, rest, nil
}

// setContained notes the kind of the container whose network is read, unless it is "".
func (c *collector) setContained(kind string) {
	if c.f.Contained = kind; kind != "" {
		c.missing("who gets to this network", "toll runs in a "+kind+" container, and reads that "+
			"container's network only", "run toll ports on the machine")
	}
}

// Published reads only the facts about ports of running containers and the sockets in them: no CPU
// clocks or logs.
func Published(ctx context.Context) (*ports.Facts, error) {
	c := &collector{f: &ports.Facts{}, pid: os.Getpid(), root: os.Geteuid() == 0, brief: true}
	c.processes()
	if err := c.sockets(); err != nil {
		return nil, err
	}
	c.network()
	c.docker(ctx)
	c.attached()
	for i := range c.f.Containers {
		if x := &c.f.Containers[i]; x.PID != 0 && !x.Host && len(x.Published) > 0 {
			c.listenersIn(x)
		}
	}
	for _, p := range []any{&c.f.Listeners, &c.f.Containers, &c.f.Devices, &c.f.Docker,
		&c.f.Missing} {
		printable.Fields(p)
	}
	return c.f, nil
}

// shortcuts reads the shortcuts of toll fast, which only root can.
func (c *collector) shortcuts() {
	t, err := shortcut.Open()
	if err != nil {
		if c.root && !errors.Is(err, shortcut.ErrNone) {
			c.missing("shortcuts of toll fast", err.Error(), "toll fast status")
		}
		return
	}
	defer func() { _ = t.Close() }()
	s, err := t.State()
	if err != nil {
		c.missing("shortcuts of toll fast", err.Error(), "toll fast status")
		return
	}
	here, err := shortcut.Namespace()
	if err != nil || !s.On || s.Lease == 0 || s.Netns != here {
		return
	}
	all, err := t.Entries()
	if err != nil {
		c.missing("shortcuts of toll fast", err.Error(), "toll fast status")
	}
	for _, e := range all {
		c.f.Shortcuts = append(c.f.Shortcuts, ports.Shortcut{Dial: e.Dial, Target: e.Target})
	}
}

func (c *collector) attached() {
	if err := c.readAttached(); err != nil {
		c.missing("programs, filters and queues of devices", err.Error(), "")
		return
	}
	c.f.Known.Attached = true
}

func (c *collector) readAttached() (err error) {
	if c.f.Switches.RoutedBySocket == "" {
		c.f.Switches.RoutedBySocket = c.unrouted()
	}
	byDevice, err := link.Attached()
	if err != nil {
		return err
	}
	chains, err := nft.ListAttached()
	if err != nil {
		return err
	}
	ports := false
	for i := range c.f.Devices {
		d := &c.f.Devices[i]
		d.Attached = byDevice[d.Name]
		for _, x := range chains {
			if x.Hooks(d.Name) || x.Devices == nil && d.Kind == "bridge" {
				d.Attached = append(d.Attached, "nftables: "+x.Name)
			}
		}
		ports = ports || d.Master != "" && len(d.Attached) > 0
	}
	for i := range c.f.Containers {
		// Which ports are containers' own matters only if something is attached to a port of a bridge.
		if x := &c.f.Containers[i]; ports && x.PID != 0 && !x.Rootless && !x.Host &&
			x.Shares == "" {
			if x.Devices, err = c.devicesIn(x.PID, x.Space); err != nil {
				x.Devices = nil // it exited, or any port may be its own
			}
		}
	}
	return nil
}

// unrouted returns why packets to a loopback address are not delivered, or "" if they are.
func (c *collector) unrouted() string {
	for _, a := range []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
		if !c.f.HasLoopback(a) {
			continue
		}
		if err := link.LocalRoute(a); err != nil {
			return fmt.Sprint(err)
		}
	}
	return ""
}

type collector struct {
	f      *ports.Facts
	pid    int // a process in the machine's network namespace
	root   bool
	inside bool                       // a container, whose network is read
	brief  bool                       // read only what Published needs
	owners map[uint32][]ports.Process // by socket inode
	procs  []process
	space  map[int]string // network namespaces by PID
	// programs has BPF programs by the directories of their control groups.
	programs map[string][]string
	others   []ports.Proxy // docker-proxies in other network namespaces
	// by the PIDs of docker-proxies: the processes above it, its user, whether it is in a container
	ancestors map[int][]int
	uid       map[int]uint32
	contained map[int]bool
	starters  map[int]ports.Container // ids, and names if known, of the containers that they start
	until     time.Time               // for relays to answer
	hidden    []ports.Process         // whose open files may not be read
}

func (c *collector) missing(what, why, remedy string) {
	c.f.Missing = append(c.f.Missing, ports.Missing{What: what, Why: why, Remedy: remedy})
}

const asRoot = "run toll ports as root"
