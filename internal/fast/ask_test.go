package fast

import (
	"net/netip"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/replica"
)

// A result that a busy machine may have caused is doubtful.
func TestDoubtful(t *testing.T) {
	client := netip.MustParseAddr("172.17.0.1")
	got := func(g replica.Got, l *replica.Lost) replica.Answer {
		return replica.Answer{Outcomes: []replica.Outcome{{Got: g, Seen: client}}, Lost: l}
	}
	served := got(replica.Connected, nil)
	torn := replica.Answer{Outcomes: append(served.Outcomes, replica.Outcome{Got: replica.Timeout})}
	unsure := served
	unsure.Unsure = []string{"BPF program x"}
	for name, test := range map[string]struct {
		first, long   replica.Answer
		fit, doubtful bool
	}{
		"served":         {served, served, true, false},
		"rejected":       {got(replica.Refused, nil), served, false, false},
		"dropped":        {got(replica.Timeout, &replica.Lost{Rule: &replica.Rule{}}), served, false, false},
		"not routed":     {got(replica.Timeout, &replica.Lost{Why: replica.NoRoute}), served, false, false},
		"unsure":         {unsure, served, false, false},
		"lost":           {got(replica.Timeout, nil), served, false, true},
		"lost, no trace": {got(replica.Silent, &replica.Lost{Why: replica.Untraced}), served, false, true},
		"long lost":      {served, got(replica.Timeout, nil), false, true},
		"sometimes lost": {served, torn, false, true},
	} {
		x := trials{machine: &replica.Machine{Spaces: make([]replica.Space, 1)}}
		why := x.judge(t.Context(), way{}, []replica.Answer{test.first, test.long})
		if why == "" != test.fit || x.doubtful != test.doubtful {
			t.Errorf("%s: %q, doubtful: %t", name, why, x.doubtful)
		}
	}
}

func TestRetries(t *testing.T) {
	w := Watcher{fast: &Fast{}}
	if w.retry() != nil {
		t.Error("a clear answer is asked again")
	}
	w.tries = 1
	select {
	case <-w.retry():
	case <-time.After(patience):
		t.Error("a doubtful answer is not asked again")
	}
}
