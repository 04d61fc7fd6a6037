package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// mostRepeats bounds how often a visit is repeated because toll's own channel spoke in its window.
const mostRepeats = 2

// spokeError is the failure of a visit in whose window a control channel of toll's own carried
// traffic. The path is not to blame, and the next visit may go well.
type spokeError struct {
	to    string
	bytes uint64
}

func (e *spokeError) Error() string {
	return fmt.Sprintf("the channel to %s carried %d bytes in the window", e.to, e.bytes)
}

// repeated makes visits, and makes them again at once, at most mostRepeats times, if a channel
// spoke in the window of one. It returns the last ones, which know how often they were repeated.
func (r *run) repeated(ctx context.Context, visits func() []sample.Visit) []sample.Visit {
	for n := 0; ; n++ {
		r.spoke.Store(false)
		made := visits()
		if n < mostRepeats && r.spoke.Load() && r.cut == nil && ctx.Err() == nil {
			continue
		}
		for i := range made {
			made[i].Repeats = n
		}
		return made
	}
}

// notice notes that a visit failed because a channel spoke. It may be called at once from several
// goroutines.
func (r *run) notice(err error) {
	if spoke := (*spokeError)(nil); errors.As(err, &spoke) {
		r.spoke.Store(true)
	}
}
