package published

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	clients = "one server, N client containers; Gbit/s for each client container"
	pairs   = "N pairs of containers; Gbit/s for each client container"
	procs   = "one server; client containers × processes in each; Gbit/s for each process"
)

var crowdCommands = []Command{
	{Args: "scale " + string(aliasNAT) + " pipework link ovs --clients 1,2,4,8,16,20",
		Save: "clients.jsonl"},
	{Args: "scale " + string(aliasNAT) + " pipework link ovs --clients 1x1x1,2x2x1,4x4x1,20x20x1", Save: "pairs.jsonl"},
	{Args: "scale pipework link ovs --clients 1x1,1x2,1x4,1x16,2x1,4x1,16x1,2x2,4x4,16x16",
		Save: "procs.jsonl"},
}

// crowdTables has the study's tables, in the order of crowdCommands, with its words for a shape.
var crowdTables = []struct {
	name  string
	words *regexp.Regexp
}{
	{clients, regexp.MustCompile(`^(1) server container, (\d{1,3}) client containers$`)},
	{pairs, regexp.MustCompile(`^(\d{1,3}) server containers, (\d{1,3}) client containers$`)},
	{procs,
		regexp.MustCompile(
			`^(1) server, (\d{1,3})x(\d{1,3}) \(client containers x clients in each\)$`)},
}

// crowdOurs divides the total by the number of clients, as the study does. The third table's
// figures are per process, contrary to its heading: multiplied by the number of containers, Open
// vSwitch would carry 25 Gbit/s in 4×1, 6 in 1×4 and 1 in 16×16; multiplied by the number of
// processes, 25, 25 and 15, as elsewhere.
func crowdOurs(r Row) (Ours, error) {
	for i, t := range crowdTables {
		m := t.words.FindStringSubmatch(r.Shape)
		if m == nil {
			continue
		}
		s := sample.Shape{Servers: count(m[1]), Clients: count(m[2]), Procs: 1}
		label := m[2]
		if len(m) > 3 {
			s.Procs = count(m[3])
			label += "×" + m[3]
		}
		if s.Servers < 1 || s.Clients < 1 || s.Procs < 1 {
			break
		}
		o := at(mode.Name(r.Mode), mode.FromContainer, mode.ToContainer, r.Load,
			workload.Throughput)
		if r.Mode == string(mode.Routed) { // the data's name for its aliases
			o = at(aliasNAT, mode.FromContainer, mode.ToContainer, r.Load, workload.Throughput)
		}
		o.Cell.Shape, o.Share = s, s.Clients*s.Procs
		o.Command, o.Table, o.Label = i, t.name, label
		return o, nil
	}
	return Ours{}, fmt.Errorf("unknown shape %q", r.Shape)
}

func count(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// crowdRatios compares each row with the first mode at the same shape and with the smallest shape
// of its mode, and in the third table also 4×1 with 1×4.
func crowdRatios(es []Entry) []Comparison {
	var out []Comparison
	for i, e := range es {
		first := find(es, func(b Entry) bool { return b.Table == e.Table && b.Label == e.Label })
		finding := 1
		switch {
		case e.Mode == string(mode.OVS):
			finding = 0
		case e.Table == procs:
			finding = 3
		}
		if c, ok := quotient(es, i, first, finding); ok {
			out = append(out, c)
		}
		smallest := find(es, func(b Entry) bool { return b.Table == e.Table && b.Mode == e.Mode })
		if c, ok := quotient(es, i, smallest, 2); ok {
			c.Smallest = true
			out = append(out, c)
		}
		apart := find(es, func(b Entry) bool {
			return b.Table == e.Table && b.Mode == e.Mode && b.Label == "1×4"
		})
		if c, ok := quotient(es, i, apart, 4); ok && e.Label == "4×1" {
			out = append(out, c)
		}
	}
	return out
}
