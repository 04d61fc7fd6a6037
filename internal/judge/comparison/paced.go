package comparison

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// paced returns how the machine's pacing congestion control changes the result of bulk, or "" if
// the run did not measure both congestion controls, or if they agree.
func (j study) paced() string {
	var say []string
	with, instead := "", ""
	for i, s := range j.Series {
		c := s.Cell
		t, ok := c.Tune.Get(mode.Congestion)
		if !ok || !j.unpaced(c) || c.Mode != mode.Bridge || c.Load != workload.Bulk || c.Control {
			continue
		}
		plain, host := c, c
		plain.Tune, host.Mode = "", mode.Name(j.File.Header.Plan.Baseline)
		k, b := -1, -1
		for n, o := range j.Series {
			if o.Cell == plain {
				k = n
			}
			if analysis.SameGroup(o.Cell, host) && o.Cell.Mode == host.Mode &&
				o.Cell.Tune == host.Tune {
				b = n
			}
		}
		base, known := j.BaselineOf(i)
		if k < 0 || b < 0 || !known || j.Failed(i) || j.Failed(k) || j.Failed(b) {
			continue
		}
		here := j.Against(k, base, workload.Throughput, "")
		there := j.Against(i, b, workload.Throughput, "")
		if !certain(here) || !certain(there) || here.Low <= there.High && there.Low <= here.High {
			continue
		}
		p, _ := j.File.Header.PathOf(plain)
		with, instead = p.Sysctls["net.ipv4.tcp_congestion_control"], t.Value
		text := fmt.Sprintf("%s instead of %s", changeOf(there), changeOf(here))
		if pin := analysis.PinWords(c.Pin); len(j.File.Header.Plan.Pins) > 1 {
			text = "on " + pin + " " + text
		}
		say = append(say, text)
	}
	if len(say) == 0 {
		return ""
	}
	return fmt.Sprintf(
		"%s, this machine's congestion control, paces bulk and so decides: with %s bridge has %s.",
		strings.ToUpper(with), instead, strings.Join(say, ", "))
}

func certain(r analysis.Ratio) bool {
	return r.N > 0 && r.Verdict != stats.Unclear && r.Verdict != ""
}

func changeOf(r analysis.Ratio) string {
	if r.Verdict == stats.Same {
		return "the same throughput"
	}
	return percentOf(r)
}
