package build

import (
	"bytes"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// world is a namespace that takes the place of all other machines in a network.
type world struct {
	ns     *netns.NS
	file   int    // the namespace's descriptor
	device string // the device with the addresses
	near   []netip.Prefix
	added  map[netip.Addr]bool
}

// end returns the name of a card's other end. It is unique in the copy, because the void has ends
// of several namespaces.
func end(d device) string {
	const base = 36 // a device's name has at most 15 characters
	return "e" + strconv.FormatInt(int64(d.space), base) + "." +
		strconv.FormatInt(int64(d.index), base)
}

func (c *machine) newWorld(device string, settings []setting) (*world, error) {
	ns, err := c.namespace(quick, settings)
	if err != nil {
		return nil, err
	}
	file, err := c.open(ns)
	return &world{ns: ns, file: file, device: device, added: map[netip.Addr]bool{}}, err
}

// settle gives a segment's world its addresses, and routes to the machine.
func (c *machine) settle(s *segment) error {
	w := s.world
	for _, p := range s.own {
		if p.IsSingleIP() || p.Addr().IsLinkLocalUnicast() || slices.ContainsFunc(w.near,
			func(o netip.Prefix) bool { return o.Masked() == p.Masked() }) {
			continue
		}
		if a := c.free(p); a.IsValid() {
			w.near = append(w.near, netip.PrefixFrom(a, p.Bits()))
		}
	}
	return w.ns.Do(func() error {
		var errs []error
		for _, p := range w.near {
			errs = append(errs, w.add(p))
		}
		for _, g := range s.gates {
			errs = append(errs, w.add(netip.PrefixFrom(g, g.BitLen())))
		}
		return errors.Join(append(errs, w.routeBack(s), awaitRoutes())...)
	})
}

func (w *world) add(p netip.Prefix) error {
	if w.added[p.Addr()] {
		return nil
	}
	w.added[p.Addr()] = true
	return link.AddAddr(w.device, p)
}

// routeBack adds default routes from the world to the machine.
func (w *world) routeBack(s *segment) (err error) {
	if len(s.cards) > 0 && !slices.ContainsFunc(s.cards, func(l link.Saved) bool {
		return l.Up && l.Lower
	}) {
		return nil
	}
	for _, to := range []netip.Prefix{everything4, everything6} {
		by := s.routers[to.Addr().Is6()]
		for _, p := range s.own {
			if s.routers != nil {
				break
			}
			if a := p.Addr(); a.Is4() == to.Addr().Is4() &&
				(!by.IsValid() || by.IsLinkLocalUnicast()) {
				by = a
			}
		}
		switch {
		case !by.IsValid():
			continue
		case slices.ContainsFunc(s.cards, func(l link.Saved) bool { return l.NoARP }):
			add := link.AddDeviceRoute(to, w.device)
			if !errors.Is(add, unix.EEXIST) { // else it is there since before commands
				err = errors.Join(err, add)
			}
		default:
			err = errors.Join(err, link.AddRouteOnlink(to, by, w.device))
		}
	}
	return err
}

var (
	everything4 = netip.MustParsePrefix("0.0.0.0/0")
	everything6 = netip.MustParsePrefix("::/0")
)

// free returns an address of the network that is unused and in no rule, or the zero Addr.
func (c *machine) free(p netip.Prefix) netip.Addr {
	const tries = 64
	a := xtables.LastAddress(p)
	if a.Is4() && p.Bits() < 31 {
		a = a.Prev() // broadcast
	}
	fallback := netip.Addr{}
	for range tries {
		if !p.Contains(a) || a == p.Masked().Addr() && p.Bits() < 31 {
			break
		}
		if !c.survey.taken[a] {
			if !c.inRule(a) {
				c.survey.taken[a] = true
				return a
			}
			fallback = a
		}
		a = a.Prev()
	}
	return fallback
}

// inRule reports whether the bytes of a rule contain the address. Rules of before commands count,
// too: of those that cannot be copied, two copies have different ones, but both must choose the
// same addresses.
func (c *machine) inRule(a netip.Addr) bool {
	b := a.AsSlice()
	in := func(s replica.Space) bool {
		for _, list := range [][]raw.Message{s.Nft.Messages, s.Sets, s.Policy} {
			if slices.ContainsFunc(list, func(m raw.Message) bool { return bytes.Contains(m.Data, b) }) {
				return true
			}
		}
		return slices.ContainsFunc(s.Legacy, func(t xtables.Saved) bool {
			return bytes.Contains(t.Entries, b)
		})
	}
	return slices.ContainsFunc(c.from.Spaces, in) ||
		slices.ContainsFunc(slices.Collect(maps.Values(c.first)), in)
}
