package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// mostRepeats is how often visits are repeated if toll's own channel was used in their windows, or
// if another program traced the kernel meanwhile.
const mostRepeats = 2

type channelError struct {
	to    string
	bytes uint64
}

func (e *channelError) Error() string {
	return fmt.Sprintf("the channel to %s carried %d bytes in the window", e.to, e.bytes)
}

func (r *run) repeated(ctx context.Context, visits func() []sample.Visit) []sample.Visit {
	for n := 0; ; n++ {
		r.disturbed.Store(false)
		made := visits()
		if n < mostRepeats && r.disturbed.Load() && r.cut == nil && ctx.Err() == nil {
			continue
		}
		for i := range made {
			made[i].Repeats = n
		}
		return made
	}
}

// notice makes repeated repeat the visits if err is one of these disturbances. It may be called
// concurrently.
func (r *run) notice(err error) {
	if used := (*channelError)(nil); errors.As(err, &used) || errors.Is(err, errBeside) {
		r.disturbed.Store(true)
	}
}
