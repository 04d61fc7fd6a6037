package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Added returns what cell i adds to cell b in a latency or, for endpoints, in a time. It returns
// nil for other metrics, without pairs, and for latencies in files of version 1, whose reports had
// no prices.
func (j *Run) Added(i, b int, metric string) *Price {
	p := j.File.Header.Plan
	_, timed := workload.Percentile(metric)
	timed = timed && p.Same > 0
	if p.Foreign() {
		timed = workload.MetricOf(metric, j.Series[i].Load).Unit == "s"
	}
	if out := j.Price(i, b, metric); timed && out.N > 0 {
		return &out
	}
	return nil
}

func (j *Run) doubtfulRoutes() []string {
	if !j.File.Header.Plan.Foreign() {
		return nil
	}
	var out []string
	paths := j.File.Header.Paths
	for i, a := range paths {
		for _, b := range paths[:i] {
			differs := func(fact string) bool { return a.Facts[fact] != b.Facts[fact] }
			if a.Dial == b.Dial && !slices.ContainsFunc([]string{"url", "from", "fast"}, differs) {
				out = append(out, fmt.Sprintf("%s and %s have the same address: %s", b.Route,
					a.Route, a.Dial))
			}
		}
	}
	for _, fact := range []string{"model", "server"} {
		var seen []string
		for _, p := range paths {
			if name := cmp.Or(p.Facts[fact], "none named"); !slices.Contains(seen, name) {
				seen = append(seen, name)
			}
		}
		if len(seen) > 1 {
			out = append(out, fmt.Sprintf("the routes lead to different servers, by their %s: %s",
				fact, strings.Join(seen, "; ")))
		}
	}
	return out
}
