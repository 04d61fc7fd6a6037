// Package build makes a copy of a machine in the calling process. Only threads of the process hold
// the copy's network namespaces, so the copy ends with the process.
//
// The order matters: sysctls that devices inherit come before the devices, devices before
// addresses, addresses before routes, and routes before the rules that need them. Devices have the
// original's indexes, because routes and rules name devices by index.
//
// In the copy, a network card is a veth whose other end is in another namespace, the card's world.
// The world has a neighbour's address, the addresses of all gateways, and the clients. Tunnels,
// bonds, VLANs on cards, and veths whose other end is not in the copy are made in the same way,
// because rules and routes name devices by name and index, not by kind. Cards whose networks
// overlap share a world.
package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/kernel/undo"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica/dial"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica/jail"
)

// Main runs the process of a copy: it reads requests from in and writes replies to out. With
// jail.Arg as the program's second argument, it runs the first process of a jail instead.
func Main(in io.Reader, out io.Writer) error {
	if len(os.Args) > 2 && os.Args[2] == jail.Arg {
		return jail.Main(in)
	}
	fresh := sync.OnceValue(standard)
	go fresh() // while the caller reads the machine
	return replica.Serve(in, out, func(o replica.Order) (replica.Copy, error) {
		return copyIn(fresh(), o)
	})
}

type machine struct {
	from    *replica.Machine
	sockets []replica.Socket
	spaces  []*netns.NS // as in Machine.Spaces
	files   []int       // descriptors of spaces
	// void is a namespace for the other ends of devices without a network.
	void     *world
	survey   *survey
	refused  map[device]error // the result for each device that was tried; nil: it was made
	runs     map[device]bool  // devices that have a carrier or will get one
	ends     int              // the number of cards that were made
	guests   map[device]*segment
	noGuests map[device]error // why there are none
	outer    map[device]bool  // the other ends of guests
	net      *dial.Net
	times    int                       // number of attempts of each connection
	fresh    map[string]string         // parameters of a new namespace
	same     func() *alikes            // nil: to be found out
	scans    map[replica.Scan][]uint16 // the results, until what they depend on changes
	unread   map[int]unread            // namespaces whose rules commands may have changed
	changed  []int                     // namespaces in which commands changed devices, addresses or routes
	first    map[int]replica.Space     // namespaces whose rules commands have changed, with those of before
	grants   int                       // see jail.Run
	clean    undo.Stack

	mu    sync.Mutex
	lacks []replica.Lacks
}

var _ replica.Copy = (*machine)(nil)

func makeCopy(o replica.Order) (replica.Copy, error) { return copyIn(standard(), o) }

