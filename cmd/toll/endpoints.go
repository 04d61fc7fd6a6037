package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/build/vantage"
	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// external are the endpoints of a command.
type external interface {
	engine.Endpoints
	Names() []string
	// Check has each endpoint answer once.
	Check(ctx context.Context) error
}

// endpoints runs a comparison of endpoints, with the loads.
func (f *runFlags) endpoints(c *cobra.Command, e env, w external, ls []sample.Load, from []*vantage.Vantage) (err error) {
	if !c.Flags().Changed("seed") {
		f.seed = uint64(rand.Uint32())
	}
	if err := errors.Join(f.checkLive(c), f.out.check(place{saveFlag, f.save})); err != nil {
		return err
	}
	names := w.Names()
	if f.baseline == "" {
		f.baseline = names[0]
	}
	if !slices.Contains(names, f.baseline) {
		return usage(fmt.Errorf("--baseline %s: no such endpoint", f.baseline), "the endpoints are: "+strings.Join(names, ", "))
	}
	p, err := plan.Endpoints(plan.Request{Loads: ls, Baseline: mode.Name(f.baseline), Precision: f.precision,
		Rounds: f.rounds, Budget: f.budget.Seconds(), Seed: f.seed}, names)
	if err != nil {
		return usage(err, "")
	}
	if f.dryRun {
		return f.out.print(e, planDocument(p, nil))
	}
	end, err := vantage.Open(c.Context(), "", from)
	if err != nil {
		if stop := interrupted(c.Context()); stop != nil {
			return stop
		}
		return &failure{exitNothing, err, ""}
	}
	defer func() {
		if left := end(); left != nil {
			err = errors.Join(err, left)
		}
	}()
	defer func() { err = errors.Join(err, ending(w)) }() // before the places are taken away
	if err := w.Check(c.Context()); err != nil {
		if stop := interrupted(c.Context()); stop != nil {
			return stop
		}
		return &failure{exitNothing, err, statusHint(err)}
	}
	newProgress(e.stderr, f.quiet).clear()
	return f.measure(c.Context(), e, engine.Config{Plan: p, Endpoints: w})
}

// fromFlag is where endpoints are asked from.
func fromFlag(fl *pflag.FlagSet, words *[]string) {
	fl.StringSliceVar(words, "from", []string{vantage.Here}, "from where, one or several: host, container:NAME (inside its network), network:NAME (a new container there)")
}

// fromPlaces are the addresses from each place.
func fromPlaces(at []endpoint.Address, words []string) ([]endpoint.Address, []*vantage.Vantage, error) {
	var places []*vantage.Vantage
	for i, w := range words {
		v, err := vantage.New(w)
		if err == nil && slices.Contains(words[:i], w) {
			err = fmt.Errorf("%s is named twice", w)
		}
		if err != nil {
			return nil, nil, usage(fmt.Errorf("--from: %w", err), "")
		}
		places = append(places, v)
	}
	if len(places) == 0 {
		return nil, nil, usage(errors.New("--from names no place"), "--from host")
	}
	return endpoint.From(at, places), places, nil
}

// statusHint is what to do about a server's refusal; "" if nothing is known.
func statusHint(err error) string {
	var status *openai.StatusError
	if !errors.As(err, &status) {
		return ""
	}
	switch status.Code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "--api-key-env NAME, with the key in the environment variable NAME"
	case http.StatusServiceUnavailable:
		return "it may still be loading its model: wait, and run again"
	}
	return ""
}

// parseEndpoints reads the endpoints of a command; what says in a word what each is
// given as.
func parseEndpoints(words []string, command, what, example string) ([]endpoint.Address, error) {
	if len(words) == 0 {
		return nil, usage(fmt.Errorf("%s takes at least one %s", command, what), example)
	}
	w, err := endpoint.ParseAddresses(words)
	if err != nil {
		return nil, usage(err, example)
	}
	return w, nil
}

// secret is what an environment variable holds; "" if no name was given.
func secret(flag, variable string) (string, error) {
	if variable == "" {
		return "", nil
	}
	s := os.Getenv(variable)
	if s == "" {
		return "", usage(fmt.Errorf("--%s %s: there is no such environment variable, or it is empty", flag, variable), "export "+variable+"=…")
	}
	return s, nil
}
