package ports

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
)

type cell struct{ mode, from, to string }

// cellOf returns the cell of a comparison with the path's route. Its mode is "" if no mode has that
// route.
func cellOf(c Client, p Path) cell {
	from := map[Client]string{Loopback: "host", Loopback6: "host", OwnAddr: "host",
		Neighbour: "container", Remote: "remote"}[c]
	to := map[Client]string{Loopback: "loopback", Loopback6: "loopback6", OwnAddr: "address"}[c]
	if p.rootless() && p.Kind == ByProxy {
		if from == "container" {
			return cell{}
		}
		return cell{p.proxy.mode(), from, to}
	}
	switch p.Kind {
	case Direct:
		return cell{"host", from, ""}
	case ByProxy:
		return cell{"publish-proxy", from, to}
	case ByShortcut:
		return cell{"fast", from, to}
	case ByNAT, Hairpin:
		return cell{"publish-nat", from, to}
	}
	return cell{}
}

// rootless reports whether a relay of a rootless engine took the connection.
func (p *Path) rootless() bool { return p.proxy != nil && p.proxy.Rootless }

// mode returns the lab's mode of a rootless port, or "" if the lab has none or it is unknown.
func (p Proxy) mode() string {
	switch {
	case p.Program == Pasta, p.Program == Slirp4netns, p.Program == Rootlessport:
		return p.Program
	case p.name() != Rootlesskit:
	case p.Next != nil:
		return "rootless-publish"
	case !p.ends() && p.Space != "":
		return "rootless-publish-nat"
	}
	return ""
}

// Price adds to each path the costs of its kind from a judged results file.
func (r *Report) Price(file string, judged *analysis.Report) {
	r.Costs = &Costs{File: file, Baseline: judged.Plan.Baseline}
	for i := range r.Ports {
		for _, c := range clients {
			p, ok := r.Ports[i].Paths[c]
			want := cellOf(c, p)
			if !ok || want.mode == "" || r.Ports[i].Proto != "tcp" {
				continue
			}
			p.Cost = costs(want, judged)
			if lack := want.mode + " from " + want.from; p.Cost == nil &&
				!slices.Contains(r.Costs.Lacks, lack) {
				r.Costs.Lacks = append(r.Costs.Lacks, lack)
			}
			r.Ports[i].Paths[c] = p
		}
	}
}

func costs(want cell, judged *analysis.Report) []Cost {
	var out []Cost
	for _, c := range judged.Cells {
		if string(c.Mode) != want.mode || string(c.From) != want.from ||
			want.to != "" && string(c.To) != want.to ||
			c.Tune != "" || c.Shape.Crowd() || c.Point != "" {
			continue
		}
		if slices.ContainsFunc(out, func(o Cost) bool { return o.Load == c.Load }) {
			continue // another target than the mode's usual one, which comes first
		}
		cost := Cost{Mode: string(c.Mode), Load: c.Load, Metric: c.Primary}
		switch ratio := c.Metrics[c.Primary].Ratio; {
		case c.Baseline:
			cost.Ratio, cost.Text, cost.Verdict = 1, "100 %", "baseline"
		case ratio == nil:
			continue
		default:
			cost.Ratio, cost.Text, cost.Verdict = ratio.Median, ratio.String(),
				string(ratio.Verdict)
		}
		out = append(out, cost)
	}
	return out
}
