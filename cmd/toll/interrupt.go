package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

// interrupted is how a command ends that a signal stopped; nil if none did.
func interrupted(ctx context.Context) error {
	var stop signaled
	if !errors.As(context.Cause(ctx), &stop) {
		return nil
	}
	return &failure{code: exitSignalled + int(stop.Signal)}
}

// atOnce makes the RunE of a command that leaves nothing behind end with the first
// signal, whatever it waits for: a pipe without a writer, a terminal. What it does
// goes on until the process ends, which is next.
func atOnce(f func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		done := make(chan error, 1)
		go func() { done <- f(c, args) }()
		select {
		case err := <-done:
			return err
		case <-c.Context().Done():
			if err := interrupted(c.Context()); err != nil {
				return err
			}
			return context.Cause(c.Context())
		}
	}
}
