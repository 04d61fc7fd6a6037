package build

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica/dial"
)

// Dial makes the connections. One that cannot be tried has the outcome Failed.
func (c *machine) Dial(ctx context.Context, dials []replica.Dial) ([]replica.Answer, error) {
	answers := make([]replica.Answer, len(dials))
	var quick, explained, calm, long calls
	for i, d := range dials {
		ns, source, err := c.place(d.Client, d.To.Addr())
		if err != nil {
			answers[i].Outcomes = []replica.Outcome{
				{Got: replica.Failed, Err: err.Error(), Socket: -1}}
			continue
		}
		call := dial.Call{From: ns, Source: source, Proto: d.Proto, To: d.To}
		switch {
		case d.Long != 0:
			long.add(call, i)
		case d.Explain && !d.OnlyLost:
			explained.add(call, i)
		case d.Pass == replica.Calmly:
			calm.add(call, i)
		default:
			quick.add(call, i)
		}
	}
	again, err := c.dialQuickly(ctx, dials, quick, answers)
	if err != nil {
		return nil, err
	}
	for _, k := range again {
		i := quick.of[k]
		if dials[i].Pass == replica.Quickly && len(answers[i].Outcomes) > 0 {
			continue
		}
		if dials[i].OnlyLost && c.times == 1 && len(explained.list) < replica.MaxExplained {
			explained.add(quick.list[k], i) // which makes it again
			continue
		}
		answers[i].Outcomes = nil
		calm.add(quick.list[k], i)
	}
	if err := c.explain(ctx, explained, &calm, answers); err != nil {
		return nil, err
	}
	outcomes, err := c.net.DialCalmly(ctx, calm.list, c.times)
	if err != nil {
		return nil, err
	}
	for k, i := range calm.of {
		replica.Merge(&answers[i], replica.Answer{Outcomes: outcomes[k]})
		if c.times == 1 && !outcomes[k][0].Doubtful() {
			answers[i].Lost = nil
		}
	}
	return answers, c.exchange(ctx, dials, long, answers)
}

// findAlike begins to find out which ports are alike, unless that was begun.
func (c *machine) findAlike() error {
	if _, err := c.readRules(); err != nil {
		return err
	}
	if c.same == nil {
		c.same = sync.OnceValue(c.alikes)
		go c.same()
	}
	return nil
}

// worthwhile is the number of connections from which on it takes less to find out which are alike
// than to make all.
const worthwhile = 200

// dialQuickly makes connections, those that are alike once. It returns the indexes in quick of
// those to be made again.
func (c *machine) dialQuickly(ctx context.Context, dials []replica.Dial, quick calls,
	answers []replica.Answer) (again []int, err error) {
	same := &alikes{}
	if c.same != nil || len(quick.list) >= worthwhile {
		if err := c.findAlike(); err != nil {
			return nil, err
		}
		same = c.same()
	}
	of := map[int]int{} // in quick, by the index of the answer
	for k, i := range quick.of {
		of[i] = k
	}
	groups := same.groups(dials, quick.of)
	var first calls
	for _, g := range groups {
		first.add(quick.list[of[g.first]], g.first)
	}
	outcomes, doubtful, err := c.net.DialQuickly(ctx, first.list, c.times)
	if err != nil {
		return nil, err
	}
	for k, g := range groups {
		answers[g.first].Outcomes = outcomes[k]
		doubted := slices.Contains(doubtful, k)
		if doubted {
			again = append(again, of[g.first])
		}
		for _, m := range g.rest {
			list, ok := same.outcomes(outcomes[k], m, c.sockets)
			if answers[m.index].Outcomes = list; !ok || doubted {
				again = append(again, of[m.index])
			}
		}
	}
	slices.Sort(again)
	return again, nil
}

// explain makes connections with their explanations. It adds those to be made again: of which a
// busy machine, instead of a rule or route, may have lost the packets, and those of rules that
// choose at random. If another one then gets an answer, the explanation does not hold.
func (c *machine) explain(ctx context.Context, these calls, again *calls,
	answers []replica.Answer) error {
	if len(these.list) == 0 {
		return nil
	}
	got, err := c.net.Explain(ctx, these.list)
	if err != nil {
		return err
	}
	for k, i := range these.of {
		answers[i] = got[k]
		switch {
		case c.times > 1:
			again.add(these.list[k], i)
		case got[k].Outcomes[0].Doubtful() && !certain(got[k]):
			answers[i].Outcomes = nil
			again.add(these.list[k], i)
		}
	}
	return nil
}

