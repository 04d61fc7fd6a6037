package engine

import (
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestTransferLimit(t *testing.T) {
	slow := &sample.Wire{Rate: 16e6} // 2 MB/s, at least half of it payload
	for _, tt := range []struct {
		name string
		load sample.Load
		wire *sample.Wire
		want time.Duration
	}{
		{"nothing", sample.Load{Options: sample.BulkOptions{Bytes: 0}}, nil, openTimeout},
		{"one", sample.Load{Options: sample.BulkOptions{Bytes: 50e6}}, nil,
			openTimeout + 5*time.Second},
		{"three", sample.Load{Streams: 3, Options: sample.BulkOptions{Bytes: 50e6}}, nil,
			openTimeout + 15*time.Second},
		{"fast-wire", sample.Load{Options: sample.BulkOptions{Bytes: 50e6}},
			&sample.Wire{Rate: 10e9}, openTimeout + 5*time.Second},
		{"slow-wire", sample.Load{Options: sample.BulkOptions{Bytes: 50e6}}, slow,
			openTimeout + 50*time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := transferLimit(tt.load, tt.wire); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestRoundTrips(t *testing.T) {
	for _, tt := range []struct {
		name string
		load sample.Load
		want int64
	}{
		{"rr", sample.Load{Options: sample.RROptions{
			Messages: sample.Messages{Request: 10, Reply: 5}}}, 1000},
		{"beside", sample.Load{Options: sample.RROptions{
			Messages: sample.Messages{Request: 10, Reply: 5}, Beside: true}}, 400},
		{"beside-without-a-size", sample.Load{
			Options: sample.RROptions{Messages: sample.Messages{Request: 10}, Beside: true}}, 2000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := roundTrips(tt.load, path.Moved{Forward: 10_000, Backward: 2000})
			if got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
