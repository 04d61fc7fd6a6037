package truth

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// drawMinute returns an SVG of the intervals, readable on light and dark pages.
func drawMinute(rows []minuteRow, s scale, e sample.Environment) string {
	const (
		width, left, right = 720, 190, 24
		lineHeight, gap    = 22, 34
		top                = 58
	)
	low, high := 1.0, 1.0
	for _, r := range rows {
		for _, x := range []estimate{r.ours, r.their} {
			low, high = min(low, math.Exp(x.at-x.half)), max(high, math.Exp(x.at+x.half))
		}
	}
	const step = 0.1
	low, high = math.Floor(low/step)*step, math.Ceil(high/step)*step
	at := func(ratio float64) float64 {
		return left + (ratio-low)/(high-low)*(width-left-right)
	}
	var marks strings.Builder
	y := top
	for _, r := range rivals {
		named := false
		for _, tool := range []string{"toll", r.name} {
			first := true
			for _, row := range rows {
				if row.load != r.load {
					continue
				}
				if !named {
					y += gap
					fmt.Fprintf(&marks, `<text class="strong" x="12" y="%d">%s</text>`+"\n", y-16,
						loadWords[r.load])
					named = true
				}
				x, class := row.ours, "toll"
				if tool != "toll" {
					x, class = row.their, "other"
				}
				if first {
					fmt.Fprintf(&marks, `<text x="12" y="%d">%s</text>`+"\n", y+8, tool)
					first = false
				}
				from, to := at(math.Exp(x.at-x.half)), at(math.Exp(x.at+x.half))
				fmt.Fprintf(&marks, `<path class="%s" d="M%.1f %dH%.1fM%.1f %dv8M%.1f %dv8"/>`+
					`<circle class="%s" cx="%.1f" cy="%d" r="4"><title>%s</title></circle>`+"\n",
					class, from, y+4, to, from, y, to, y, class, at(math.Exp(x.at)), y+4, x)
				y += lineHeight
			}
		}
	}
	var axis strings.Builder
	for i := range int(math.Round((high-low)/step)) + 1 {
		ratio := low + float64(i)*step
		class := "grid"
		if math.Abs(ratio-1) < step/2 {
			class = "one"
		}
		fmt.Fprintf(&axis, `<path class="%s" d="M%.1f %dV%d"/>`+
			`<text class="tick" x="%.1f" y="%d">%.1f</text>`+"\n", class, at(ratio), top, y,
			at(ratio), y+18, ratio)
	}
	release, _, _ := strings.Cut(e.Kernel, "-")
	about := fmt.Sprintf("95 %% intervals: toll in %s, the others in %d pairs of seconds; "+
		"%s, %d CPUs, Linux %s", short(s.minute.each), s.pairs, e.CPUModel, e.CPUs, release)
	return fmt.Sprintf(pictureFrame, width, y+30, html.EscapeString(about), axis.String()+
		marks.String())
}

var loadWords = map[string]string{bulk: "throughput", rr: "round trips a second"}

const pictureFrame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img"
 aria-labelledby="title">
<title id="title">What bridge costs against host: toll's interval and the other tools'</title>
<style>
text { font: 14px system-ui, sans-serif; fill: #1f2328 }
.strong { font-weight: 600 } .small { font-size: 12px; fill: #59636e }
.tick { font-size: 12px; fill: #59636e; text-anchor: middle }
path { fill: none } .grid { stroke: #d1d9e0 } .one { stroke: #59636e }
.toll { stroke: #0969da; stroke-width: 2 } .other { stroke: #bc4c00; stroke-width: 2 }
circle.toll { fill: #0969da } circle.other { fill: #bc4c00 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .small, .tick { fill: #9198a1 }
.grid { stroke: #3d444d } .one { stroke: #9198a1 }
.toll { stroke: #4493f8 } .other { stroke: #db6d28 }
circle.toll { fill: #4493f8 } circle.other { fill: #db6d28 }
}
</style>
<text class="strong" x="12" y="22">bridge to host, by toll and by other tools on the same path</text>
<text class="small" x="12" y="42">%s</text>
%s</svg>
`
