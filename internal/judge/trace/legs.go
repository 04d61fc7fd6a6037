package trace

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// legs are the usual parts of the network in the order in which rows have them, before others.
var legs = []string{sample.LegLoopback, sample.LegVeth, sample.LegBridge, sample.LegRouting}

func byLeg(a, b string) int {
	rank := func(name string) int {
		if k := slices.Index(legs, name); k >= 0 {
			return k
		}
		return len(legs)
	}
	return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
}

// onNetwork returns the name of a part of the network, with the devices' names if these are few,
// and not made up by a container engine, as a veth's are.
func (s *study) onNetwork(name string, i, b int) string {
	const few = 2
	if name == sample.LegVeth {
		return name
	}
	var devices []string
	for _, x := range append(s.cells[i].judged(), s.cells[b].judged()...) {
		for _, g := range x.Segments {
			if rowOf(g.SegmentKey) == rowNetwork && partOf(g.SegmentKey) == name && g.Device != "" &&
				!slices.Contains(devices, g.Device) {
				devices = append(devices, g.Device)
			}
		}
	}
	if len(devices) == 0 || len(devices) > few {
		return name
	}
	return name + " " + strings.Join(devices, ", ")
}

// undivided finds what keeps the network of cell i from being divided, or some of it: that the
// kernel noted the times of packets once for a bridge's port and the bridge, or that not all packets
// were kept.
func (s *study) undivided(i int) (out []Finding) {
	unkept, followed, stamped := 0, 0, false
	for _, x := range s.cells[i].judged() {
		unkept, followed = unkept+x.Unkept, followed+x.Followed
		stamped = stamped || x.Stamped
	}
	add := func(f analysis.Finding) {
		f.What = label(s.Series[i].Cell)
		out = append(out, Finding{Finding: f})
	}
	if stamped {
		add(analysis.Finding{Code: StampedOnce})
	}
	if unkept > 0 {
		add(analysis.Finding{Code: NotAllKept, N: unkept, Of: followed})
	}
	return out
}

// Divided returns the parts of a row that a table shows: those on the network if they are more than
// one, and take long enough to be of interest, or differ.
func (r Row) Divided() []Row {
	const least = 0.3e-6
	if r.Name != rowNetwork {
		return r.Parts
	}
	its := 0.0
	if r.Its != nil {
		its = *r.Its
	}
	differs := slices.ContainsFunc(r.Parts, func(p Row) bool { return p.Added.Known() })
	if len(r.Parts) < 2 || max(r.mine(), its) < least && !differs {
		return nil
	}
	return r.Parts
}
