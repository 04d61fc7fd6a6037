package main

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/build/undo"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// keeping is a builder whose paths stay: each is built once, and those who close it
// only give it back. So several runs, and other programs, have the same one.
type keeping struct {
	path.Builder
	mu    sync.Mutex // guards following
	paths map[path.Spec]*path.Path

	second bool // each path has a second port
}

// Build is the path that there is, or a new one.
func (k *keeping) Build(ctx context.Context, s path.Spec) (*path.Path, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.Second = s.Second || k.second
	p := k.paths[s]
	if p == nil {
		var err error
		if p, err = k.Builder.Build(ctx, s); err != nil {
			return nil, err
		}
		k.paths[s] = p
	}
	return lent(p), nil
}

// lent is the path with all that it has, without what its end would undo.
func lent(p *path.Path) *path.Path {
	out := &path.Path{}
	was, is := reflect.ValueOf(p).Elem(), reflect.ValueOf(out).Elem()
	for i := range was.NumField() {
		if was.Type().Field(i).Type != reflect.TypeFor[undo.Stack]() {
			is.Field(i).Set(was.Field(i))
		}
	}
	return out
}

// of is the path of a mode that was built.
func (k *keeping) of(m mode.Name) *path.Path {
	k.mu.Lock()
	defer k.mu.Unlock()
	for s, p := range k.paths {
		if s.Mode == m {
			return p
		}
	}
	return nil
}

func (k *keeping) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for _, p := range k.paths {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
