package undo

import (
	"errors"
	"slices"
	"testing"
)

func TestUndoRunsAllInReverseOrder(t *testing.T) {
	var (
		s     Stack
		order []int
		boom  = errors.New("boom")
	)
	for i, err := range []error{nil, boom, nil} {
		s.Push("step", func() error { order = append(order, i); return err })
	}
	if err := s.Undo(); !errors.Is(err, boom) || err.Error() != "step: boom" {
		t.Errorf("Undo() = %v", err)
	}
	if want := []int{2, 1, 0}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if err := s.Undo(); err != nil || len(order) != 3 {
		t.Errorf("second Undo() = %v, ran %d steps", err, len(order)-3)
	}
}
