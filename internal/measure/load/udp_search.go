package load

import "github.com/bridgetoll/bridgetoll/internal/machine/clock"

// The warm-up searches for the highest rate without loss by short steps. A step is good if at most
// the share tolerated was lost and the server received the rest as fast as it was sent. Slower
// arrival means that a growing queue hides the loss.
const (
	stepTime  = 25e6   // ns
	stepSlack = 1500e3 // ns that receiving may take longer than sending
	// tolerated is the share of datagrams that may be lost at the highest rate.
	tolerated = 0.001
	// unheard is the share of a rate assumed to have arrived if the server does not reply.
	unheard = 0.25
	// answerSlack is how long, in ns, a step's answer usually takes.
	answerSlack = 4e6
	// drainTime is how long, in ns, a step's queues may take to drain.
	drainTime = 60e6
	narrow    = 1.05 // ends of the bracket with this ratio are close enough
	upward    = 1.15 // times the highest good rate
	backOff   = 0.9  // times the rate that arrived
	fallBack  = 0.7  // times the lowest bad rate, while no rate was good
	lastDitch = 0.5  // times the rate that arrived at the lowest bad rate, if no rate was good
	margin    = 0.95 // times the highest good rate: a window fills queues that a short step does not
	// At the end of the warm-up the rate is confirmed for longer, and lowered while it shows loss,
	// because short steps miss rare stalls.
	confirmTime  = 100e6 // ns
	confirmShare = 0.46  // share of the rest of the warm-up
	lowered      = 0.8
)

// bracket is in datagrams per second.
type bracket struct {
	top  float64 // as fast as possible; 0: not tried
	flat bool    // top was good
	good float64 // the highest good rate; 0: none
	bad  float64 // the lowest bad rate; 0: none
	got  float64 // the rate that arrived at bad
	sure int     // steps since good and bad are close
}

// step records a step at rate (0: as fast as possible), with the rates sent and received. ok means
// that the step was good.
func (b *bracket) step(rate, sent, got float64, ok bool) {
	if rate == 0 {
		b.top, b.flat = sent, ok
		rate = sent
	}
	switch {
	case ok:
		b.good = max(b.good, rate)
		if b.bad <= b.good {
			b.bad = 0
		}
	default:
		if got == 0 { // not even an answer
			got = unheard * rate
		}
		b.bad, b.got = rate, got
		if b.good >= b.bad {
			b.good = 0
		}
	}
}

// next returns the rate to try (0: as fast as possible).
func (b *bracket) next() float64 {
	switch {
	case b.top == 0 || b.flat:
		return 0
	case b.good == 0:
		return min(backOff*b.got, fallBack*b.bad)
	case b.bad == 0 && upward*b.good >= b.top:
		return 0
	case b.bad == 0:
		return upward * b.good
	case b.bad > narrow*b.good:
		return (b.good + b.bad) / 2
	}
	if b.sure++; b.sure%2 == 0 {
		return b.bad // once more, because noise may have disturbed it
	}
	return margin * b.good
}

// best returns the rate to measure at (0: as fast as possible).
func (b *bracket) best() float64 {
	switch {
	case b.flat || b.top == 0:
		return 0
	case b.good > 0:
		return margin * b.good
	}
	return lastDitch * min(b.got, b.bad)
}

func (s *sender) search() float64 {
	var b bracket
	n := byte(1)
	confirm := int64(confirmShare * float64(s.t.when.From-s.t.when.Start))
	for ; n != 0 && s.fits(stepTime, confirm); n++ {
		rate := atLeast(s.slowest(), b.next())
		sent, got, ok := s.try(rate, n, stepTime)
		if s.t.err != nil {
			break
		}
		b.step(rate, sent, got, ok)
	}
	rate := atLeast(s.slowest(), b.best())
	for ; n != 0 && s.t.err == nil && s.fits(confirmTime, 0); n++ {
		sent, _, ok := s.try(rate, n, confirmTime)
		if ok {
			break
		}
		if rate == 0 {
			rate = sent
		}
		rate = atLeast(s.slowest(), lowered*rate)
	}
	return rate
}

func (s *sender) fits(length, before int64) bool {
	return clock.Now()+length+2*s.f.rtt+answerSlack+before <= s.t.when.From
}

func (s *sender) slowest() float64 {
	const calls = 4
	return calls * float64(len(s.f.msgs.bufs)*s.f.msgs.each) * 1e9 / stepTime
}

func atLeast(slowest, rate float64) float64 {
	if rate == 0 {
		return 0
	}
	return max(slowest, rate)
}

// try makes a step of length ns. It returns the datagrams sent and received per second.
func (s *sender) try(rate float64, step byte, length int64) (sent, got float64, ok bool) {
	first, began := s.seq, clock.Now()
	ended := began
	s.run(rate, step, func(now, _ int64) bool { ended = now; return now >= began+length })
	took, n := float64(ended-began), float64(s.seq-first)
	sent = n * 1e9 / took
	r := s.converse(head{kind: ask, step: step, run: s.f.run}, report,
		min(drainTime+4*s.f.rtt, s.t.when.From-clock.Now()), int64(step))
	if r == nil {
		return sent, 0, false
	}
	arrived, span := float64(number(r, 1)), float64(number(r, 3)-number(r, 2))
	got = arrived * 1e9 / max(span, took)
	return sent, got, n-arrived <= tolerated*n && span <= took+stepSlack
}
