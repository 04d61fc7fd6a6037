package program

import (
	"errors"
	"fmt"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Values returns the metrics that a client printed, and how long it took, in base units. The error
// is an *Error.
func (s State) Values(gauges []sample.Gauge) (map[string]float64, error) {
	out := map[string]float64{sample.Elapsed: s.Elapsed.Seconds()}
	for _, g := range gauges {
		x, err := extract(g, s.Stdout+"\n"+s.Stderr)
		if err != nil {
			s.Error = err.Error()
			return nil, &Error{State: s}
		}
		out[g.Name] = x
	}
	return out, nil
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
