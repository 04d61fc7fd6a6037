package replica

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/ipset"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

// doubt is a reason why the copy may differ from the machine.
type doubt struct {
	device string // "": for all packets of the namespace
	text   string
}

func (s *Session) findDoubts() (out [][]doubt, at []services) {
	out, at = make([][]doubt, len(s.machine.Spaces)), make([]services, len(s.machine.Spaces))
	for i, space := range s.machine.Spaces {
		for _, u := range space.Unknown {
			if u.At.IsValid() {
				at[i].add(u)
			} else {
				out[i] = append(out[i], doubt{u.Device, u.What})
			}
		}
		at[i].moves = len(at[i].all) > 0 && space.Redirects("")
		// A copy has no bonds, and no VLANs of VLANs, so packets do not cross what is below them.
		for _, l := range space.Links {
			on, ok := link.ByIndex(space.Links, l.Master)
			if ok && on.Kind != "bridge" && on.Kind != "vrf" && space.Nft.Hooks(l.Name) {
				out[i] = append(out[i], doubt{device: l.Name,
					text: fmt.Sprintf("rules at %s, a port of %s", l.Name, on.Name)})
			}
			if below := s.machine.ruledBelow(i, l); below != "" {
				out[i] = append(out[i], doubt{device: l.Name,
					text: fmt.Sprintf("rules at %s, below %s", below, l.Name)})
			}
		}
	}
	for _, l := range s.lackOfCopies() {
		if l.Space >= 0 && l.Space < len(out) {
			out[l.Space] = append(out[l.Space], doubt{device: l.Device, text: l.What + ": " + l.Why})
		}
	}
	for i, doubts := range s.absent.doubts {
		out[i] = append(out[i], doubts...)
	}
	return out, at
}

// Merge adds those outcomes of other to a that a lacks, and reports whether the answers differ.
// They do not if rules choose at random, and other only has fewer of the servers.
func Merge(a *Answer, other Answer) bool {
	same := func(o Outcome) func(Outcome) bool {
		return func(p Outcome) bool {
			return o.Got == p.Got && o.Socket == p.Socket && o.Seen == p.Seen && o.From == p.From &&
				slices.Equal(o.Relays, p.Relays)
		}
	}
	n, own := 0, len(a.Outcomes)
	for _, o := range other.Outcomes {
		if slices.ContainsFunc(a.Outcomes, same(o)) {
			n++
			continue
		}
		a.Outcomes = append(a.Outcomes, o)
	}
	if a.Lost == nil {
		a.Lost = other.Lost
	}
	fewer := n > 0 && own == len(a.Outcomes) && !slices.ContainsFunc(a.Outcomes,
		func(o Outcome) bool { return o.Got != Connected })
	return n < len(a.Outcomes) && !fewer
}