// copyIn makes the copy. Its Lacks lists what the kernel refuses.
func copyIn(s standards, o replica.Order) (replica.Copy, error) {
	if s.err != nil {
		return nil, s.err
	}
	lacks := o.Machine.MakeRoom(s.there)
	c := &machine{from: o.Machine, sockets: o.Sockets, survey: surveyed(o.Machine),
		refused: map[device]error{}, runs: map[device]bool{}, unread: map[int]unread{},
		first: map[int]replica.Space{}, guests: map[device]*segment{},
		noGuests: map[device]error{}, outer: map[device]bool{},
		times: 1, lacks: lacks, fresh: s.fresh, grants: -1}
	if o.Grants {
		c.grants = replica.GrantsFD
		unix.CloseOnExec(c.grants)
	}
	if slices.ContainsFunc(o.Machine.Spaces, random) {
		c.times = enough
	}
	if err := c.make(o); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// enough is the number of attempts of each connection where rules choose at random.
const enough = 7

func random(s replica.Space) bool {
	return s.Nft.Random() || slices.ContainsFunc(s.Legacy, xtables.Saved.Random) || spreads(s)
}

// spreads reports whether routes with several next hops send connections of one client to different
// ones.
func spreads(s replica.Space) bool {
	byPort := func(family string) bool {
		policy := s.Sysctls["net/"+family+"/fib_multipath_hash_policy"]
		return policy != "" && policy != "0"
	}
	return (byPort("ipv4") || byPort("ipv6")) &&
		slices.ContainsFunc(slices.Concat(s.Nexthops, s.Routes), link.Branches)
}

// standards has the devices and the parameters of a new namespace.
type standards struct {
	there []link.Saved
	fresh map[string]string
	err   error
}

func standard() (out standards) {
	ns, err := netns.New()
	if err != nil {
		out.err = err
		return out
	}
	err = ns.Do(func() (err error) {
		out.fresh = sysctl.ReadAll(nil)
		out.there, err = link.ReadLinks()
		return err
	})
	out.err = errors.Join(err, ns.Close())
	return out
}

func (c *machine) Close() error { return c.clean.Undo() }

func (c *machine) Lacks() []replica.Lacks { return c.lacks }

func (c *machine) lack(space int, what, device string, err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lacks = append(c.lacks, replica.Lacks{Space: space, What: what, Why: err.Error(),
		Device: device})
}

func (c *machine) make(o replica.Order) error {
	if err := c.makeSpaces(); err != nil {
		return err
	}
	if err := c.makeLinks(); err != nil {
		return err
	}
	err := inEach(c.spaces, func(i int) error { c.fill(i, o.Variant); return nil })
	if err != nil {
		return err
	}
	for _, s := range c.survey.segments {
		c.lack(s.space, "network of "+s.cards[0].Name, s.cards[0].Name, c.settle(s))
	}
	for i, ns := range c.spaces {
		err := ns.Do(func() error { c.lack(i, "IPv6 addresses", "", awaitRoutes()); return nil })
		if err != nil {
			return err
		}
	}
	if c.net, err = dial.Open(c.spaces, o.Sockets); err != nil {
		return err
	}
	c.clean.Push("close stand-ins", c.net.Close)
	for i, err := range c.net.Failed() {
		s := o.Sockets[i]
		c.lack(s.Space, fmt.Sprintf("socket %s %s", s.Proto, s.Addr), s.Device, err)
	}
	return nil
}

// namespace returns a new network namespace with the given settings.
func (c *machine) namespace(settings ...[]setting) (*netns.NS, error) {
	ns, err := netns.New()
	if err != nil {
		return nil, err
	}
	c.clean.Push("close a namespace", ns.Close)
	return ns, ns.Do(func() error {
		for _, list := range settings {
			apply(list)
		}
		return link.Up("lo")
	})
}

func (c *machine) makeSpaces() (err error) {
	n := len(c.from.Spaces)
	c.spaces, c.files = make([]*netns.NS, n), make([]int, n)
	err = replica.Each(context.Background(), n, func(i int) error {
		ns, err := c.namespace(quick)
		if err != nil {
			return err
		}
		c.spaces[i] = ns
		if c.files[i], err = c.open(ns); err != nil {
			return err
		}
		// Devices that are made later inherit some of these. All are set again at the end.
		return ns.Do(func() error { sysctl.SetAll(c.inherited(i)); return nil })
	})
	if err != nil {
		return err
	}
	c.void, err = c.newWorld("", mute)
	return err
}

// inherited returns the parameters of a namespace that differ from a new one's, without those of
// devices that do not exist yet.
func (c *machine) inherited(space int) map[string]string {
	out := map[string]string{}
	for key, value := range c.from.Spaces[space].Sysctls {
		if now, ok := c.fresh[key]; ok && now != value {
			out[key] = value
		}
	}
	return out
}

// unset returns the parameters of a namespace that may have other values, now that its devices
// exist. Those that makeSpaces has set are among them, because the kernel may have refused some.
func (c *machine) unset(space int) map[string]string {
	out := maps.Clone(c.from.Spaces[space].Sysctls)
	set := c.inherited(space)
	for key := range set {
		if sysctl.Spreads(key) { // to other parameters, which may differ from a new namespace's now
			return out
		}
	}
	maps.DeleteFunc(out, func(key, value string) bool {
		fresh, ok := c.fresh[sysctl.AsNew(key)]
		return ok && fresh == value
	})
	return out
}

func (c *machine) open(ns *netns.NS) (fd int, err error) {
	err = ns.Do(func() (err error) {
		fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("open a namespace: %w", err)
	}
	c.clean.Push("close a namespace", func() error { return unix.Close(fd) })
	return fd, nil
}
