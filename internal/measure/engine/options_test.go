package engine_test

import (
	"context"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

// The number of bytes ends the load, not the plan's window.
func TestOptionsOfBulk(t *testing.T) {
	const rate, bytes = 1e8, 4e6
	for _, tt := range []struct {
		name    string
		load    sample.Load
		window  float64
		forward int64 // received by each end in the window
		back    int64
	}{
		{"bytes", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bytes: bytes},
			Window: 0.25}, bytes / rate, bytes, 0},
		{"bytes-of-two", sample.Load{Kind: "bulk", Streams: 2,
			Options: sample.BulkOptions{Bytes: bytes}, Window: 0.25}, 2 * bytes / rate, 2 * bytes,
			0},
		{"both-ways", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bidir: true},
			Window: 0.01}, 0.01, rate / 100, rate / 100},
		{"bytes-both-ways", sample.Load{Kind: "bulk",
			Options: sample.BulkOptions{Bidir: true, Bytes: bytes}, Window: 0.25}, bytes / rate,
			bytes, bytes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := request()
			req.Loads, req.Rounds = []sample.Load{tt.load}, 2
			b := &fake.Builder{Rate: func(path.Spec, string, int) float64 { return rate }}
			r := try(t, context.Background(), b, req, nil)
			if r.err != nil || len(r.report.Failed) > 0 {
				t.Fatal(r.err, r.report.Failed)
			}
			for _, v := range r.file.Visits {
				if v.Server.Received != tt.forward || v.Client.Received != tt.back ||
					v.Server.Window != tt.window || !v.Witness.OK {
					t.Errorf("visit %+v", v)
				}
			}
		})
	}
}

func TestTransferThatDies(t *testing.T) {
	req := request()
	req.Loads, req.Rounds = []sample.Load{{
		Kind: "bulk", Options: sample.BulkOptions{Bytes: 1e6}, Window: 0.25}}, 2
	b := &fake.Builder{Die: func(s path.Spec, n int) bool { return s == bridgeSpec && n == 0 }}
	r := try(t, context.Background(), b, req, nil)
	failed := 0
	for _, v := range r.file.Visits {
		if v.Failure != "" {
			failed++
		}
	}
	if r.err != nil || failed != 1 || len(r.file.Visits) != 6 {
		t.Errorf("%d of %d visits failed: %v", failed, len(r.file.Visits), r.err)
	}
}