// unsure returns the doubts about the answer to a dial. The rules that cannot be copied are among
// them if the copies' answers differ, or if two copies do not show all that the rules may do.
func (s *Session) unsure(ctx context.Context, d Dial, a Answer, differ bool) []string {
	var out []string
	crossed := s.crossed(d, a)
	if len(a.Steps) > 0 { // packets of other connections of the client may take other devices
		for i, devices := range s.crossed(d, Answer{Outcomes: a.Outcomes}) {
			crossed[i] = append(crossed[i], devices...)
		}
	}
	met := map[int]func(xtables.Doubt) bool{}
	for i := range crossed {
		relayed := s.relays(i, a) // perhaps by another family
		begins := relayed || d.Space == i && d.Card == "" && d.Bridge == ""
		family := familyOf(d.To.Addr().Unmap().Is6())
		met[i] = func(r xtables.Doubt) bool {
			return differ || (begins || !r.Begins) &&
				(relayed || r.Table != Policy || r.Chain == family)
		}
	}
	undecided, passed := s.undecided(met), s.passed(a)
	for i, devices := range crossed {
		var all map[string]bool
		for _, why := range s.doubts[i] {
			if why.device != "" && all == nil {
				all = s.withBeside(i, devices)
			}
			if why.device == "" || all[why.device] {
				out = append(out, why.text)
			}
		}
		out = append(out, s.servicesMet(i, passed, d, a)...)
		out = append(out, s.uncertain(ctx, i, met[i], !differ && !undecided)...)
	}
	for _, x := range passed {
		if x.Doubt != "" {
			out = append(out, x.Doubt)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// withBeside returns the named devices of a namespace and those beside them.
func (s *Session) withBeside(space int, devices []string) map[string]bool {
	type place struct {
		space int
		name  string
	}
	out := map[string]bool{}
	for _, name := range devices {
		if out[name] = true; name == "" {
			continue
		}
		at := place{space, name}
		known, ok := s.besides.Load(at)
		if !ok {
			known = s.machine.beside(space, name)
			s.besides.Store(at, known)
		}
		for _, other := range known.([]string) { //nolint:forcetypeassert // nothing else is stored
			out[other] = true
		}
	}
	return out
}

// undecided reports whether the namespaces' rules that cannot be copied, if packets meet them, may
// do what happens in neither copy: in both, one that alters packets is tried with the others in one
// combination only.
func (s *Session) undecided(met map[int]func(xtables.Doubt) bool) bool {
	n, alters := 0, false
	for i, meets := range met {
		for _, d := range slices.Concat(s.rules[i], s.added[i]) {
			if meets(d) {
				n++
				alters = alters || d.Effect == xtables.Alters
			}
		}
	}
	return alters && n > 1
}

// relays reports whether a docker-proxy in a namespace may have connected further.
func (s *Session) relays(space int, a Answer) bool {
	is := func(x *Socket) bool { return x.Space == space && x.Relay.IsValid() }
	if len(a.Outcomes) > 0 && !slices.ContainsFunc(a.Outcomes, Outcome.Doubtful) {
		return slices.ContainsFunc(s.passed(a), is)
	}
	return slices.ContainsFunc(s.sockets, func(x Socket) bool { return is(&x) })
}

// passed returns the sockets of the relays and servers that connections reached.
func (s *Session) passed(a Answer) (out []*Socket) {
	add := func(i int) {
		if i >= 0 && i < len(s.sockets) {
			out = append(out, &s.sockets[i])
		}
	}
	for _, o := range a.Outcomes {
		for _, i := range o.Relays {
			add(i)
		}
		add(o.Socket)
	}
	return out
}

// crossed returns the devices that packets crossed, by namespace. Without Steps these are all that
// they may have crossed: the devices of both ends' namespaces with their other ends, and the
// machine's.
func (s *Session) crossed(d Dial, a Answer) map[int][]string {
	out := map[int][]string{d.Space: {d.Card, d.Bridge}}
	for _, x := range s.passed(a) {
		out[x.Space] = append(out[x.Space], "")
	}
	for _, step := range a.Steps {
		if step.Space >= 0 && step.Space < len(s.machine.Spaces) {
			out[step.Space] = append(out[step.Space], step.Device)
		}
	}
	if l := a.Lost; l != nil && l.Space >= 0 && l.Space < len(s.machine.Spaces) {
		out[l.Space] = append(out[l.Space], l.Device)
	}
	stays := len(out) == 1 && d.Card == "" && d.Bridge == "" && len(a.Outcomes) > 0 &&
		a.Outcomes[0].Got != Timeout
	if len(a.Steps) > 0 || stays {
		return out
	}
	for _, i := range slices.Collect(maps.Keys(out)) {
		if i == 0 {
			continue
		}
		for _, l := range s.machine.Spaces[i].Links {
			out[i] = append(out[i], l.Name)
			if at, end := s.machine.Other(i, l); end != nil {
				out[at] = append(out[at], end.Name)
			}
		}
	}
	out[0] = append(out[0], "")
	return out
}

// uncertain describes the rules of a namespace that packets meet and whose effect may differ in a
// copy, or only those whose effect is open.
func (s *Session) uncertain(ctx context.Context, space int, meets func(xtables.Doubt) bool,
	open bool) (out []string) {
	of := &s.machine.Spaces[space]
	leave := func(d xtables.Doubt) bool { return !meets(d) || open && d.Effect != xtables.Open }
	if s.machine.here && slices.ContainsFunc(s.rules[space], func(d xtables.Doubt) bool {
		return !leave(d)
	}) {
		_ = s.machine.ReadText(ctx, space) // after an error, rules are described by number
	}
	for _, d := range s.rules[space] {
		if !leave(d) {
			text := of.TextOf(RuleText{Table: d.Table, Chain: d.Chain, Number: d.Number})
			out = append(out, fmt.Sprintf("%s (%s cannot be copied)", cmp.Or(text, placeOf(d)), d.Word))
		}
	}
	for _, d := range s.added[space] {
		if !leave(d) {
			out = append(out, fmt.Sprintf("%s (%s cannot be tried in a copy)", placeOf(d), d.Word))
		}
	}
	return out
}

func placeOf(d xtables.Doubt) string {
	if d.Table == Policy {
		return fmt.Sprintf("policy rule %d", d.Number)
	}
	return fmt.Sprintf("rule %d of chain %s in table %s", d.Number, d.Chain, d.Table)
}

// Uncertain lists the rules that may match other packets in a copy, which has devices with the
// hardware addresses.
func (s *Space) Uncertain(macs map[string]bool) []xtables.Doubt {
	known := s.known(macs)
	out := s.Nft.Doubts(known)
	for _, t := range s.Legacy {
		out = append(out, t.Doubts(known)...)
	}
	for _, m := range s.Policy {
		if n, all, ok := link.PolicyOfUsers(m); ok {
			d := xtables.Doubt{Table: Policy, Chain: familyOf(m.Data[0] == unix.AF_INET6), Number: n,
				Word: "uidrange", Effect: xtables.Alters}
			if all.Data == nil {
				d.Effect = xtables.Open
			}
			out = append(out, d)
		}
	}
	begins := func(d xtables.Doubt) bool { return d.Begins }
	if slices.ContainsFunc(out, begins) && (s.Nft.Untracks() ||
		slices.ContainsFunc(s.Legacy, xtables.Saved.Untracks)) {
		// of a connection that is tracked one way only, an answer may count as the beginning
		for i := range out {
			out[i].Begins = false
		}
	}
	return out
}

// TPROXY reports whether rules of the machine's own namespace lead packets to transparent sockets.
func (m *Machine) TPROXY() bool {
	if len(m.Spaces) == 0 || !m.Spaces[0].mentions("TPROXY", "tproxy") {
		return false
	}
	return slices.ContainsFunc(m.Spaces[0].Uncertain(m.MACs()),
		func(d xtables.Doubt) bool { return d.Word == "TPROXY" })
}

// mentions reports whether the bytes of a rule contain one of the words.
func (s *Space) mentions(words ...string) bool {
	in := func(b []byte) bool {
		return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(b, []byte(w)) })
	}
	return slices.ContainsFunc(s.Nft.Messages, func(m raw.Message) bool { return in(m.Data) }) ||
		slices.ContainsFunc(s.Legacy, func(t xtables.Saved) bool { return in(t.Entries) })
}

// Policy is the Doubt.Table of policy rules. Its chains are the families.
const Policy = "policy"

func familyOf(six bool) string {
	if six {
		return "ip6"
	}
	return "ip"
}

// AssumePolicy returns the policy rules of the namespace. Those for certain users are left out or,
// in the strict copy, are for all: stand-ins are not of the users.
func (s *Space) AssumePolicy(v Variant) (out []raw.Message) {
	for _, m := range s.Policy {
		if _, all, ok := link.PolicyOfUsers(m); ok && (v == Lenient || all.Data == nil) {
			continue
		} else if ok {
			m = all
		}
		out = append(out, m)
	}
	return out
}

// Assume returns the rules with those of Uncertain replaced as the variant requires.
func (s *Space) Assume(v Variant, macs map[string]bool) (nft.Saved, []xtables.Saved) {
	legacy := slices.Clone(s.Legacy)
	known := s.known(macs)
	for i, t := range legacy {
		legacy[i] = t.Assume(v == Lenient, known)
	}
	return s.Nft.Assume(v == Lenient, known), legacy
}

func (s *Space) known(macs map[string]bool) xtables.Known {
	out := xtables.Known{MACs: macs, Sets: map[uint16]bool{}, Foreign: map[uint16]bool{}}
	if len(s.Sets) == 0 {
		return out
	}
	filled := s.Nft.Filled()
	for _, t := range s.Legacy {
		filled = append(filled, t.Filled()...)
	}
	for _, n := range filled {
		out.Sets[n] = true
	}
	ipset.AddLists(s.Sets, out.Sets)
	ipset.AddForeign(s.Sets, macs, out.Foreign)
	ipset.AddLists(s.Sets, out.Foreign)
	return out
}

// MACs returns the hardware addresses of the devices that a copy has, too, as strings of bytes. Its
// other machines have others than the real ones.
func (m *Machine) MACs() map[string]bool {
	out := map[string]bool{}
	for _, s := range m.Spaces {
		for _, l := range s.Links {
			if len(l.MAC) > 0 {
				out[string(l.MAC)] = true
			}
		}
	}
	return out
}
