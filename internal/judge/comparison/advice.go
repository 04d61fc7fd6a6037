package comparison

import (
	"cmp"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Dear is the least cost at which a mode is advised against: certainly a third less throughput,
// half as much more latency, or half as much more CPU time on a full link.
const Dear = 1.5

// share is what all routes of a place are measured by: a load on a CPU placement.
type share struct{ load, pin string }

// advice returns a finding for each mode, on whether to keep or avoid it. Each mode is judged by
// its usual route, and is avoided only if it certainly costs more than each that is kept.
func (p place) advice() (out []analysis.Finding) {
	by, decided := map[string][]route{}, map[share]bool{}
	for _, x := range p.isolated() {
		code := Keep
		switch cost, known := x.cost(); {
		case cost >= Dear:
			code = Avoid
		case x.varies():
			code = Varies
		case !known:
			code = Open
		}
		by[code] = append(by[code], x)
		for _, c := range x.cells {
			if c.Verdict() != stats.Unclear {
				decided[share{c.Load, c.Pin}] = true
			}
		}
	}
	byCost := func(a, b route) int {
		return cmp.Or(cmp.Compare(a.needy(), b.needy()),
			cmp.Compare(a.mean(decided), b.mean(decided)))
	}
	dear := by[Avoid]
	slices.SortStableFunc(dear, byCost)
	by[Avoid] = nil
	for _, x := range dear {
		code := Avoid
		if slices.ContainsFunc(by[Keep], x.mayCostNoMoreThan) {
			code = Keep
		}
		by[code] = append(by[code], x)
	}
	for _, code := range []string{Keep, Avoid, Varies, Open} {
		slices.SortStableFunc(by[code], byCost)
		for _, x := range by[code] {
			f := analysis.Finding{Code: code, From: p.from, On: p.on}
			for _, c := range x.cells {
				f.Cells = append(f.Cells, p.r.At(c.Cell))
			}
			if p.r.Plan.ManyPins() {
				f.Pin = p.r.Plan.Pins[max(0, p.leading(x))].Name
			}
			if code == Avoid {
				f.What = p.remedy(x)
			}
			out = append(out, f)
		}
	}
	return out
}

func (x route) needy() int { return min(1, len(x.mode.Needs)) }

func (p place) isolated() []route {
	loads := 0
	for _, x := range p.routes {
		loads = max(loads, len(x.cells))
	}
	var out []route
	for _, x := range p.routes {
		if u, _ := p.usual(x.mode.Name); x.mode.PortIsolation() && len(x.cells) == loads &&
			u.label == x.label {
			out = append(out, x)
		}
	}
	return out
}

func (x route) varies() bool {
	return slices.ContainsFunc(x.cells, func(c analysis.Cell) bool {
		r, _ := Deciding(c)
		return r != nil && r.Varies
	})
}

// cost returns the largest certain factor of a route's cost relative to the baseline, or 1 for a
// route that certainly costs nothing. If every verdict is unclear, known is false.
func (x route) cost() (factor float64, known bool) {
	factor = 1
	for _, c := range x.cells {
		r, higher := Deciding(c)
		switch c.Verdict() {
		case stats.Worse:
			known = true
			if higher {
				factor = max(factor, 1/r.High)
			} else {
				factor = max(factor, r.Low)
			}
		case stats.Same, stats.Better:
			known = true
		}
	}
	return factor, known
}

// mayCostNoMoreThan reports whether no cell of x is certainly dearer than y's of the same load.
func (x route) mayCostNoMoreThan(y route) bool {
	for i, c := range x.cells {
		d := y.cells[i]
		a, higher := Deciding(c)
		b, same := Deciding(d)
		if c.Load != d.Load || c.Pin != d.Pin || higher != same ||
			higher && a.High < b.Low || !higher && a.Low > b.High {
			return false
		}
	}
	return true
}

// mean returns the mean logarithm of a route's cost on the loads that are decided, or on all.
func (x route) mean(decided map[share]bool) float64 {
	sum, n, all := 0.0, 0, 0.0
	for _, c := range x.cells {
		toll := math.Log(c.Toll())
		all += toll
		if decided[share{c.Load, c.Pin}] {
			sum, n = sum+toll, n+1
		}
	}
	if n == 0 {
		return all / float64(len(x.cells))
	}
	return sum / float64(n)
}

func (x route) onPin(pin string) route {
	return route{cells: slices.DeleteFunc(slices.Clone(x.cells), func(c analysis.Cell) bool {
		return c.Pin != pin
	})}
}

// leading returns the index of the CPU placement that decides, or -1.
func (p place) leading(x route) int {
	cost, _ := x.cost()
	return slices.IndexFunc(p.r.Plan.Pins, func(pin sample.Pinning) bool {
		c, known := x.onPin(pin.Name).cost()
		return known && (cost < Dear || c > 1)
	})
}

// Deciding returns the ratio that decides a cell's verdict: of its CPU time if it fills a link.
func Deciding(c analysis.Cell) (r *analysis.Ratio, higher bool) {
	if cpu := c.FullCPU(); cpu != nil {
		return cpu, false
	}
	m := c.Metrics[c.Primary]
	return m.Ratio, m.Higher
}

// The remedies of Avoid.
const (
	ProxyOff      = "proxy-off"
	NetworkIPv6   = "network-ipv6"
	IptablesOn    = "iptables-on"
	DialContainer = "dial-container"
	DialOrFast    = "dial-container-or-fast"
)

// remedy returns what to do instead of a proxy on the route, or "".
func (p place) remedy(x route) string {
	c := x.cells[0]
	m, _ := mode.Find(c.Mode)
	switch {
	case !slices.Contains(c.Hops, string(mode.HopProxy)) || c.On == sample.Swarm:
		return ""
	case m.Rootless:
		return ProxyOff
	case c.From == mode.FromRemote || c.From == mode.FromRemoteContainer:
		// other machines have no route to the container's address
		if c.To == mode.ToAddress6 {
			return NetworkIPv6
		}
		return IptablesOn
	case c.From == mode.FromHost && (c.On == sample.Docker || p.r.Environment.RunsDocker()):
		return DialOrFast
	}
	return DialContainer
}
