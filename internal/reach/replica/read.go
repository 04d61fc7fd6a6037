package replica

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/ipset"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

// Read reads the network of this machine and of the containers linked to it. It needs root. It does
// not create tables, and loads no module except the one that bpf.Netfilter may load. The kernel may
// assign numbers to namespaces.
func Read(ctx context.Context) (*Machine, error) {
	found, err := netns.Find()
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, f := range found {
			_ = f.Close()
		}
	}()
	return read(ctx, found)
}

// read reads the machine whose namespace is the first of found.
func read(ctx context.Context, found []netns.Found) (*Machine, error) {
	nodes := make([]node, len(found))
	err := Each(ctx, len(found), func(i int) error {
		err := found[i].Visit(func() error { return nodes[i].read(found, i) })
		if i > 0 { // the namespace may have ended, or may not be linked to the machine
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	m := &Machine{Arch: runtime.GOARCH, Kernel: release(), here: true}
	linked := linkedTo(nodes)
	loaded, names := readModules(), netns.Names()
	m.Spaces = make([]Space, len(linked))
	err = Each(ctx, len(linked), func(i int) error {
		n := linked[i]
		s := &m.Spaces[i]
		*s = nodes[n].Space
		s.ID, s.PID = found[n].ID, found[n].PID
		s.Names = slices.DeleteFunc(names[s.ID], func(name string) bool {
			return !spaceName.MatchString(name)
		})
		for j := range s.Links {
			if l := &s.Links[j]; l.ParentSpace >= 0 {
				l.ParentSpace = spaceOf(linked, nodes[n].ids, l.ParentSpace)
			}
		}
		return found[n].Visit(func() error { s.readRules(loaded); return nil })
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func spaceOf(linked []int, ids map[int]int, id int) int {
	if n, ok := ids[id]; ok {
		if i := slices.Index(linked, n); i >= 0 {
			return i
		}
	}
	return link.Elsewhere
}

// Each calls f for 0 to n-1, as many at once as there are CPUs, until ctx ends, and joins the errors.
func Each(ctx context.Context, n int, f func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			if errs[i] = ctx.Err(); errs[i] == nil {
				errs[i] = f(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// node is a namespace that may be linked to the machine's.
type node struct {
	Space
	ids map[int]int // by the kernel's number of a namespace, its index in the list of all
}

// read reads the network of the calling thread's namespace, which is all[own]. It reads nothing if
// no device links the namespace to another one.
func (n *node) read(all []netns.Found, own int) (err error) {
	if own > 0 {
		numbered, err := link.Numbered()
		if err != nil || !numbered {
			return err
		}
	}
	if n.Links, err = link.ReadSettled(); err != nil {
		return err
	}
	missing := map[int]bool{}
	for _, l := range n.Links {
		if l.ParentSpace >= 0 {
			missing[l.ParentSpace] = true
		}
	}
	n.ids = map[int]int{}
	for i := 0; i < len(all) && len(missing) > 0; i++ {
		id, err := link.NumberOf(all[i].FD())
		if err == nil && missing[id] {
			n.ids[id] = i
			delete(missing, id)
		}
	}
	for _, err := range n.ReadNetwork() {
		n.unread("its network", err)
	}
	return nil
}

// ReadNetwork reads the addresses, routes and neighbours of the calling thread's namespace. Each
// kind that cannot be read has an error.
func (s *Space) ReadNetwork() (errs []error) {
	for _, kind := range []struct {
		to   *[]raw.Message
		read func() ([]raw.Message, error)
	}{{&s.Addresses, link.ReadAddresses}, {&s.Nexthops, link.ReadNexthops},
		{&s.Routes, link.ReadRoutes}, {&s.Policy, link.ReadPolicy},
		{&s.Neighbours, link.ReadNeighbours}} {
		var err error
		if *kind.to, err = kind.read(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func (s *Space) unread(what string, err error) {
	if err != nil {
		s.Unknown = append(s.Unknown, Unknown{What: fmt.Sprintf("%s, unread: %v", what, err)})
	}
}

// linkedTo returns the indexes of the first namespace and of its containers' namespaces (see
// contains), including containers of containers.
func linkedTo(nodes []node) []int {
	out := []int{0}
	for at := 0; at < len(out); at++ {
		for i := range nodes {
			if !slices.Contains(out, i) && contains(nodes, out[at], i) {
				out = append(out, i)
			}
		}
	}
	return out
}

// contains reports whether namespace inner is a container's, linked to namespace outer by a device.
func contains(nodes []node, outer, inner int) bool {
	for _, l := range nodes[outer].Links {
		if l.Pair() && l.ParentSpace >= 0 && is(nodes[outer].ids, l.ParentSpace, inner) {
			peer, ok := link.ByIndex(nodes[inner].Links, l.Parent)
			if !ok || !peer.Pair() {
				continue
			}
			// An overlay network's bridge is in another namespace.
			if outer > 0 && peer.Master > 0 ||
				!leadsOut(&nodes[outer].Space, &nodes[inner].Space, l, peer) {
				return true
			}
		}
	}
	for _, l := range nodes[inner].Links {
		if !l.Pair() && l.Parent > 0 && l.ParentSpace >= 0 &&
			is(nodes[inner].ids, l.ParentSpace, outer) {
			if _, ok := link.ByIndex(nodes[outer].Links, l.Parent); ok {
				return true
			}
		}
	}
	return false
}

func is(ids map[int]int, id, i int) bool {
	n, ok := ids[id]
	return ok && n == i
}

// leadsOut reports whether end l of a pair is like a network card of namespace here, with another
// machine at the other end, peer. It is so if the default route of here uses l, or if l has an
// address and the default route of there does not use peer.
func leadsOut(here, there *Space, l, peer link.Saved) bool {
	for _, h := range here.Defaults() {
		if h.Index == l.Index || h.Index == l.Master && hasAddress(there, h.Gateway) {
			return true
		}
	}
	return l.Master == 0 && addressed(here, l.Index) &&
		!slices.ContainsFunc(there.Defaults(), func(h link.Hop) bool {
			return h.Index == peer.Index || h.Index == 0
		})
}

// Defaults returns the next hops of all default routes.
func (s *Space) Defaults() (out []link.Hop) {
	for _, r := range s.Routes {
		if link.IsDefault(r) {
			out = append(out, link.ParseHops(r)...)
		}
	}
	return out
}

// Uplink is a next hop to machines anywhere.
type Uplink struct {
	link.Hop
	Six  bool // of IPv6
	Main bool // of a default route of table main
}

// Uplinks returns the next hops of the routes of any table to machines anywhere.
func (s *Space) Uplinks() (out []Uplink) {
	for _, r := range s.Routes {
		if link.ToInternet(r) {
			for _, h := range link.ParseHops(r) {
				out = append(out, Uplink{h, r.Data[0] == unix.AF_INET6, link.IsDefault(r)})
			}
		}
	}
	return out
}

func hasAddress(s *Space, a netip.Addr) bool {
	return slices.ContainsFunc(s.Addresses, func(m raw.Message) bool {
		own, ok := link.ParseAddress(m)
		return ok && own.Prefix.Addr() == a
	})
}

// Hairpin reports whether a bridge sends frames that come in by the named port back to it.
func (s *Space) Hairpin(port string) bool {
	i := slices.IndexFunc(s.Links, func(l link.Saved) bool { return l.Name == port })
	return i >= 0 && s.Links[i].Hairpin()
}

// Blocks reports whether the device is a port of a bridge, which is up, that passes no packets
// although the device has a carrier.
func (s *Space) Blocks(port link.Saved) bool {
	bridge, ok := link.ByIndex(s.Links, port.Master)
	return ok && bridge.Up && port.Blocked()
}

// Prefixes returns the addresses, with prefix lengths, of the device with the index.
func (s *Space) Prefixes(index int) (out []netip.Prefix) {
	for _, m := range s.Addresses {
		if own, ok := link.ParseAddress(m); ok && own.Index == index {
			out = append(out, own.Prefix)
		}
	}
	return out
}

// addressed reports whether the device has an address other than a link-local one.
func addressed(s *Space, index int) bool {
	return slices.ContainsFunc(s.Prefixes(index), func(p netip.Prefix) bool {
		return !p.Addr().IsLinkLocalUnicast()
	})
}

func release() string {
	var u unix.Utsname
	_ = unix.Uname(&u)
	return unix.ByteSliceToString(u.Release[:])
}

func (s *Space) readRules(loaded modules) {
	names := make([]string, len(s.Links))
	for i, l := range s.Links {
		names[i] = l.Name
	}
	s.Sysctls = sysctl.ReadAll(names)
	var err error
	if loaded.may("nf_tables") {
		s.Nft, err = nft.Save()
		s.unread("rules of nf_tables", err)
	}
	s.Sets, err = ipset.Save()
	s.unread("sets of ipset", err)
	s.Legacy, err = xtables.Save()
	s.unread("rules of iptables-legacy", err)
	s.Unknown = append(s.Unknown, s.unknown(loaded)...)
}
