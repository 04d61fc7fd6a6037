package engine

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestLossy(t *testing.T) {
	got := lossy(sample.Load{Kind: "udp"}, &sample.Party{TotalRecv: 800},
		&sample.Party{TotalSent: 1000}, []path.Moved{{Forward: 800}})[0]
	if got != (path.Moved{Forward: 800, Resent: 200}) {
		t.Errorf("%+v", got)
	}
	got = lossy(sample.Load{Kind: "udp-rr", Options: sample.Messages{Request: 10, Reply: 20}},
		&sample.Party{TotalRecv: 90, TotalSent: 180}, &sample.Party{TotalSent: 100, TotalRecv: 160},
		[]path.Moved{{Forward: 90, Backward: 160}})[0]
	if got != (path.Moved{Forward: 90, Backward: 160, Resent: 30, Trips: 8}) {
		t.Errorf("%+v", got)
	}
}
