package analysis

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/mesh"
)

// addRates says how much is sent again of what passes what is at fault, each way.
func (x *MeshFault) addRates(fit *mesh.Fit, of mesh.Fault) {
	x.Low, x.High = number(mesh.Rate(fit.Level*of.Low)), number(mesh.Rate(fit.Level*of.High))
	i := of.Nodes[0]
	switch of.Kind {
	case mesh.Link, mesh.LinkWay:
		x.RateOut, x.RateIn = number(mesh.Rate(fit.Slowness(i, of.Nodes[1]))), number(mesh.Rate(fit.Slowness(of.Nodes[1], i)))
	case mesh.Apart:
		x.RateOut = number(mesh.Rate(fit.Level * of.Factor))
	default:
		x.RateOut, x.RateIn = number(mesh.Rate(fit.Level*fit.Out[i].Factor)), number(mesh.Rate(fit.Level*fit.In[i].Factor))
	}
}

// loses says how much is sent again.
func (m *Mesh) loses(x MeshFault) string {
	typical := Percent(m.Metrics[RetransmissionRate].Typical)
	switch x.Kind {
	case FaultLink:
		back := ""
		if x.RateIn != nil {
			back = ", " + Percent(*x.RateIn) + " on the way back"
		}
		return fmt.Sprintf("of what %s sends to %s %s is retransmitted%s, where %s is typical (%d of %d visits)",
			x.Nodes[0], x.Nodes[1], Percent(*x.RateOut), back, typical, x.Slow, x.Of)
	case FaultGroup:
		return fmt.Sprintf("of what passes between them and the others %s is retransmitted, where %s is typical (%d of %d links)",
			Percent(*x.RateOut), typical, x.Slow, x.Of)
	}
	return fmt.Sprintf("of what it sends %s is retransmitted, and %s of what it receives, where %s is typical (%d of %d links)",
		Percent(*x.RateOut), Percent(*x.RateIn), typical, x.Slow, x.Of)
}

// Percent is a share in words.
func Percent(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) }

// troubles is what the faults of one subject are: that it is slow, that it loses
// packets, or both. What it loses is the last of its faults.
func troubles(faults []MeshFault, slow, loses string) string {
	switch n := len(faults); {
	case faults[n-1].Metric != RetransmissionRate:
		return slow
	case n == 1:
		return loses
	}
	return slow + " and " + loses
}

// nothingLost says that no link loses packets, as far as that is known.
func (m *Mesh) nothingLost() string {
	x := m.Metrics[RetransmissionRate]
	if x.NamedFrom == nil {
		return ""
	}
	return fmt.Sprintf(" Nothing is named as losing packets: that takes %s retransmitted, where %s is typical.", Percent(*x.NamedFrom), Percent(x.Typical))
}
