package endpoints_test

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// A program's routes differ because of the network, unless packets show the time elsewhere.
func TestNetworkByEvidence(t *testing.T) {
	exchanges := func(last [7]float64) *sample.Evidence {
		e := judgetest.Evidence(last, last, [7]float64{})
		e.Tokens, e.Matched, e.ByID, e.ByOrder, e.Responses = 0, 0, 0, 50, 50
		for i := range e.Parts {
			e.Parts[i].LastHalf = 0.02 * e.Parts[i].Last
		}
		return e
	}
	within := func(e *sample.Evidence, part string, half float64) *sample.Evidence {
		for i := range e.Parts {
			if e.Parts[i].Part == part {
				e.Parts[i].LastHalf = half
			}
		}
		return e
	}
	unwritten := func(e *sample.Evidence) *sample.Evidence { e.Writes = false; return e }
	quick, busy := [7]float64{0.1, 80, 5: 0.1}, [7]float64{0.1, 1330, 5: 0.1}
	for name, tt := range map[string]struct {
		verdict    stats.Verdict
		ratio      float64
		higher     bool
		base, over *sample.Evidence
		says       string // the answer's beginning
	}{
		"a full listen queue": {stats.Worse, 17, false, exchanges(quick), exchanges(busy),
			"Not over b: what differs from a is the time in the server."},
		"in part, as captured": {stats.Worse, 17, false, exchanges(quick),
			exchanges([7]float64{0.1, 690, 5: 0.1}),
			"Not over b: what differs from a is the time in the server."},
		"of the baseline": {stats.Better, 1. / 17, false, exchanges(busy), exchanges(quick),
			"Not over b: what differs from a is the time in the server."},
		"by a rate": {stats.Worse, 1. / 17, true, exchanges(quick), exchanges(busy),
			"Not over b: what differs from a is the time in the server."},
		"the client": {stats.Worse, 2, false, exchanges(quick),
			exchanges([7]float64{0.1, 80, 6: 90}),
			"Not over b: what differs from a is the time in the client."},
		"the wire": {stats.Worse, 2, false, exchanges(quick), exchanges([7]float64{0.1, 80, 5: 90}),
			"Yes, over b."},
		"a relay": {stats.Worse, 2, false, exchanges(quick), exchanges([7]float64{0.1, 80, 4: 90}),
			"Yes, over b."},
		"the relay and the server": {stats.Worse, 2, false, exchanges(quick),
			exchanges([7]float64{0.1, 130, 4: 40}), "Yes, over b."},
		"inside its interval": {stats.Worse, 2, false, exchanges(quick),
			within(exchanges([7]float64{0.1, 160, 5: 0.1}), sample.EvidenceServer, 0.090),
			"Unclear over b: what differs from a seems to be the time in the server,"},
		"the client's, beside a path that is not known": {stats.Worse, 2, false, exchanges(quick),
			within(exchanges([7]float64{0.1, 80, 5: 1, 6: 90}), sample.EvidenceWire, 0.060),
			"Unclear over b: what differs from a seems to be the time in the client,"},
		"too few for an interval": {stats.Worse, 2, false, exchanges(quick),
			within(exchanges([7]float64{0.1, 160, 5: 0.1}), sample.EvidenceServer, 0),
			"Unclear over b: what differs from a seems to be the time in the server,"},
		// Packets of exchanges do not have the time to connect.
		"connecting": {stats.Worse, 17, false, exchanges(quick),
			exchanges([7]float64{0.1, 90, 5: 0.1}),
			"Yes, over b."},
		// A full queue of the server's device would be in the server's part.
		"unseen writes": {stats.Worse, 17, false, exchanges(quick), unwritten(exchanges(busy)),
			"Yes, over b."},
		"one route unseen": {stats.Worse, 17, false, nil, exchanges(busy), "Yes, over b."},
		"the same": {stats.Same, 1, false, exchanges(quick), exchanges(quick),
			"No: the routes do not differ"},
		"unclear": {stats.Unclear, 1.2, false, exchanges(quick), exchanges(busy), "It is unclear"},
	} {
		r := &analysis.Report{}
		r.Plan.Baseline = "a"
		r.Plan.Loads = []sample.Load{{Kind: workload.Exec,
			Options: sample.ExecOptions{Program: &sample.Program{Client: "c"}}}}
		for _, c := range []struct {
			name string
			e    *sample.Evidence
		}{{"a", tt.base}, {"b", tt.over}} {
			r.Cells = append(r.Cells, judgetest.Judged("r", "", workload.Exec, tt.ratio, 0.01, ""))
			cell := &r.Cells[len(r.Cells)-1]
			cell.Cell, cell.Evidence = sample.Cell{Route: c.name, Load: workload.Exec}, c.e
			cell.Baseline = c.name == "a"
			if m := cell.Metrics[cell.Primary]; !cell.Baseline {
				m.Higher, m.Ratio = tt.higher, &analysis.Ratio{To: "a", Median: tt.ratio,
					Low: tt.ratio, High: tt.ratio, N: 12, Verdict: tt.verdict}
				cell.Metrics[cell.Primary] = m
			}
		}
		a := answerOf(r, nil)
		if said := strings.Join(a.Text, "\n"); !strings.HasPrefix(said, tt.says) ||
			a.Question != "Is it the network?" {
			t.Errorf("%s: %s\n%s", name, a.Question, said)
		}
	}
}
