package comparison

import (
	"reflect"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// Connections take x µs, a quarter of it to connect.
func connecting(t *testing.T, x float64, change ...func(*sample.Visit)) []func(*sample.Visit) {
	t.Helper()
	histo := func(us float64) *sample.EncodedHisto {
		h := sample.NewHistogram()
		if err := h.RecordValues(int64(us*float64(time.Microsecond)), judgetest.TripsPerVisit); err != nil {
			t.Fatal(err)
		}
		e, err := sample.Encode(h)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	whole, connect := histo(x), histo(x/4)
	return append([]func(*sample.Visit){func(v *sample.Visit) {
		v.Client.Sent, v.Server.Received = 0, 0
		v.Client.Trips, v.Latency, v.Times = judgetest.TripsPerVisit, whole,
			map[string]*sample.EncodedHisto{"connect": connect}
		v.Headroom = &sample.Headroom{Ports: 28232, Budget: 28232, Limit: sample.LimitPorts}
	}}, change...)
}

func TestConnectionMetrics(t *testing.T) {
	failures := func(v *sample.Visit) {
		v.Client.Counts = map[string]int64{"connect_timeout": 1, "exchange_failed": 2,
			"failed_in_visit": 9}
		v.Client.TCP = sample.TCPInfo{Retransmits: 3, RTT: 1}
	}
	r := Judge(judgetest.New(t, judgetest.Trio(mode.Bridge, "crr")...).Rounds(
		6, judgetest.Steady(1, 1, 1), connecting(t, 80, failures)...).File)
	c := judgetest.Find(t, r, mode.Bridge, "crr")
	const busy = 0.8 // CPUs
	want := map[string]analysis.Metric{
		workload.Connections:       {Unit: "1/s", Median: judgetest.TripsPerVisit},
		workload.CPUPerConnection:  {Unit: "s", Median: busy / judgetest.TripsPerVisit},
		workload.LatencyP50:        {Unit: "s", Median: 80e-6},
		workload.LatencyP90:        {Unit: "s", Median: 80e-6},
		workload.LatencyP99:        {Unit: "s", Median: 80e-6},
		workload.LatencyP999:       {Unit: "s", Median: 80e-6},
		workload.LatencyMax:        {Unit: "s", Median: 80e-6},
		workload.ConnectP50:        {Unit: "s", Median: 20e-6},
		workload.ConnectP99:        {Unit: "s", Median: 20e-6},
		workload.FailedConnections: {Unit: "connections", Median: 3},
		workload.Involuntary:       {Unit: "switches", Median: 0},
	}
	for name, m := range want {
		if got := c.Metrics[name]; got.Unit != m.Unit || !judgetest.Near(got.Median, m.Median) {
			t.Errorf("%s: got %+v, want %v %s", name, got, m.Median, m.Unit)
		}
	}
	for name := range c.Metrics {
		if _, ok := want[name]; !ok {
			t.Errorf("unexpected metric %s", name)
		}
	}
	if x := c.CPU; x.Unit != "s" || !judgetest.Near(x.Client, 0.4/judgetest.TripsPerVisit) {
		t.Errorf("CPU %+v", x)
	}
	if analysis.Primary(sample.Load{Kind: "crr"}) != workload.Connections ||
		!workload.MetricOf(workload.Connections, sample.Load{}).Higher ||
		workload.MetricOf(workload.ConnectP50, sample.Load{}).Higher ||
		workload.MetricOf(workload.FailedConnections, sample.Load{}).Higher {
		t.Error("which way is good")
	}
}

func TestConnectionsAreJudged(t *testing.T) {
	half := func(v *sample.Visit) {
		if v.Cell == 2 {
			v.Client.Trips /= 2
		}
	}
	r := Judge(judgetest.New(t, judgetest.Trio(mode.Bridge, "crr")...).Rounds(
		6, judgetest.Steady(1, 1, 1), connecting(t, 80, half)...).File)
	x := judgetest.Find(t, r, mode.Bridge, "crr").Metrics[workload.Connections].Ratio
	if x == nil || !judgetest.Near(x.Median, 0.5) || x.Verdict != "worse" {
		t.Errorf("ratio %+v", x)
	}
	wantFindings(t, r, "avoid bridge", "witnessed")
}

func TestConnectionWarnings(t *testing.T) {
	cut := func(code string, x float64) analysis.Finding {
		return analysis.Finding{Code: code, Load: workload.CRR, N: 6, Of: 6,
			Values: map[string]float64{code: x}}
	}
	left := cut(workload.TimeWaitLeft, 17)
	left.What = "destroy sockets: not supported"
	for _, tt := range []struct {
		name   string
		change func(*sample.Visit)
		want   analysis.Finding
	}{
		{"none", func(*sample.Visit) {}, analysis.Finding{}},
		{"cut-by-plan", func(v *sample.Visit) {
			v.Headroom.Window = 0.1
		}, cut(workload.PortsExhausted, 28232)},
		{"cut-by-client", func(v *sample.Visit) {
			v.Client.Counts = map[string]int64{"threads_cut_short": 1}
		}, cut(workload.PortsExhausted, 28232)},
		{"conntrack", func(v *sample.Visit) {
			v.Headroom.Window, v.Headroom.Limit, v.Headroom.Budget = 0.1, sample.LimitTracking, 4096
		}, cut(workload.ConntrackFull, 4096)},
		{"left", func(v *sample.Visit) {
			v.Headroom.Left, v.Headroom.Error = 17, "destroy sockets: not supported"
		}, left},
		{"failed", func(v *sample.Visit) {
			v.Client.Counts = map[string]int64{"connect_refused": 2, "connect_no_port": 1,
				"failed_in_visit": 30}
		}, analysis.Finding{Code: workload.ConnectionsFailed, Load: workload.CRR, N: 18, Of: 12018,
			Values: map[string]float64{workload.FailedRefused: 12, workload.FailedNoPort: 6}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Judge(judgetest.New(t, judgetest.Trio(mode.Bridge, "crr")...).Rounds(
				6, judgetest.Steady(1, 1, 1), connecting(t, 80, tt.change)...).File)
			var got []analysis.Warning
			for _, w := range judgetest.Find(t, r, mode.Bridge, "crr").Warnings {
				if w.Code != "thin-tail" {
					got = append(got, w)
				}
			}
			if tt.want.Code == "" {
				if len(got) > 0 {
					t.Errorf("warnings %+v", got)
				}
				return
			}
			if f := judgetest.Found(t, got, tt.want.Code); len(got) != 1 ||
				!reflect.DeepEqual(f, tt.want) {
				t.Errorf("got %+v, want %+v", f, tt.want)
			}
		})
	}
}
