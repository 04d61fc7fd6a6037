package comparison

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// OfCells returns what the judged cells show that modes cost from each place, and what is not
// certain yet. It claims no more than the verdicts do. otherwise is set for a question other than
// the choice of a mode.
func OfCells(r *analysis.Report, otherwise bool) (out, unsure []analysis.Finding) {
	all := placesOf(r)
	advised := !otherwise && r.Plan.Baseline == string(mode.Host) &&
		!slices.ContainsFunc(all, func(p place) bool { return len(p.isolated()) == 0 })
	for _, p := range all {
		if advised {
			out = append(out, p.advice()...)
		} else {
			out = append(out, p.byLoad()...)
		}
	}
	return append(out, limits(r)...), undecided(r)
}

type place struct {
	r      *analysis.Report
	from   mode.Placement
	on     string
	routes []route
}

type route struct {
	mode  mode.Mode
	label string
	cells []analysis.Cell
}

// placesOf groups the cells that have a ratio by place and route, without tuned cells and crowds.
func placesOf(r *analysis.Report) []place {
	var out []place
	for _, c := range r.Cells {
		m, known := mode.Find(c.Mode)
		if c.Baseline || c.Tune != "" || c.Shape.Crowd() || !known ||
			c.Metrics[c.Primary].Ratio == nil {
			continue
		}
		at := slices.IndexFunc(out, func(p place) bool { return p.from == c.From && p.on == c.On })
		if at < 0 {
			at = len(out)
			out = append(out, place{r: r, from: c.From, on: c.On})
		}
		i := slices.IndexFunc(out[at].routes, func(x route) bool { return x.label == c.Label() })
		if i < 0 {
			i = len(out[at].routes)
			out[at].routes = append(out[at].routes, route{mode: m, label: c.Label()})
		}
		out[at].routes[i].cells = append(out[at].routes[i].cells, c)
	}
	return out
}

func (p place) usual(name mode.Name) (x route, ok bool) {
	for _, r := range p.routes {
		switch {
		case r.mode.Name != name:
		case r.cells[0].To == mode.ToLoopback:
			return r, true
		case !ok:
			x, ok = r, true
		}
	}
	return x, ok
}

func (p place) byLoad() (out []analysis.Finding) {
	for _, of := range analysis.Distinct(p.r.Cells, func(c analysis.Cell) string {
		return c.Load + "\x00" + c.Pin
	}) {
		f := analysis.Finding{Code: Compared, From: p.from, On: p.on}
		for _, x := range p.routes {
			for _, c := range x.cells {
				if c.Load+"\x00"+c.Pin == of {
					f.Load, f.Pin = c.Load, c.Pin
					f.Cells = append(f.Cells, p.r.At(c.Cell))
				}
			}
		}
		if len(f.Cells) > 0 {
			out = append(out, f)
		}
	}
	return out
}
