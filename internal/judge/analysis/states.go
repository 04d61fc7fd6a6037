package analysis

import (
	"fmt"
	"math"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// states warns if cell i's ratio was another one in some of the epochs: the machine was
// in another state then, which the baseline's own speed shows.
func (j *Run) states(i int) (Warning, bool) {
	s := j.Series[i]
	b, ok := j.BaselineOf(i)
	if !ok || b == i || len(s.slices) == 0 {
		return Warning{}, false
	}
	metric := PrimaryOf(s.Load, s.Cell.Shape)
	rounds, epochs := j.epochs(i, b, metric)
	apart, out := stats.Aside(epochs, stats.PriorSD)
	n, in := len(epochs), 0
	for _, is := range apart {
		if is {
			in++
		}
	}
	if in == 0 {
		return Warning{}, false
	}
	so := "and the mean describes neither"
	if out {
		so = "which is left out"
	}
	var ratio, speed [2][]float64 // of the other epochs, and of those that are apart
	for k, e := range epochs {
		of := 0
		if apart[k] {
			of = 1
		}
		ratio[of] = append(ratio[of], math.Exp(e.Centre))
		if x, ok := j.Series[b].Values[metric][rounds[k]]; ok {
			speed[of] = append(speed[of], x)
		}
	}
	base, of := Label(j.Series[b].Cell), "times"
	if higherIsBetter(s.Load, metric) {
		of = "of"
	}
	text := fmt.Sprintf("in %d of %d epochs it was %.*f %s %s's %s instead of %.*f, %s",
		in, n, RatioDecimals, stats.Median(ratio[1]), of, base, workload.Of(s.Load).Noun, RatioDecimals, stats.Median(ratio[0]), so)
	if len(speed[0]) > 0 && len(speed[1]) > 0 {
		text += fmt.Sprintf("; %s itself had %s then, and %s otherwise", base,
			inWords(metric, stats.Median(speed[1])), inWords(metric, stats.Median(speed[0])))
	}
	return Warning{"states", text}, true
}

// inWords is a value of a load's own metric.
func inWords(metric string, x float64) string {
	const giga, micro = 1e-9, 1e6
	if metric == workload.Throughput {
		return fmt.Sprintf("%.3g Gbit/s", x*giga)
	}
	return fmt.Sprintf("%.3g µs", x*micro)
}
