package mode

import (
	"cmp"
	"slices"
	"sync"
)

// Rung is a mode on the inward or outward ladder from a placement. It differs from the rung below
// by one part.
type Rung struct {
	From  Placement
	Mode  Name
	To    Target // the target whose route fits; ToOutside: on the outward ladder
	Below Name   // "" at the bottom
	Part  string // what the rung below lacks, as a noun
	// ListedWith is the rung above which this one is listed; "": Below.
	ListedWith Name
	// Unseen means that no hop shows the part: it is in rules, other ports of the bridge or a
	// device's mode.
	Unseen bool
}

// PartOn returns the part. ruled means that the ladder is measured on a real machine with Docker.
// The part then omits Docker's rules, which apply to every mode there, and the network card, which
// toll does not change.
func (r Rung) PartOn(ruled bool) string {
	switch {
	case ruled && r.Part == dockersRules:
		return "a container around the server, with the machine's network (Docker's rules apply to both)"
	case ruled && r.Part == cardOnBridge:
		return "a bridge next to Docker's, without Docker's rules for networks"
	}
	return r.Part
}

const (
	dockersRules = "Docker's rules on the machine"
	proxyForNAT  = "docker-proxy instead of NAT"
	cardOnBridge = "the machine's network card as a port of the bridge"
	ovsForBridge = "Open vSwitch instead of the Linux bridge"
	netkitPair   = "a netkit pair instead of the veth pair and its bridge, without the DNS server's rules"
	netkitPairs  = "netkit pairs instead of veth pairs and bridges, without the DNS server's rules"
	dnsRules     = "connection tracking in each container for the rules of Docker's DNS server"
	natOut       = "routing and NAT of the container's address (MASQUERADE) instead of the card as a port of the bridge"
	ingressMesh  = "Swarm's routing mesh: IPVS in a network namespace of its own, and an overlay's bridge"
)

// side is where a ladder begins. out is ToOutside or ToOutside6, or "" for the inward ladder.
type side struct {
	from Placement
	out  Target
}

func sideOf(p Placement, t Target) side {
	if !t.Outside() {
		t = ""
	}
	return side{p, t}
}

// ladders holds a list for each ladder, in the catalogue's order and with each rung after the one
// below it. The ladders are made on demand, because workers need none and a run starts hundreds of
// them.
var ladders = sync.OnceValue(growLadders)

func growLadders() map[side][]Rung {
	out := map[side][]Rung{}
	for _, p := range Placements() {
		for _, t := range []Target{"", ToOutside, ToOutside6} {
			out[side{p, t}] = climb(side{p, t}, "", 0)
		}
	}
	return out
}

// climb returns the rungs above below, each followed by those above it. It limits the depth to the
// number of modes, because a deeper rung would be above itself.
func climb(at side, below Name, depth int) []Rung {
	var out []Rung
	for _, m := range catalogue {
		for _, r := range m.Rungs {
			if at.out.Six() {
				r.To = r.To.Over6()
			}
			if _, ok := m.Route(r.From, r.To); !ok || sideOf(r.From, r.To) != at {
				continue
			}
			if cmp.Or(r.ListedWith, r.Below) == below && depth < len(catalogue) {
				r.Mode = m.Name
				out = append(append(out, r), climb(at, m.Name, depth+1)...)
			}
		}
	}
	return out
}

// Ladder returns every rung of a ladder from p, each after the rung below it: of the outward ladder
// in that family if t is ToOutside or ToOutside6, else of the inward one.
func Ladder(p Placement, t Target) []Rung { return slices.Clone(ladders()[sideOf(p, t)]) }

// FindRung returns the rung of n on the ladder from p in t's direction.
func FindRung(p Placement, t Target, n Name) (r Rung, ok bool) {
	for _, r := range ladders()[sideOf(p, t)] {
		if r.Mode == n {
			return r, true
		}
	}
	return Rung{}, false
}

// Climb returns the rungs from the bottom of the ladder from p in t's direction to each of the
// modes. It ignores modes without a rung there.
func Climb(p Placement, t Target, to []Name) []Rung {
	need := map[Name]bool{}
	for _, n := range to {
		for r, ok := FindRung(p, t, n); ok; r, ok = FindRung(p, t, r.Below) {
			need[r.Mode] = true
		}
	}
	return slices.DeleteFunc(Ladder(p, t), func(r Rung) bool { return !need[r.Mode] })
}