// certain reports whether a rule or route lost the packets of a connection. A neighbour that does
// not answer may only be late: the kernel waits 0.3 s for it, however busy the machine is.
func certain(a replica.Answer) bool {
	return a.Lost.Caused() && (a.Lost.Rule != nil || a.Outcomes[0].Got != replica.Unreachable)
}

// exchange makes the long exchanges, and explains those that fail.
func (c *machine) exchange(ctx context.Context, dials []replica.Dial, long calls,
	answers []replica.Answer) error {
	outcomes, err := c.net.Exchange(ctx, long.list, long.ports(dials), c.times)
	if err != nil {
		return err
	}
	type destination struct {
		from replica.Client
		to   netip.AddrPort
	}
	explained := map[destination]bool{}
	for i, d := range dials {
		explained[destination{d.Client, d.To}] = d.Long == 0 && answers[i].Lost != nil ||
			explained[destination{d.Client, d.To}]
	}
	var failed calls
	for k, i := range long.of {
		answers[i].Outcomes = outcomes[k]
		at := destination{dials[i].Client, dials[i].To}
		if dials[i].Explain && outcomes[k][0].Got != replica.Connected && !explained[at] {
			explained[at] = true
			failed.add(long.list[k], i)
		}
	}
	if len(failed.list) == 0 {
		return nil
	}
	why, err := c.net.ExplainExchange(ctx, failed.list, failed.ports(dials))
	if err != nil {
		return err
	}
	for k, i := range failed.of {
		replica.Merge(&answers[i], why[k])
	}
	return nil
}

// calls has the calls for some of the answers.
type calls struct {
	list []dial.Call
	of   []int // indexes of the answers
}

func (c *calls) add(call dial.Call, of int) {
	c.list, c.of = append(c.list, call), append(c.of, of)
}

// ports returns the client ports of long exchanges.
func (c *calls) ports(dials []replica.Dial) (out []uint16) {
	for _, i := range c.of {
		out = append(out, dials[i].Long)
	}
	return out
}

// place returns a client's namespace and its address. The zero address means that the kernel
// chooses one.
func (c *machine) place(from replica.Client, to netip.Addr) (*netns.NS, netip.Addr, error) {
	if from.Space < 0 || from.Space >= len(c.spaces) {
		return nil, netip.Addr{}, fmt.Errorf("there is no namespace %d", from.Space)
	}
	var s *segment
	switch {
	case from.Card != "":
		at, err := c.named(from.Space, from.Card)
		if err != nil {
			return nil, netip.Addr{}, err
		}
		if s = c.survey.around(at); s == nil {
			return nil, netip.Addr{}, fmt.Errorf("no other machine is in the network of %s", from.Card)
		}
	case from.Bridge != "":
		at, err := c.named(from.Space, from.Bridge)
		if err != nil {
			return nil, netip.Addr{}, err
		}
		if s, err = c.guestAt(at); err != nil {
			return nil, netip.Addr{}, err
		}
	default:
		return c.spaces[from.Space], from.Source, nil
	}
	source, err := s.client(from.Source, to)
	return s.world.ns, source, err
}

func (c *machine) named(space int, name string) (device, error) {
	links := c.from.Spaces[space].Links
	i := slices.IndexFunc(links, func(l link.Saved) bool { return l.Name == name })
	if i < 0 {
		return device{}, fmt.Errorf("there is no device %s", name)
	}
	at := device{space, links[i].Index}
	return at, c.refused[at]
}

// client returns the client's address: source if that is valid, else if possible one in the network
// of the address to. It adds source to the world.
func (s *segment) client(source, to netip.Addr) (netip.Addr, error) {
	w := s.world
	if source.IsValid() {
		if slices.ContainsFunc(s.own, func(p netip.Prefix) bool { return p.Addr() == source }) {
			return source, fmt.Errorf("%s is the machine's own address", source)
		}
		if w.added[source] && s.routes(source) {
			return source, nil
		}
		err := w.ns.Do(func() error {
			err := w.add(netip.PrefixFrom(source, source.BitLen()))
			if err == nil && !s.routes(source) {
				err = link.AddRouteOnlink(netip.PrefixFrom(to, to.BitLen()), to, w.device)
			}
			if errors.Is(err, unix.EEXIST) {
				err = nil
			}
			return err
		})
		return source, err
	}
	is4 := to.Unmap().Is4()
	for _, p := range w.near {
		if p.Contains(to.Unmap()) {
			return p.Addr(), nil
		}
		if !source.IsValid() && p.Addr().Is4() == is4 {
			source = p.Addr()
		}
	}
	if !source.IsValid() {
		i := slices.IndexFunc(s.gates, func(a netip.Addr) bool { return a.Is4() == is4 })
		if i < 0 {
			return source, fmt.Errorf("no other machine there has an address for %s", to)
		}
		source = s.gates[i]
	}
	return source, nil
}

