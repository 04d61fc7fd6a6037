package analysis_test

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// rate is Gbit/s of datagrams of 1250 bytes, or µs. The last cell loses lost of each 1000
// datagrams.
func udpRun(t *testing.T, load string, rate float64, lost int64,
	change ...func(*sample.Visit)) *analysis.Report {
	t.Helper()
	r := judgetest.New(t, judgetest.Trio(mode.Bridge, load)...)
	l := sample.Load{Kind: load, Options: sample.Messages{Request: 1, Reply: 1}, Warmup: 0.05,
		Window: 1}
	if load == workload.UDP {
		l.Options = sample.UDPOptions{Size: 1250, Rate: rate}
	}
	r.File.Header.Plan.Loads = []sample.Load{l}
	for i := range r.File.Header.Paths {
		r.File.Header.Paths[i].UDP = true
	}
	x := judgetest.Steady(1, 1, 0.5)
	if load == "udp-rr" {
		x = judgetest.Steady(50, 50, 60)
	}
	whatIsLost := func(v *sample.Visit) {
		came := v.Server.Received / 1250
		v.Client.Counts = map[string]int64{"datagrams": 1000}
		v.Server.Counts = map[string]int64{"datagrams": came}
		if load == "udp-rr" {
			h := sample.NewHistogram()
			_ = h.RecordValues(int64(map[bool]float64{false: 50e3, true: 60e3}[v.Cell == 2]), 1000)
			v.Latency, _ = sample.Encode(h)
			v.Client.Trips, v.Server.Received = 1000-lost, 0
		}
		if v.Cell == 2 {
			v.Client.Counts["lost"], v.Server.Counts["lost"], v.Server.Counts["dropped"],
				v.Server.Counts["reordered"] = lost, lost, lost/2, 5
		}
	}
	return analysis.Judge(r.Rounds(6, x, append(
		[]func(*sample.Visit){calm, whatIsLost}, change...)...).File)
}

func TestUDPMetrics(t *testing.T) {
	c := judgetest.Find(t, udpRun(t, "udp", 0, 20), mode.Bridge, "udp")
	if len(c.Hops) == 0 {
		t.Error("its path was not found")
	}
	for name, want := range map[string]float64{workload.Throughput: 0.5e9, workload.Packets: 5e4,
		workload.Loss:         0.02,
		workload.SocketLoss:   0.01,
		workload.Reordered:    0.005,
		workload.Duplicates:   0,
		workload.Offered:      0.5e9,
		workload.CPUPerPacket: 0.8 / 5e4} {
		if got, ok := c.Metrics[name]; !ok || !judgetest.Near(got.Median, want) {
			t.Errorf("%s is %v, want %v", name, got.Median, want)
		}
	}
	if x := c.Metrics[workload.Throughput].Ratio; x == nil || !judgetest.Near(x.Median, 0.5) ||
		x.Verdict != "worse" {
		t.Errorf("ratio %v", x)
	}
	if x := c.Metrics[workload.Packets].Ratio; x == nil || x.Verdict != "worse" {
		t.Errorf("fewer packets are %v", x)
	}
	rr := judgetest.Find(t, udpRun(t, "udp-rr", 0, 20), mode.Bridge, "udp-rr")
	if got := rr.Metrics[workload.Loss].Median; !judgetest.Near(got, 0.02) {
		t.Errorf("a share of %v trips is lost", got)
	}
	if x := rr.Metrics[workload.LatencyP50].Ratio; x == nil || !judgetest.Near(x.Median, 1.2) {
		t.Errorf("ratio %v", x)
	}
}

func TestUDPWarningsAndLimits(t *testing.T) {
	behind := func(blocked int64) func(*sample.Visit) {
		return func(v *sample.Visit) {
			v.Client.Counts["missed"], v.Client.Counts["blocked"] = 250, blocked
		}
	}
	for _, tt := range []struct {
		name    string
		rate    float64
		lost    int64
		change  func(*sample.Visit)
		want    string
		share   float64
		what    string
		limited string
	}{
		{name: "searched", lost: 1},
		{name: "searched-lossy", lost: 20, want: workload.Lossy, share: 0.02},
		{name: "given-lossy", rate: 2e9, lost: 20},
		{name: "given-and-got", rate: 0.5e9, limited: "rate"},
		{name: "late", rate: 2e9, change: behind(0), want: workload.Behind, share: 0.8,
			what: workload.WhySlow},
		{name: "blocked", rate: 2e9, change: behind(3), want: workload.Behind, share: 0.8,
			what: workload.WhyFull},
		{name: "search-is-never-late", change: behind(3)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var change []func(*sample.Visit)
			if tt.change != nil {
				change = append(change, tt.change)
			}
			c := judgetest.Find(t, udpRun(t, "udp", tt.rate, tt.lost, change...), mode.Bridge,
				"udp")
			if got := strings.Join(judgetest.Codes(c.Warnings), " "); got != tt.want {
				t.Fatalf("warnings %+v, want %v", c.Warnings, tt.want)
			}
			if tt.want != "" {
				f := judgetest.Found(t, c.Warnings, tt.want)
				if f.What != tt.what || !judgetest.Near(f.Values[tt.want], tt.share) {
					t.Errorf("%+v, want %s of %g", f, tt.what, tt.share)
				}
			}
			if c.LimitedBy != tt.limited {
				t.Errorf("limited by %q, want %q", c.LimitedBy, tt.limited)
			}
		})
	}
}
