package load

import "github.com/bridgetoll/bridgetoll/internal/machine/clock"

// The highest rate without loss is searched in the warm-up by short steps, each
// at a rate of its own, whose datagrams the server counts: first as fast as can
// be, then between what went through and what did not. A step is good if no
// more than tolerated was lost and if the server got the rest as fast as it was
// sent: a queue that only grows would hide the loss of a short step.
const (
	stepTime  = 25e6   // ns
	stepSlack = 1500e3 // ns by which arriving may take longer than sending
	// tolerated is the share that may be lost at the rate that is searched.
	tolerated = 0.001
	unheard   = 0.25 // the same if it is not known what arrived
	// answerSlack is how long a step's answer usually takes, in ns.
	answerSlack = 4e6
	// drainTime bounds how long a step's queues may take to drain, in ns.
	drainTime = 60e6
	narrow    = 1.05 // of the bracket's ends: good enough
	upward    = 1.15 // beyond the highest rate that was tried and good
	backOff   = 0.9  // of what came through of too much
	fallBack  = 0.7  // of the lowest rate that was bad, as long as none was good
	lastDitch = 0.5  // the same if none ever was
	margin    = 0.95 // of the highest good rate: a slack that a short step does not show fills queues in a window
	// The rate that the steps have found is confirmed for longer at the end of the
	// warm-up, and lowered as long as that shows loss: what stops a receiver for a
	// moment comes seldom, and short steps miss it.
	confirmTime  = 100e6 // ns
	confirmShare = 0.46  // of the warm-up that is left for it
	lowered      = 0.8
)

// bracket is what the steps have shown. Rates are in datagrams a second.
type bracket struct {
	top  float64 // what as fast as can be was; 0: not tried
	flat bool    // it was good
	good float64 // the highest rate that was good; 0: none
	bad  float64 // the lowest that was not; 0: none
	got  float64 // what came through of it
	sure int     // steps since both are close
}

// step notes a step at a rate, 0 as fast as can be, at which so much was sent
// and came through.
func (b *bracket) step(rate, sent, got float64, ok bool) {
	if rate == 0 {
		b.top, b.flat = sent, ok
		rate = sent
	}
	switch {
	case ok:
		b.good = max(b.good, rate)
		if b.bad <= b.good { // it was a passing disturbance
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

// next is the rate to try; 0 is as fast as can be.
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
		return b.bad // once more: noise may have spoilt it
	}
	return margin * b.good // what will be measured
}

// best is the rate to measure at; 0 is as fast as can be.
func (b *bracket) best() float64 {
	switch {
	case b.flat || b.top == 0:
		return 0
	case b.good > 0:
		return margin * b.good
	}
	return lastDitch * min(b.got, b.bad)
}

// search tries rates in steps, and then confirms the best, until the warm-up is
// nearly over.
func (s *sender) search() float64 {
	var b bracket
	n := byte(1)
	confirm := int64(confirmShare * float64(s.t.when.From-s.t.when.Start))
	for ; n != 0 && s.fits(stepTime, confirm); n++ { // as many as a head can tell apart
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
		if rate == 0 { // as fast as can be
			rate = sent
		}
		rate = atLeast(s.slowest(), lowered*rate)
	}
	return rate
}

// fits reports whether a step of that length ends long enough before the window.
func (s *sender) fits(length, before int64) bool {
	return clock.Now()+length+2*s.f.rtt+answerSlack+before <= s.t.when.From
}

// slowest is the rate below which a step would hold too few calls to tell.
func (s *sender) slowest() float64 {
	const calls = 4
	return calls * float64(len(s.f.msgs.bufs)*s.f.msgs.each) * 1e9 / stepTime
}

// atLeast is the rate, but not below the slowest; 0, as fast as can be, it is.
func atLeast(slowest, rate float64) float64 {
	if rate == 0 {
		return 0
	}
	return max(slowest, rate)
}

// try makes a step of a length in ns and says what was sent and came through a
// second.
func (s *sender) try(rate float64, step byte, length int64) (sent, got float64, ok bool) {
	first, began := s.seq, clock.Now()
	ended := began
	s.run(rate, step, func(now, _ int64) bool { ended = now; return now >= began+length })
	took, n := float64(ended-began), float64(s.seq-first)
	sent = n * 1e9 / took
	r := s.converse(head{kind: ask, step: step, run: s.f.run}, report, min(drainTime+4*s.f.rtt, s.t.when.From-clock.Now()), int64(step))
	if r == nil {
		return sent, 0, false
	}
	arrived, span := float64(number(r, 1)), float64(number(r, 3)-number(r, 2))
	got = arrived * 1e9 / max(span, took)
	return sent, got, n-arrived <= tolerated*n && span <= took+stepSlack
}
