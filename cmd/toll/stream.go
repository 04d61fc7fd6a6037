package main

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/load"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

const streaming = "stream"

// streamFlags are those of stream.
type streamFlags struct {
	sessions, tokens int
	pace             float64
}

func (f *streamFlags) add(fl *pflag.FlagSet) {
	fl.IntVar(&f.sessions, "sessions", 1, "stream: sessions, each with a connection and one response after another")
	fl.IntVar(&f.tokens, "tokens", load.DefaultTokens, "stream: tokens of a response")
	fl.Float64Var(&f.pace, "tokens-per-second", load.DefaultPace, "stream: pace of each session")
}

// Bounds of what the flags take.
const (
	maxSessions = 1000
	minPace     = 1
	maxPace     = 10_000
	maxResponse = 50 // seconds: delays and response times are kept up to a minute
)

// A window holds a whole response of each session and the beginning of the
// next one: both ends' processing and, of what a wire delays, the request, the
// first and the last token.
const (
	streamSettled = 0.1
	streamTrips   = 4
)

func (f *streamFlags) check(kinds []string) error {
	if !slices.Contains(kinds, streaming) {
		return nil
	}
	switch {
	case f.sessions < 1 || f.sessions > maxSessions:
		return usage(fmt.Errorf("--sessions %d: must be from 1 to %d", f.sessions, maxSessions), "")
	case f.tokens < 1 || f.tokens > load.MaxTokens:
		return usage(fmt.Errorf("--tokens %d: must be from 1 to %d", f.tokens, load.MaxTokens), "")
	case !(f.pace >= minPace && f.pace <= maxPace):
		return usage(fmt.Errorf("--tokens-per-second %g: must be from %d to %d", f.pace, minPace, maxPace), "")
	case float64(f.tokens)/f.pace > maxResponse:
		return usage(fmt.Errorf("--tokens %d at --tokens-per-second %g: a response would take %.3g s, at most %d can be measured",
			f.tokens, f.pace, float64(f.tokens)/f.pace, maxResponse), "fewer tokens, or a faster pace")
	}
	return f.room()
}

// room refuses sessions for which there are too few files: of our ends one for
// each, and of a docker-proxy with its pipes six.
func (f *streamFlags) room() error {
	const others, each = 100, 6
	here := machine.Machine{}
	if err := here.Room(machine.Crowd{Files: others + each*f.sessions}); err != nil {
		return &failure{code: exitNothing, err: fmt.Errorf("--sessions %d: %w", f.sessions, err)}
	}
	return nil
}

func streamLoad(f *loadFlags, w sample.Wire) sample.Load {
	s := f.stream
	return sample.Load{Streams: s.sessions, Tokens: s.tokens, Pace: s.pace,
		Warmup: 0.1 + settled*w.RoundTrip() + load.Stagger(s.sessions, s.pace),
		Window: float64(s.tokens)/s.pace + streamSettled + streamTrips*w.RoundTrip()}
}

var parseNodelay = closed("nodelay", "on", "off")
