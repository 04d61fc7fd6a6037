package heads

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestColumns(t *testing.T) {
	names := workload.MetricNames()
	for _, w := range workload.All() {
		if tables[w.Name] == nil {
			t.Errorf("%s has no table", w.Name)
		}
		before := len(Of(w.New()).Columns)
		for _, c := range All(w) {
			if !slices.Contains(names, c.Metric) && c.Show != LimitedBy {
				t.Errorf("%s: a column of %q", w.Name, c.Metric)
			}
			if c.Scale == 0 && !slices.Contains([]Kind{LimitedBy, Added, Total, Fitted}, c.Show) {
				t.Errorf("%s: the column %q has no scale", w.Name, c.Head)
			}
		}
		if after := len(Of(w.New()).Columns); after != before {
			t.Errorf("%s: %d columns, and then %d", w.Name, before, after)
		}
	}
	for name := range titles {
		if !slices.Contains(names, name) {
			t.Errorf("a title of %q", name)
		}
	}
}

func TestUnknownLoadLooksLikeBulk(t *testing.T) {
	of, bulk := Of(sample.Load{Kind: "later"}), Of(sample.Load{Kind: workload.Bulk})
	if of.Ratio != bulk.Ratio || !slices.Equal(of.Columns, bulk.Columns) {
		t.Errorf("%+v, not %+v", of, bulk)
	}
}

// Titles say what the answer says, and per what CPU time is.
func TestTitles(t *testing.T) {
	for _, x := range [][3]string{
		{workload.RR, workload.LatencyP50, "Median latency"},
		{workload.RR, workload.CPUPerTrip, "CPU time per round trip"},
		{workload.SQL, workload.LatencyP50, "Median page time"},
		{workload.SQL, workload.CPUPerTrip, "CPU time per page"},
		{workload.Exec, workload.CPUPerTrip, "CPU time per run of the client"},
		{workload.Chat, workload.CPUPerTrip, "CPU time per response"},
		{workload.Stream, workload.CPUPerToken, "CPU time per token"},
		{workload.Stream, workload.TokenRate, "Rate"},
		{workload.Bulk, workload.Throughput, "Throughput"},
		{workload.Bulk, workload.CPUPerByte, "CPU time per byte"},
	} {
		if got := Title(x[1], workload.Of(sample.Load{Kind: x[0]})); got != x[2] {
			t.Errorf("%s of %s: %q, want %q", x[1], x[0], got, x[2])
		}
	}
}
