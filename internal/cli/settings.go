package cli

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type settings interface {
	add(fl *pflag.FlagSet, k commandKind)
	// defaults returns the defaults of a run that also has the other backends, or nil for the
	// flags' defaults.
	defaults(others []string) (*defaults, error)
	// check checks the backend's flags. It is called only if the backend is used.
	check() error
	with(ctx context.Context, wire sample.Wire, use func(path.Builder) error) error
}

type defaults struct {
	modes    []string
	here     bool             // client and server are on one machine
	from     []mode.Placement // nil: the flag's default
	one      mode.Placement   // of commands without --baseline, which measure one placement; "": from
	baseline mode.Name        // "": the flag's
	mesh     string           // default of --mode of toll mesh
}

// commandKind is a set of flags. Each kind includes the flags of the kinds before.
type commandKind int

const (
	checksPaths commandKind = iota
	buildsPath
	comparesRuns // the commands that measure
)

func closing(b interface {
	path.Builder
	Close() error
}, use func(path.Builder) error) (err error) {
	defer func() { err = errors.Join(err, b.Close()) }()
	return use(b)
}
