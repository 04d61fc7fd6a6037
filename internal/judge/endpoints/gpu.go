package endpoints

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// mergeGPU adds up how busy the GPU was in a route's visits. It returns nil if it is not known.
func mergeGPU(visits []*sample.Visit) (out *sample.GPU) {
	for _, v := range visits {
		switch g := v.GPU; {
		case g == nil:
		case out == nil:
			sum := *g
			out = &sum
		default:
			out.Slow.Add(g.Slow)
			out.Rest.Add(g.Rest)
			out.Over = max(out.Over, g.Over)
			if out.Device != g.Device || out.Engine != g.Engine {
				out.Device, out.Engine = "", "" // the work moved
			}
		}
	}
	return out
}

// processor returns sentences on whether the server's GPU was busy during slow gaps, or "" if there
// was none or that is not known.
func processor(r *analysis.Report) string {
	var by reasons
	for _, c := range r.Cells {
		if c.GPU != nil && c.GPU.Slow.Time > 0 {
			by.add(busyGPU(*c.GPU), c.Label())
		}
	}
	return strings.Join(by.sentences("Over %s, %s."), " ")
}

// busyGPU returns a clause.
func busyGPU(g sample.GPU) string {
	gaps, by := units.Plural(g.Slow.Gaps, "slow gap"), "DRM's counters"
	if g.By == sample.GPUByNvidiaSMI {
		gaps += " of more than 1 s"
		by = "nvidia-smi, which averages over up to 1 s"
	}
	text := fmt.Sprintf("the server's GPU was busy for %s of the time of %s", percent(g.Slow), gaps)
	if g.Rest.Time > 0 {
		text += fmt.Sprintf(" and %s of the rest", percent(g.Rest))
	}
	return text + " (by " + by + ")"
}

func percent(t sample.GPUTime) string { return fmt.Sprintf("%.0f %%", 100*t.Share()) }
