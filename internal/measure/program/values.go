package program

import (
	"errors"

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
