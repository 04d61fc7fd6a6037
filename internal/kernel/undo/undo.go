// Package undo collects clean-up functions. Each step that makes something pushes its clean-up as
// soon as it is done, and Undo runs them in reverse order.
package undo

import (
	"errors"
	"fmt"
	"sync"
)

// Stack is a list of clean-ups. The zero value is ready to use. It is safe for concurrent use.
type Stack struct {
	mu    sync.Mutex // guards the fields that follow
	steps []step
}

type step struct {
	what string
	f    func() error
}

// Push adds a clean-up. what names it in errors, as in "stop the proxy".
func (s *Stack) Push(what string, f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step{what, f})
}

// Undo runs the clean-ups, the last pushed first, and forgets them. It never stops early and joins
// all errors.
func (s *Stack) Undo() error {
	s.mu.Lock()
	steps := s.steps
	s.steps = nil
	s.mu.Unlock()

	var errs []error
	for i := len(steps) - 1; i >= 0; i-- {
		if err := steps[i].f(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", steps[i].what, err))
		}
	}
	return errors.Join(errs...)
}
