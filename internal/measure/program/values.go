package program

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func (s State) output() string { return s.Stdout + "\n" + s.Stderr }

// Values returns the metrics that a client printed, and how long it took, in base units. The error
// is an *Error. With lines that match p.Fault there are both metrics and an error.
func (s State) Values(p sample.Program) (map[string]float64, error) {
	out := map[string]float64{sample.Elapsed: s.Elapsed.Seconds()}
	var fault error
	if line := s.matching(p.Fault); line != "" {
		fault = &Error{State{Error: "it did not do all its work: it said: " + line}}
	}
	for _, g := range p.Gauges {
		x, err := extract(g, s.output())
		var none *noMetricError
		if errors.As(err, &none) && (g.Optional || fault != nil) {
			continue
		}
		if err != nil {
			s.Error = err.Error()
			return nil, &Error{State: s}
		}
		out[g.Name] = x
	}
	return out, fault
}

// matching returns the matches of a pattern in the output, in one line.
func (s State) matching(pattern string) string {
	if pattern == "" {
		return ""
	}
	re, err := inLines(pattern)
	if err != nil {
		return err.Error()
	}
	return lastLines(strings.Join(re.FindAllString(s.output(), -1), "\n"), saidBytes)
}

const (
	busyTries = 8
	busyPause = 250 * time.Millisecond // before the second try, and half as long again before each other
)

// Again runs a client until its output does not match p.Again, at most busyTries times. wait waits
// between two tries.
func Again(p sample.Program, run func() (State, error),
	wait func(time.Duration) error) (State, error) {
	for try, pause := 1, busyPause; ; try, pause = try+1, pause*3/2 {
		st, err := run()
		if try == busyTries || st.matching(p.Again) == "" {
			return st, err
		}
		if wait(pause) != nil {
			return st, err
		}
	}
}

// A one-shot server may end a little before its client does.
const (
	oneShot      = 250 * time.Millisecond
	oneShotShare = 0.1 // of the client's time
)

// Died returns an *Error unless the server, read after its client's end, still ran or had ended
// well: with exit status 0, and not long before the client. A server that ended before its client
// began has left a daemon; only the daemon's death counts.
func (s State) Died(client State) error {
	before := time.Duration(client.EndedAt - s.EndedAt)
	switch {
	case !s.Ended:
		return nil
	case s.Exit != "":
		s.Error = "it ended before it was stopped"
	case s.Orphan != "":
		s.Error, s.Exit = "the process that it left running ended", s.Orphan
	case client.EndedAt != 0 && before < client.Elapsed &&
		before > max(oneShot, time.Duration(oneShotShare*float64(client.Elapsed))):
		s.Error = fmt.Sprintf("it ended %s before the client", before.Round(time.Millisecond))
	default:
		return nil
	}
	return &Error{State: s}
}

// Kept returns the end of what a program wrote, at most most bytes of each stream.
func (s State) Kept(most int) string {
	out := keptEnd(s.Stdout, most)
	if s.Stderr == "" {
		return out
	}
	if out != "" {
		out += "\n"
	}
	return out + keptEnd(s.Stderr, most)
}

// StateOf returns the state in an *Error, or the zero value for other errors.
func StateOf(err error) State {
	var told *Error
	if errors.As(err, &told) {
		return told.State
	}
	return State{}
}
