package mesh

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/judge/mesh/model"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func (x *Fault) addRates(fit *model.Fit, of model.Fault) {
	x.Low, x.High = number(model.Rate(fit.Level*of.Low)), number(model.Rate(fit.Level*of.High))
	i := of.Nodes[0]
	switch of.Kind {
	case model.Link, model.LinkWay:
		x.RateOut, x.RateIn = number(model.Rate(fit.Slowness(i, of.Nodes[1]))),
			number(model.Rate(fit.Slowness(of.Nodes[1], i)))
	case model.Apart:
		x.RateOut = number(model.Rate(fit.Level * of.Factor))
	default:
		x.RateOut, x.RateIn = number(model.Rate(fit.Level*fit.Out[i].Factor)),
			number(model.Rate(fit.Level*fit.In[i].Factor))
	}
}

func (m *Mesh) loses(x Fault) string {
	typical := percent(m.Metrics[workload.RetransmissionRate].Typical)
	switch x.Kind {
	case FaultLink:
		back := ""
		if x.RateIn != nil {
			back = ", " + percent(*x.RateIn) + " in the reverse direction"
		}
		return fmt.Sprintf(
			"of what %s sends to %s %s is retransmitted%s, where %s is typical (%d of %d visits)",
			x.Nodes[0], x.Nodes[1], percent(*x.RateOut), back, typical, x.Slow, x.Of)
	case FaultGroup:
		return fmt.Sprintf(
			"of what passes between them and the others %s is retransmitted, where %s is typical (%d of %d links)",
			percent(*x.RateOut), typical, x.Slow, x.Of)
	}
	return fmt.Sprintf(
		"of what it sends %s is retransmitted, and %s of what it receives, where %s is typical (%d of %d links)",
		percent(*x.RateOut), percent(*x.RateIn), typical, x.Slow, x.Of)
}

func percent(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) }

func troubles(faults []Fault, slow, loses string) string {
	switch n := len(faults); {
	case faults[n-1].Metric != workload.RetransmissionRate:
		return slow
	case n == 1:
		return loses
	}
	return slow + " and " + loses
}

func (m *Mesh) nothingLost() string {
	x := m.Metrics[workload.RetransmissionRate]
	if x.NamedFrom == nil {
		return ""
	}
	return fmt.Sprintf(
		" No link is reported as losing packets: that needs %s retransmitted; %s is typical.",
		percent(*x.NamedFrom), percent(x.Typical))
}
