package engine

import (
	"testing"

	kernel "github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/measure/trace"
)

func TestRecordedSlices(t *testing.T) {
	two := []kernel.Event{{TS: 10}, {TS: 20}}
	slices := func() []trace.Slice {
		return []trace.Slice{{Slot: 1, Bounds: []int64{5, 20}}, {Slot: 4, Bounds: []int64{15, 21}}}
	}
	for _, tt := range []struct {
		room, want int
		logs       [][]kernel.Event
	}{
		{3, 2, [][]kernel.Event{two, nil}}, {2, 1, [][]kernel.Event{nil, two}},
		{1, 0, [][]kernel.Event{two[:1], nil}}, {0, 2, [][]kernel.Event{nil}},
	} {
		got := (&tracing{room: tt.room}).recorded(trace.Log{CPUs: tt.logs}, slices())
		if len(got) != tt.want {
			t.Errorf("%d events of %d: %v, want %d", len(tt.logs), tt.room, got, tt.want)
		}
	}
}
