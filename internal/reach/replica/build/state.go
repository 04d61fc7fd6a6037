package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/ipset"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// announced is a parameter that dial.Net sets, and that has no effect on scans.
const announced = "net/ipv4/conf/all/arp_announce"

// reread reads what a command may have changed in namespaces of the copy, without the rules; see
// readRules. In those of which something other than parameters has changed, it reads all.
func (c *machine) reread(ctx context.Context, which, moved []int) error {
	if c.same != nil {
		c.same() // which reads what changes here
		c.same = nil
	}
	c.changed = append(c.changed, moved...)
	for _, i := range moved {
		err := c.spaces[i].Do(func() error { return c.readNetwork(ctx, i, &c.from.Spaces[i]) })
		if err != nil {
			return fmt.Errorf("read the copy again: %w", err)
		}
	}
	settings, spaces := make([]map[string]string, len(which)), make([]*netns.NS, len(which))
	for k, i := range which {
		spaces[k] = c.spaces[i]
	}
	err := inEach(spaces, func(k int) error {
		settings[k] = readSettings(c.from.Spaces[which[k]].Links)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the copy again: %w", err)
	}
	for k, i := range which {
		changed := slices.Contains(moved, i)
		before := maps.Clone(c.from.Spaces[i].Sysctls)
		if value, ok := settings[k][announced]; ok && before != nil {
			before[announced] = value
		}
		if changed || !maps.Equal(before, settings[k]) {
			c.scans = nil
		}
		c.from.Spaces[i].Sysctls = settings[k]
	}
	if len(moved) == 0 {
		return nil
	}
	return c.surveyAgain()
}

// surveyAgain gives the other machines the networks that commands made, and the routers that new
// routes name.
func (c *machine) surveyAgain() error {
	now := surveyed(c.from)
	maps.Copy(now.taken, c.survey.taken)
	now.segments, now.trunks = c.survey.segments, c.survey.trunks
	c.survey = now
	for _, s := range now.segments {
		own, gates := s.own, s.gates
		s.roots, s.own, s.gates = nil, nil, nil
		add := func(at device) {
			root, ok := now.roots[at]
			if !ok || slices.Contains(s.roots, root) {
				return
			}
			s.roots = append(s.roots, root)
			s.own, s.gates = append(s.own, now.ownAt(root)...), append(s.gates, now.gatesAt(root)...)
		}
		for i, card := range s.cards {
			links := c.from.Spaces[s.space].Links
			at := slices.IndexFunc(links, func(l link.Saved) bool { return l.Index == card.Index })
			if at >= 0 {
				s.cards[i] = links[at]
				add(device{s.space, card.Index})
			}
		}
		for _, at := range s.joined {
			add(at)
		}
		if len(s.roots) == 0 || slices.Equal(own, s.own) && slices.Equal(gates, s.gates) {
			continue
		}
		if err := c.settle(s); err != nil {
			return fmt.Errorf("give other machines the network of %s: %w", s.cards[0].Name, err)
		}
	}
	return nil
}

// readSettings reads the parameters of the namespace in which it is called, and of its devices.
func readSettings(of []link.Saved) map[string]string {
	var names []string
	for _, l := range of {
		names = append(names, l.Name)
	}
	return sysctl.ReadAll(names)
}

// readNetwork reads all but the parameters and the rules of the namespace in which it is called.
func (c *machine) readNetwork(ctx context.Context, space int, s *replica.Space) error {
	found, err := link.ReadLinks()
	if err != nil {
		return err
	}
	switch stopped, err := c.stopTrees(ctx, space, found); {
	case err != nil:
		return err
	case stopped:
		if found, err = link.ReadLinks(); err != nil {
			return err
		}
	}
	maps.DeleteFunc(c.runs, func(at device, _ bool) bool { // those that need not be awaited any more
		return at.space == space && !slices.ContainsFunc(found, func(l link.Saved) bool {
			return l.Index == at.index && l.Up && (l.Lower || l.Kind != "bridge")
		})
	})
	s.Links = c.merge(space, s.Links, found)
	return cmp.Or(s.ReadNetwork()...)
}

// Doubts lists the rules that commands made and that cannot be copied: those of the machine are
// replaced in the variants of copies.
func (c *machine) Doubts() (out []replica.Doubts, err error) {
	read, err := c.readRules()
	if err != nil {
		return nil, err
	}
	macs := c.from.MACs()
	for i := range c.from.Spaces {
		s := &c.from.Spaces[i]
		rules := slices.DeleteFunc(s.Uncertain(macs), func(d xtables.Doubt) bool {
			if d.Table == replica.Policy { // those of the machine are replaced when they are read again
				return !slices.Contains(c.changed, i)
			}
			if slices.ContainsFunc(s.Legacy, func(t xtables.Saved) bool { return t.Table() == d.Table }) {
				return !read[i].legacy
			}
			return !read[i].nft
		})
		if len(rules) > 0 {
			out = append(out, replica.Doubts{Space: i, Rules: rules})
		}
	}
	return out, nil
}

// Assume replaces the rules of Doubts. The copy keeps knowing them as they were made.
func (c *machine) Assume(v replica.Variant) error {
	c.scans = nil
	if _, err := c.readRules(); err != nil {
		return err
	}
	macs := c.from.MACs()
	for i := range c.from.Spaces {
		s := &c.from.Spaces[i]
		if len(s.Uncertain(macs)) == 0 {
			continue
		}
		rules, legacy := s.Assume(v, macs)
		err := c.spaces[i].Do(func() error {
			_, err := rules.Replace()
			if slices.Contains(c.changed, i) {
				for _, r := range link.MakePolicy(s.AssumePolicy(v)) {
					err = errors.Join(err, r.Err)
				}
			}
			for _, t := range legacy {
				_, errLegacy := t.Restore()
				err = errors.Join(err, errLegacy)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("replace rules that cannot be copied: %w", err)
		}
	}
	return nil
}

// unread has what tells whether commands changed the rules of a namespace: those of before.
type unread struct {
	generation uint32
	legacy     []xtables.Table // without counters
}

// rulesNow reads the rules of the namespace in which it is called.
func rulesNow() (out unread, err error) {
	if out.generation, err = nft.Generation(); err != nil {
		return out, err
	}
	out.legacy, err = xtables.List()
	return out, err
}

// changed tells which rules of a namespace commands have changed.
type changed struct{ nft, legacy bool }

// readRules reads the rules that commands changed since they were read, and returns which these
// are, by namespace. The others stay as they are on the machine, also those that cannot be copied.
func (c *machine) readRules() (map[int]changed, error) {
	out := map[int]changed{}
	for i, before := range c.unread {
		s := &c.from.Spaces[i]
		err := c.spaces[i].Do(func() error {
			now, err := rulesNow()
			if err != nil {
				return err
			}
			old, is := *s, changed{now.generation != before.generation,
				!slices.Equal(now.legacy, before.legacy)}
			if is.nft {
				s.Nft, err = nft.Save()
			}
			var noLegacy, noSets error
			if is.legacy {
				s.Legacy, noLegacy = xtables.Save()
			}
			s.Sets, noSets = ipset.Save()
			if len(c.scans) > 0 && (is.legacy || !reflect.DeepEqual(old.Sets, s.Sets) ||
				is.nft && !reflect.DeepEqual(old.Nft.Awake(), s.Nft.Awake())) {
				c.scans = nil
			}
			if _, has := c.first[i]; !has && (is.nft || is.legacy) {
				c.first[i] = old
			}
			out[i] = is
			return cmp.Or(err, noLegacy, noSets)
		})
		if err != nil {
			return nil, fmt.Errorf("read the copy's rules again: %w", err)
		}
		if random(*s) {
			c.times = enough
		}
		delete(c.unread, i)
	}
	return out, nil
}

// merge returns the devices found in a namespace of the copy. Those of the machine keep what is
// different in a copy: the kind of cards, and where their other ends are. It leaves out the ends of
// new containers.
func (c *machine) merge(space int, old, found []link.Saved) (out []link.Saved) {
	for _, l := range found {
		if c.outer[device{space, l.Index}] {
			continue
		}
		i := slices.IndexFunc(old, func(o link.Saved) bool {
			return o.Name == l.Name && o.Index == l.Index
		})
		if i < 0 {
			l.ParentSpace = c.spaceOf(l.ParentSpace)
			out = append(out, l)
			continue
		}
		now := old[i]
		if now.Up != l.Up {
			now.Up, now.Lower = l.Up, l.Lower
		}
		now.Master, now.MTU, now.MAC, now.Slave, now.VLANs = l.Master, l.MTU, l.MAC, l.Slave, l.VLANs
		out = append(out, now)
	}
	return out
}

// spaceOf returns the index of the namespace that has the number in the calling thread's.
func (c *machine) spaceOf(number int) int {
	if number < 0 {
		return number
	}
	for i, fd := range c.files {
		if n, err := link.NumberOf(fd); err == nil && n == number {
			return i
		}
	}
	return link.Elsewhere
}

// Now returns the copy's devices, addresses, routes and parameters, and what Machine.Singled
// returns, with the containers in which commands changed anything but parameters.
func (c *machine) Now() (out []replica.Space, singled []int, err error) {
	if _, err := c.readRules(); err != nil {
		return nil, nil, err
	}
	for _, s := range c.from.Spaces {
		out = append(out, replica.Space{Links: s.Links, Addresses: s.Addresses, Nexthops: s.Nexthops,
			Routes: s.Routes, Sysctls: s.Sysctls})
	}
	singled = slices.Concat(c.from.Singled(), c.changed, slices.Collect(maps.Keys(c.first)))
	slices.Sort(singled)
	return out, slices.DeleteFunc(slices.Compact(singled), func(i int) bool { return i == 0 }), nil
}

// Text returns the texts of a namespace's rules.
func (c *machine) Text(ctx context.Context, space int) ([]replica.RuleText, error) {
	if space < 0 || space >= len(c.spaces) {
		return nil, fmt.Errorf("there is no namespace %d", space)
	}
	s := c.from.Spaces[space]
	s.Text = nil
	err := s.ReadTextIn(ctx, c.spaces[space].Do)
	return s.Text, err
}
