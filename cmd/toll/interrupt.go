package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

// interrupted returns the error of a command that a signal stopped, or nil if none did.
func interrupted(ctx context.Context) error {
	var stop signaled
	if !errors.As(context.Cause(ctx), &stop) {
		return nil
	}
	return &failure{code: exitSignalled + int(stop.Signal)}
}

// atOnce wraps the RunE of a command that leaves nothing behind, so that it ends with the first
// signal even if it waits for a pipe without a writer or a terminal. f goes on in the background
// until the process exits, which is soon.
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
