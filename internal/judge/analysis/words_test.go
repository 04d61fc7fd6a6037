package analysis

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestThinTail(t *testing.T) {
	for _, tt := range []struct {
		name string
		n    int64
		want string
	}{
		{"none", 0, "p99"}, {"p99", 999, "p99"}, {"p999", 1000, "p99.9"},
		{"last-p999", 9999, "p99.9"}, {"enough", 10_000, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, ok := thinTail(tt.n, workload.Of(sample.Load{Kind: workload.RR}))
			if ok != (tt.want != "") {
				t.Fatalf("%d samples: %+v, %t", tt.n, w, ok)
			}
			if ok && (w.Code != ThinTail || w.Found.What != tt.want) {
				t.Errorf("%+v, want one for %s", w, tt.want)
			}
		})
	}
}

func TestSayChange(t *testing.T) {
	for want, c := range map[string]sample.Change{
		"MTU of veth-s1 on machine A was 1500 and is 600 since round 3": {Round: 2,
			Difference: sample.Difference{Where: "machine A", What: "MTU of veth-s1", Was: "1500",
				Is: "600"}},
		"eth0 in server container was veth and is gone since round 1": {
			Difference: sample.Difference{Where: "server container", What: "eth0", Was: "veth"}},
		"chain netdev x y on this machine was not there and is 1 rule since round 1": {
			Difference: sample.Difference{Where: "this machine", What: "chain netdev x y",
				Is: "1 rule"}},
	} {
		if got := sayChange(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
