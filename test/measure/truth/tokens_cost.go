package truth

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// watchLimit is how much later a response may end because its packets are captured, in s.
const watchLimit = 20e-6

// watchedTokens shows how much later responses end while toll captures their packets.
func (t *trial) watchedTokens(ctx context.Context) (_ []table, err error) {
	out := table{title: "Tokens: what watching adds",
		text: fmt.Sprintf("`toll stream` with one session to a server that sends each token at a fixed time "+
			"after the request, in %d turns as root, who captures packets, and as a user, who may not. It "+
			"holds if root's responses (median of 8) end at most %.0f µs later, the median over turns.",
			t.scale.watched, watchLimit/microsecond),
		head: []string{"turns", "later by", "the middle half of the turns"}}
	w, err := newTokenWorld()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	var later []float64
	for i := range t.scale.watched {
		var ends [2]float64
		for k := range ends {
			user := uint32(nobody)
			if (i+k)%2 == 0 {
				user = 0
			}
			r, err := t.streamAs(ctx, w, user, serverAt, "--tokens", fmt.Sprint(tokensEach), "--requests", "8")
			if err != nil {
				return nil, err
			}
			ends[min(user, 1)] = r.Cells[0].Metrics[workload.ResponseTime].Median
		}
		later = append(later, ends[0]-ends[1])
	}
	slices.Sort(later)
	at := func(share float64) float64 { return later[int(share*float64(len(later)-1))] }
	micro := func(x float64) string { return fmt.Sprintf("%+.1f µs", x/microsecond) }
	middle := stats.Median(later)
	out.add(holdsIf(middle <= watchLimit), fmt.Sprint(len(later)), micro(middle),
		micro(at(0.25))+" to "+micro(at(0.75)))
	return []table{out}, nil
}
