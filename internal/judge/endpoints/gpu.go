package endpoints

import (
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
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

// processor returns the routes on which it is known how busy the server's GPU was in slow gaps.
func processor(r *analysis.Report) []analysis.Finding {
	f := analysis.Finding{Code: GPUBusy}
	for i, c := range r.Cells {
		if c.GPU != nil && c.GPU.Slow.Time > 0 {
			f.Cells = append(f.Cells, i)
		}
	}
	return some(f)
}
