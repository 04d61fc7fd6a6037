package cli

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestReadingTells(t *testing.T) {
	var told bytes.Buffer
	p := &progress{w: &told}
	r, ok := p.reading(strings.NewReader("0123456789"), 20_000_000).(*readProgress)
	if !ok {
		t.Fatal("nothing is told")
	}
	b := make([]byte, 5)
	if n, err := r.Read(b); n != 5 || err != nil || told.Len() > 0 {
		t.Errorf("%d, %v, %q", n, err, &told)
	}
	r.next, r.read = time.Time{}, 9_999_995
	if n, err := r.Read(b); n != 5 || string(b) != "56789" || err != nil {
		t.Errorf("%d %q, %v", n, b, err)
	}
	if got := told.String(); got != clearLine+"reading results, 50 % of 20 MB" {
		t.Errorf("%q", got)
	}
	r.size = 0
	if got := r.share(); got != "10 MB" {
		t.Errorf("%q", got)
	}
	p.judging(100)
	p.judging(100_000)
	if got := told.String(); !strings.HasSuffix(got, "MB"+clearLine+"judging 100000 visits") {
		t.Errorf("%q", got)
	}
	in := strings.NewReader("")
	if (&progress{}).reading(in, 1) != in {
		t.Error("without a terminal it is told")
	}
}

// The wait's line says on 80 columns how many CPUs are busy.
func TestWaitingFits(t *testing.T) {
	var told bytes.Buffer
	others := 128.0
	(&progress{w: &told}).waitsFor(time.Minute, sample.Contention{CPUs: 128, Others: &others})
	const want = "waiting up to 60 s for free CPUs (--busy: do not wait): 128.0 of 128 CPUs busy"
	if got := told.String(); got != clearLine+want {
		t.Errorf("%q, want %q", got, want)
	}
	var lines bytes.Buffer // in a file, one for each ten seconds that are left
	for _, left := range []time.Duration{20, 15, 10, 5, 0} {
		(&progress{plain: &lines}).waitsFor(left*time.Second, sample.Contention{CPUs: 128, Others: &others})
	}
	if got, want := lines.String(), "toll: waiting up to 20 s for free CPUs (--busy: do not "+
		"wait): other programs keep "+
		"128.0 of 128 CPUs busy (load average 0.0)\ntoll: waiting up to 10 s for free CPUs "+
		"(--busy: do not wait): other programs keep 128.0 of 128 CPUs busy (load average "+
		"0.0)\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

type writes int

func (n *writes) Write(b []byte) (int, error) {
	*n++
	return len(b), nil
}

// A line that clears the one before it is written in one call, because others write to the
// terminal, too.
func TestSayAfter(t *testing.T) {
	var n writes
	if sayAfter(&n, clearLine, "toll: waiting"); n != 1 {
		t.Errorf("%d writes", n)
	}
	var b bytes.Buffer
	if sayAfter(&b, clearLine, "toll: waiting"); b.String() != clearLine+"toll: waiting\n" {
		t.Errorf("%q", &b)
	}
}

type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

func TestSayStopping(t *testing.T) {
	for _, tt := range []struct {
		name  string
		stop  bool
		takes time.Duration
		says  bool
	}{{"slow", true, 3 * silentStop, true}, {"at-once", true, 0, false},
		{"not-stopped", false, 2 * silentStop, false}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var h heard
				done := (&progress{w: &h}).sayStopping(ctx)
				if tt.stop {
					stop()
				}
				time.Sleep(tt.takes)
				done()
				time.Sleep(2 * silentStop)
				if got := h.String() != ""; got != tt.says {
					t.Errorf("it says %q", h.String())
				}
			})
		})
	}
}

func usualStandings() (out []analysis.Standing) {
	for _, x := range []struct {
		label, load string
		ratio, half float64
		higher      bool
	}{{"native", "bulk", 1.004, 0.01, true}, {"bridge", "bulk", 0.95, 0.03, true},
		{"bridge", "rr", 1.12, 0.03, false}} {
		out = append(out, analysis.Standing{Cell: sample.Cell{Mode: mode.Name(x.label),
			From: "host",
			Load: x.load, On: sample.Lab}, Label: x.label, Higher: x.higher,
			Ratio: analysis.Ratio{To: "host", Median: x.ratio, Low: x.ratio - x.half,
				High: x.ratio + x.half, N: 3}})
	}
	return out
}

func TestHeartbeat(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, false)
	s := engine.Progress{Cell: sample.Cell{Load: "rr"}, Epoch: true, Visits: 2, Total: 60}
	for _, at := range []float64{0, 4, 9.9} {
		s.Elapsed = at
		p.show(s)
	}
	if out.Len() > 0 {
		t.Errorf("of a short run: %q", &out)
	}
	for _, at := range []float64{10.2, 12, 20.1} {
		s.Elapsed = at
		p.show(s)
	}
	p.standings, s.Elapsed, s.Round = usualStandings, 30.2, 3
	p.show(engine.Progress{Elapsed: 60, Total: 60})
	p.show(s)
	p.clear()
	const want = "toll: 10 of 60 s, round 1, 1 of 2: an epoch of rr\n" +
		"toll: 20 of 60 s, round 1, 1 of 2: an epoch of rr\n" +
		"toll: 30 of 60 s, rr: bridge 112 ±3 %\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out.Reset()
	p = newProgress(&out, true)
	s.Elapsed = 1000
	if p.show(s); out.Len() > 0 {
		t.Errorf("--quiet: %q", &out)
	}
}

func TestNoProgressInPipes(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, false)
	p.standings = func() []analysis.Standing { t.Error("it is asked for standings"); return nil }
	p.show(engine.Progress{Visits: 1, Total: 1})
	p.clear()
	if out.Len() > 0 {
		t.Errorf("%q", &out)
	}
	// The next page must not appear before the current one can be read.
	const bulk = "bulk: native 100 ±1 % · bridge 95 ±3 %"
	shown := &progress{w: &out, standings: usualStandings}
	for _, tt := range []struct {
		elapsed float64
		want    string
	}{{0.5, bulk}, {1.9, bulk}, {6.5, "rr: bridge 112 ±3 %"}, {6.8, "rr: bridge 112 ±3 %"},
		{8.6, bulk}} {
		out.Reset()
		shown.show(engine.Progress{Visits: 1, Total: 60, Elapsed: tt.elapsed})
		if _, got, _ := strings.Cut(out.String(), " s left · "); got != tt.want {
			t.Errorf("at %g s %q", tt.elapsed, got)
		}
	}
}

func TestNext(t *testing.T) {
	cell := sample.Cell{Mode: "publish-proxy", From: "remote-container", To: "loopback6",
		Load: "udp-rr", On: sample.Lab}
	for _, tt := range []struct {
		s    engine.Progress
		want string
	}{
		{engine.Progress{Round: 2, Cell: cell, Visit: 3, Visits: 16},
			"round 3, 4 of 16: publish-proxy from remote-container, udp-rr"},
		{engine.Progress{Cell: cell, Epoch: true, Visits: 2},
			"round 1, 1 of 2: an epoch of udp-rr"},
		{engine.Progress{Cell: cell, Epoch: true, Tracing: sample.TracedThrice, Visits: 1},
			"round 1, 1 of 1: an epoch of udp-rr, traced thrice"},
		{engine.Progress{Rounds: 3, Pairs: 2, Cell: sample.Cell{Load: "rr"}},
			"sweep 1, round 1 of 3: 2 pairs at once, rr"},
	} {
		if got := next(tt.s); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
