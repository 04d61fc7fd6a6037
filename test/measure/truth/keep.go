package truth

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/kernel/undo"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// keeping builds each path once, so that several runs and other programs use it. Close of a path
// only returns it.
type keeping struct {
	path.Builder
	mu    sync.Mutex // guards following
	paths map[path.Spec]*path.Path

	second bool
}

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
