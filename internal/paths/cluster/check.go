package cluster

import (
	"context"
	"errors"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Check builds a path, closes it and returns the error. What the path shares with others stays
// until the backend is closed.
func Check(ctx context.Context, b path.Builder, spec path.Spec) error {
	p, err := b.Build(ctx, spec)
	var u *machine.UnsupportedError
	if errors.As(err, &u) {
		return u // without the path, which the caller adds
	}
	if err != nil {
		return err
	}
	return p.Close()
}

// Refuse returns an error for crowds, foreign programs and tunes of devices, which backends on
// other machines do not support.
func Refuse(s path.Spec) error {
	if n, m := s.Count(); n > 1 || m > 1 {
		return &machine.UnsupportedError{
			Missing: "on other machines, toll measures only one server and one client", Remedy: "--on lab or docker"}
	}
	if s.Second {
		return &machine.UnsupportedError{
			Missing: "toll does not start foreign programs on other machines",
			Remedy:  "toll run --on lab or docker"}
	}
	for _, t := range s.Tune.List() {
		if t.Key != mode.Nodelay { // nodelay is an option of the load
			return &machine.UnsupportedError{
				Missing: "toll sets " + string(t.Key) + " only on this machine",
				Remedy:  "--on lab or docker"}
		}
	}
	return nil
}

// NoMode returns the error for a mode that the backend's modes lack. It begins with lacks, such as
// "a swarm has no services".
func NoMode(lacks string, m mode.Name, modes []string) error {
	return &machine.UnsupportedError{Missing: lacks + " in mode " + string(m),
		Remedy: printable.Either(modes) + "; or --on lab", Lack: machine.LackMode}
}
