package analysis

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Added returns what cell i adds to cell b in a latency or, for endpoints, in a time. It returns
// nil for other metrics, without pairs, and for latencies if every difference counts (--same 0).
func (j *Run) Added(i, b int, metric string) *Price {
	p := j.File.Header.Plan
	timed := workload.IsLatency(metric) && p.Same > 0
	if p.Foreign() {
		timed = workload.MetricOf(metric, j.Series[i].Load).Unit == "s"
	}
	if out := j.Price(i, b, metric); timed && out.N > 0 {
		return &out
	}
	return nil
}

func (j *Run) doubtfulRoutes() (out []Finding) {
	if !j.File.Header.Plan.Foreign() {
		return nil
	}
	paths := j.File.Header.Paths
	for i, a := range paths {
		for _, b := range paths[:i] {
			differs := func(fact string) bool { return a.Facts[fact] != b.Facts[fact] }
			if a.Dial == b.Dial && !slices.ContainsFunc([]string{"url", "from"}, differs) {
				out = append(out, Finding{Code: SameAddress, Names: []string{b.Route, a.Route},
					What: a.Dial})
			}
		}
	}
	out = append(out, j.shared(sample.FactRequest, RefusedRequest)...)
	out = append(out, j.shared(sample.FactEncoding, CompressedStream)...)
	for _, fact := range []string{"model", "server"} {
		seen := Distinct(paths, func(p sample.Path) string { return p.Facts[fact] })
		if len(seen) > 1 && (fact != "server" || !j.sameServer()) {
			out = append(out, Finding{Code: OtherServers, What: fact, Names: seen})
		}
	}
	return out
}

// sameServer reports whether packets show that all routes end at one server, whatever the headers
// of gateways say.
func (j *Run) sameServer() bool {
	var first *sample.EvidenceHop
	for _, p := range j.File.Header.Paths {
		var hop *sample.EvidenceHop
		for _, s := range j.Series {
			for _, v := range s.Visits {
				if e := v.Evidence; s.Cell.Route == p.Route && e != nil && len(e.Hops) > 0 {
					hop = &e.Hops[0]
				}
			}
		}
		if hop == nil {
			return false
		}
		if first == nil {
			first = hop
		}
		if hop.Process != first.Process || hop.Port != first.Port || hop.NetNS != first.NetNS ||
			hop.Machine != first.Machine {
			return false
		}
	}
	return first != nil
}

// shared returns a finding for each value of a fact, with the routes that have it and the value.
func (j *Run) shared(fact, code string) (out []Finding) {
	routes := map[string][]string{}
	var values []string
	for _, p := range j.File.Header.Paths {
		if v := p.Facts[fact]; v != "" {
			if routes[v] == nil {
				values = append(values, v)
			}
			routes[v] = append(routes[v], p.Route)
		}
	}
	for _, v := range values {
		out = append(out, Finding{Code: code, Names: routes[v], What: v})
	}
	return out
}
