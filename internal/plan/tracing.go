package plan

import (
	"math/rand/v2"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// TracingOf returns how the epochs of a round are traced: every state once in each block of rounds,
// in an order shuffled by the seed.
func TracingOf(p sample.Plan, round int) sample.Tracing {
	if p.Trace == nil {
		return sample.Untraced
	}
	all := TracingStates(p)
	block := uint64(round / len(all))
	const stream = 1 << 63 // apart from the orders of rounds and epochs
	order := rand.New(rand.NewPCG(p.Seed, stream|block)).Perm(len(all))
	return all[order[round%len(all)]]
}

// TracingStates returns the states of a traced plan's epochs.
func TracingStates(p sample.Plan) []sample.Tracing {
	all := []sample.Tracing{sample.Untraced, sample.Traced, sample.TracedThrice}
	if p.Trace.Hooks {
		all = append(all, sample.TracedHooks)
	}
	return all
}