// routes reports whether the machine has an address of a's family in the network, so that the world
// has a route to it.
func (s *segment) routes(a netip.Addr) bool {
	return slices.ContainsFunc(s.own, func(p netip.Prefix) bool {
		return p.Addr().Is4() == a.Is4() && !p.Addr().IsLinkLocalUnicast()
	})
}

// Towards returns the device by which the machine sends packets to an address.
func (c *machine) Towards(to netip.Addr) (device string, err error) {
	err = c.spaces[0].Do(func() error {
		r, err := link.RouteTo(to)
		device = r.Device
		return err
	})
	return device, err
}

// Scan switches filters off and forwarding of IPv4 on while it scans: each packet would cross all
// rules of the filters, and ports that they block, or that are not forwarded, would not be found.
// Of ports that are alike it scans one. For a client that has no place in the copy it returns
// nothing; Dial returns the reason.
func (c *machine) Scan(ctx context.Context, scans []replica.Scan) (out [][]uint16, err error) {
	if err := c.findAlike(); err != nil {
		return nil, err
	}
	var todo []replica.Scan
	var calls []dial.Call
	for _, x := range scans {
		if _, known := c.scans[x]; known {
			continue
		}
		if ns, source, nowhere := c.place(x.Client, x.To); nowhere == nil {
			todo = append(todo, x)
			calls = append(calls, dial.Call{From: ns, Source: source,
				Proto: map[bool]string{false: "tcp", true: "udp"}[x.UDP],
				To:    netip.AddrPortFrom(x.To, 1)})
		}
	}
	if len(todo) > 0 {
		err = c.unfiltered(func() error { return c.scan(ctx, todo, calls) })
	}
	for _, x := range scans {
		out = append(out, c.scans[x])
	}
	return out, err
}

// scan makes scans by their calls, and adds the results to c.scans.
func (c *machine) scan(ctx context.Context, todo []replica.Scan, calls []dial.Call) error {
	var ruled []*netns.NS
	for i, s := range c.from.Spaces {
		if len(s.Nft.Messages)+len(s.Legacy) > 0 {
			ruled = append(ruled, c.spaces[i])
		}
	}
	first, like := c.same().ports(c.ports())
	all, err := c.net.Scan(ctx, calls, first, ruled)
	if err != nil {
		return err
	}
	if c.scans == nil {
		c.scans = map[replica.Scan][]uint16{}
	}
	for i, found := range all {
		for _, p := range found {
			found = append(found, like[p]...)
		}
		slices.Sort(found)
		c.scans[todo[i]] = found
	}
	return nil
}

// unfiltered calls f while filters are off and IPv4 is forwarded in all namespaces.
func (c *machine) unfiltered(f func() error) (err error) {
	for i, space := range c.spaces {
		var wake func() error
		if err := space.Do(func() (err error) {
			wake, err = c.from.Spaces[i].Nft.Sleep()
			sysctl.WriteAll(notForwarding(c.from.Spaces[i].Sysctls, "1"))
			return err
		}); err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, space.Do(func() error {
				sysctl.WriteAll(notForwarding(c.from.Spaces[i].Sysctls, "0"))
				return wake()
			}))
		}()
	}
	return f()
}

// notForwarding returns the parameters of the devices that do not forward IPv4, with another value.
func notForwarding(all map[string]string, value string) map[string]string {
	out := map[string]string{}
	for key, now := range all {
		if now == "0" && strings.HasPrefix(key, "net/ipv4/conf/") &&
			strings.HasSuffix(key, "/forwarding") && key != "net/ipv4/conf/all/forwarding" {
			out[key] = value
		}
	}
	return out
}

// ports returns the ports to scan: those of sockets, and each number in rules and sets with the
// numbers next to it. Rules that compare ports treat all ports between two such numbers alike.
func (c *machine) ports() (out []uint16) {
	var named [1 << 16]bool
	name := func(n uint16) { named[n-1], named[n], named[n+1] = true, true, true }
	for _, s := range c.from.Spaces {
		s.Nft.Words(name)
		for _, t := range s.Legacy {
			if t.Name != "filter" {
				raw.Words(t.Entries, name)
			}
		}
		for _, m := range s.Sets {
			raw.Words(m.Data, name)
		}
	}
	for _, s := range c.sockets {
		name(s.Addr.Port())
		name(s.Relay.Port())
	}
	for n := 1; n < len(named); n++ {
		if named[n] {
			out = append(out, uint16(n))
		}
	}
	return out
}
