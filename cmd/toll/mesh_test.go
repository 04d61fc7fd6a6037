package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/path"
)

// lacking are nodes that lack something, and ones that cannot be asked.
type lacking struct{ it, broken []string }

var errBroken = errors.New("the engine is gone")

func (l lacking) Check(_ context.Context, s path.Spec) error {
	for _, n := range []string{s.Client, s.Server} {
		switch {
		case slices.Contains(l.it, n):
			return &path.UnsupportedError{Missing: "node " + n + " has no ESP"}
		case slices.Contains(l.broken, n):
			return errBroken
		}
	}
	return nil
}

// A mesh is refused if the first nodes cannot be measured, and not because of one.
func TestOneNodeThatLacksSomething(t *testing.T) {
	for _, tt := range []struct {
		name  string
		s     lacking
		nodes []string
		want  string // the error; "": none
	}{
		{"none", lacking{}, []string{"a", "b", "c"}, ""},
		{"the-first", lacking{it: []string{"a"}}, []string{"a", "b", "c", "d"}, ""},
		{"the-second", lacking{it: []string{"b"}}, []string{"a", "b", "c"}, ""},
		{"two-of-three", lacking{it: []string{"b", "c"}}, []string{"a", "b", "c"}, "node b has no ESP"},
		{"one-of-two", lacking{it: []string{"b"}}, []string{"a", "b"}, "node b has no ESP"},
		{"broken", lacking{it: []string{"a"}, broken: []string{"c"}}, []string{"a", "b", "c"}, errBroken.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := checkMesh(context.Background(), tt.s, path.Spec{}, tt.nodes); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("error %q, want %q", got, tt.want)
			}
		})
	}
}
