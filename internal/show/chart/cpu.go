package chart

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
)

// leastParty is the least share of the CPU time that a chart shows.
const leastParty = 0.001

// partyChart draws the CPU time of each party. ok is false unless that of a client, server or proxy
// is known, and can be seen.
func partyChart(cells []analysis.Cell, w workload.Workload) (c document.Chart, ok bool) {
	var sums []float64
	for _, cell := range cells {
		s := parties(cell, w)
		sums, ok = append(sums, s.Sum()), ok || s.Sum()-s.Rest > leastParty*s.Sum()
	}
	unit := scaleFor(cells[0].CPU.Unit, largest(sums...))
	spec := stacks{Axis: unit.unit, Parts: []string{
		"client", "server", "proxy", "the rest of the machine"}, Colors: "part"}
	var rows [][]string
	for _, cell := range cells {
		s := parties(cell, w)
		row := stackRow{Label: cell.Name(), Text: threeDigits(s.Sum() * unit.by)}
		if s.Sum() <= 0 {
			row.Text = notMeasured
		}
		entry := []string{row.Label}
		for _, x := range []float64{s.Client, s.Server, s.Proxy, s.Rest} {
			row.Values, entry = append(row.Values, fourDigits(x*unit.by)),
				append(entry, threeDigits(x*unit.by))
		}
		spec.Rows, rows = append(spec.Rows, row), append(rows, append(entry, row.Text))
	}
	return document.Chart{Kind: "stack", Title: "CPU time per " + w.Unit() + " by party", Spec: spec,
		How:   "All CPUs of the machine. The parts are shares of all rounds together, their sum is the row's median. The rest is kernel work outside these processes, and other programs.",
		Table: tableOf(rows, heads.Row(cells[0].On)+", "+unit.unit, "client", "server", "proxy", "rest", "sum")}, ok
}

// parties returns the cell's CPU time by party, with the sum that the page shows elsewhere.
func parties(c analysis.Cell, w workload.Workload) analysis.CPUSplit {
	s := c.CPU
	all, m := s.Sum(), c.Metrics[w.CPU()]
	if !(all > 0) || !(m.Shown() > 0) {
		return s
	}
	by := m.Shown() / all
	return analysis.CPUSplit{Unit: s.Unit, Client: s.Client * by, Server: s.Server * by,
		Proxy: s.Proxy * by, Rest: s.Rest * by}
}

// mostBars is the largest number of rows of a chart. With more rows, a chart is only its table.
const mostBars = 64

func cpuChart(cells []analysis.Cell) (c document.Chart, ok bool) {
	kinds := analysis.CPUKinds()
	spec := stacks{Axis: "% of the CPU's time", Parts: kinds, Colors: "cpu", Whole: 100,
		Dense: true}
	var rows [][]string
	for _, cell := range cells {
		if len(cell.CPUs) == 0 {
			spec.Rows = append(spec.Rows, stackRow{
				Label: cell.Name(), Values: make([]float64, len(kinds)), Text: notMeasured})
			rows = append(rows, append([]string{cell.Name()}, make([]string, len(kinds))...))
			continue
		}
		ok = true
		for _, u := range cell.CPUs {
			row := stackRow{Label: strings.Join(
				strings.Fields(fmt.Sprintf("%s %s CPU %d", cell.Name(), u.Machine, u.CPU)), " ")}
			entry := []string{row.Label}
			for _, x := range u.Shares() {
				row.Values = append(row.Values, fourDigits(100*x))
				entry = append(entry, fmt.Sprintf("%.1f", 100*x))
			}
			spec.Rows, rows = append(spec.Rows, row), append(rows, entry)
		}
	}
	c = document.Chart{Kind: "stack", Title: "The machine's CPUs, by row", Spec: spec, Aside: true,
		How:   "What each CPU did in the windows, all rounds together, as mpstat shows it.",
		Table: tableOf(rows, append([]string{"%"}, kinds...)...)}
	if len(rows) > mostBars {
		c.Kind, c.Spec = "", nil
	}
	return c, ok
}
