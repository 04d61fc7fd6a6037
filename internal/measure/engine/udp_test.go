package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

func TestUDPHasPathsOfItsOwn(t *testing.T) {
	udp := bridgeSpec
	udp.UDP = true
	b := &fake.Builder{Unsupported: map[path.Spec]error{udp: errors.New("no datagrams")}}
	q := request()
	q.Rounds = 1
	q.Loads = []sample.Load{{Kind: "bulk", Window: 0.25},
		{Kind: "udp", Options: sample.UDPOptions{Size: 100}, Window: 0.25},
		{Kind: "udp-rr", Options: sample.Messages{Request: 1, Reply: 1}, Window: 0.25}}
	r := try(t, context.Background(), b, q, nil)
	if r.err != nil || len(r.report.Failed) > 0 {
		t.Fatal(r.err, r.report.Failed)
	}
	for i, s := range b.Visits {
		if s.UDP != sample.UDP(b.Loads[i].Kind) {
			t.Errorf("%s was visited by %s", s, b.Loads[i].Kind)
		}
	}
	if n := len(r.file.Header.Paths); n != 3 { // host twice, bridge by TCP
		t.Errorf("%d paths", n)
	}
	for _, c := range r.file.Header.Plan.Cells {
		if p, ok := r.file.Header.PathOf(c); !ok || p.UDP != sample.UDP(c.Load) {
			t.Errorf("%+v is on %+v", c, p)
		}
	}
	want := map[string]bool{"udp": true, "udp-rr": true}
	for _, s := range r.file.Header.Plan.Skipped {
		if !want[s.Load] {
			t.Errorf("skipped %+v", s)
		}
		delete(want, s.Load)
	}
	if len(want) > 0 {
		t.Errorf("not skipped: %v", want)
	}
}
