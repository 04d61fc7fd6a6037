package published

import (
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func streamFile(t *testing.T, name string, rounds int, o sample.StreamOptions) Input {
	t.Helper()
	encode := func(d time.Duration) *sample.EncodedHisto {
		h := sample.NewHistogram()
		if err := h.RecordValue(int64(d)); err != nil {
			t.Fatal(err)
		}
		e, err := sample.Encode(h)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	f := &sample.File{Header: sample.Header{Plan: sample.Plan{Baseline: "host", Precision: 0.02,
		Loads: []sample.Load{{Kind: workload.Stream, Streams: 1, Window: 1, Options: o}}}}}
	for i, m := range []mode.Name{mode.Host, mode.Host, mode.PublishDefault} {
		f.Header.Plan.Cells = append(f.Header.Plan.Cells,
			sample.Cell{Mode: m, From: "host", To: "loopback", Load: workload.Stream, On: "lab",
				Control: i == 1})
	}
	for r := range rounds {
		for i := range f.Header.Plan.Cells {
			f.Visits = append(f.Visits, sample.Visit{Turn: sample.Turn{Round: r, Cell: i},
				Ends: sample.Ends{Client: sample.Party{
					Window: 1, Counts: map[string]int64{"tokens": 1000}}},
				Timings: sample.Timings{Times: map[string]*sample.EncodedHisto{
					"gap":     encode(20 * time.Millisecond),
					"overrun": encode(time.Duration(1+10*i) * time.Millisecond)}},
				Metered: sample.Metered{Elapsed: 1},
				Proof:   sample.Proof{Witness: sample.Witness{OK: true}}})
		}
	}
	return Input{Name: name, File: f, pair: analysis.Pair(f)}
}

func TestClaimHasItsOwnPace(t *testing.T) {
	s, _ := studyOf("llm-token-streaming-bridge-vs-host")
	o := sample.StreamOptions{Tokens: 2, Pace: batchPace}
	files := []Input{streamFile(t, "batch.jsonl", 9, o)}
	for _, c := range s.Claims {
		if c.Pace != batchPace {
			continue
		}
		if x, notes := s.check(c, files); x.File == "" || len(notes) > 0 {
			t.Errorf("%+v with the notes %q", x, notes)
		}
	}
}

func TestLongestPauseIsOfTheMostRounds(t *testing.T) {
	s, es := entries(t, "llm-token-streaming-bridge-vs-host")
	o := sample.StreamOptions{Tokens: 6, Pace: 50}
	files := []Input{streamFile(t, "short.jsonl", 7, o), streamFile(t, "long.jsonl", 20, o)}
	n := 0
	for _, e := range es {
		if e.Metric != spike {
			continue
		}
		n++
		if h := s.here(e, files); h == nil || h.File != "long.jsonl" || h.N != 1 {
			t.Errorf("%+v", h)
		}
	}
	if n == 0 {
		t.Error("no row has a longest pause")
	}
}
