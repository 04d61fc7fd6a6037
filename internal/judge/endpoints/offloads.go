package endpoints

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// ends are the facts of a route's devices at both ends.
var ends = []struct{ whose, device, off string }{
	{"its device", sample.FactDevice, sample.FactOffloadsOff},
	{"the server's device", sample.FactServerDevice, sample.FactServerOffloadsOff},
}

// switched returns a clause for each route that has less throughput than another one and has
// offloads off at one end that are on for the other route.
func switched(r *analysis.Report) (out []string) {
	for _, c := range r.Cells {
		m := c.Metrics[c.Primary]
		if m.Ratio == nil || !m.Higher {
			continue
		}
		i := slices.IndexFunc(r.Cells, func(b analysis.Cell) bool {
			return b.Baseline && b.Load == c.Load
		})
		if i < 0 {
			continue
		}
		slow, fast := c, r.Cells[i]
		switch m.Ratio.Verdict {
		case stats.Worse:
		case stats.Better:
			slow, fast = fast, slow
		default:
			continue
		}
		for _, e := range ends {
			off := onlyOff(slow.Facts[e.off], fast.Facts[e.off])
			if fast.Facts[e.device] == "" || len(off) == 0 {
				continue
			}
			text := fmt.Sprintf("%s: %s %s has %s off, unlike that of %s: %s", slow.Label(),
				e.whose, slow.Facts[e.device], printable.List(off), fast.Label(),
				turnOn(slow.Facts[e.device], off))
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}

// onlyOff returns what is in the list slow and not in the list fast.
func onlyOff(slow, fast string) []string {
	others := strings.Split(fast, ", ")
	return slices.DeleteFunc(strings.Split(slow, ", "), func(s string) bool {
		return s == "" || slices.Contains(others, s)
	})
}

func turnOn(device string, off []string) string {
	short := map[string]string{"tx-checksum": "tx", "scatter": "sg"}
	text := "ethtool -K " + device
	for _, name := range off {
		if s := short[name]; s != "" {
			name = s
		}
		text += " " + name + " on"
	}
	return text
}
