package mesh

import (
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// LabelGroup summarizes the links between nodes with given values of a cluster's label, such as the
// zone.
type LabelGroup struct {
	Label string `json:"label"` // the label's key
	// Across is set if the links' nodes differ in the label.
	Across bool `json:"across,omitempty"`
	// From and To are values of the label, or noLabel; "" means all of them together.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Metrics has LatencyP50 and Throughput.
	Metrics map[string]GroupMetric `json:"metrics"`
}

// GroupMetric summarizes the links of a group in a metric.
type GroupMetric struct {
	Median float64 `json:"median"`
	Links  int     `json:"links"` // for throughput, each direction counts
}

const noLabel = "(none)"

// ShortLabel returns a label's key without its prefix: "zone".
func ShortLabel(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

func labelOf(n sample.Node, key string) string {
	if v := n.Labels[key]; v != "" {
		return v
	}
	return noLabel
}

func (m *Mesh) addGroups(keys []string, fs fits) {
	for _, key := range keys {
		var values []string
		for _, n := range m.Nodes {
			if v := labelOf(n.Node, key); !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		if len(values) < 2 { //nolint:mnd // one value has no differences
			continue
		}
		slices.Sort(values)
		add := func(g LabelGroup, in func(a, b string) bool) {
			g.Label, g.Metrics = key, map[string]GroupMetric{}
			for _, metric := range fs.metrics {
				fit := fs.of[metric]
				var all []float64
				for a := range m.Nodes {
					for b := range m.Nodes {
						x := valueOf(metric, fit.Slowness(a, b))
						if a != b && (fit.Directed || a < b) && !math.IsNaN(x) &&
							in(labelOf(m.Nodes[a].Node, key), labelOf(m.Nodes[b].Node, key)) {
							all = append(all, x)
						}
					}
				}
				if len(all) > 0 {
					g.Metrics[metric] = GroupMetric{stats.Median(all), len(all)}
				}
			}
			if len(g.Metrics) > 0 {
				m.Groups = append(m.Groups, g)
			}
		}
		add(LabelGroup{}, func(a, b string) bool { return a == b })
		add(LabelGroup{Across: true}, func(a, b string) bool { return a != b })
		for i, v := range values {
			for j, w := range values[i:] {
				add(LabelGroup{Across: j > 0, From: v, To: w}, func(a, b string) bool {
					return a == v && b == w || a == w && b == v
				})
			}
		}
	}
}
