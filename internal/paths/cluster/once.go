package cluster

import (
	"context"
	"sync"
)

// Once holds what a backend has started, until it is closed. The zero value is ready to use.
type Once[T any] struct {
	mu      sync.Mutex // guards the fields that follow
	begun   bool
	started T
	err     error // why there is no value
}

// Start returns what the first call of begin started, or its error. An error because ctx ended is
// not remembered.
func (o *Once[T]) Start(ctx context.Context, begin func(context.Context) (T, error)) (T, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun {
		return o.started, o.err
	}
	started, err := begin(ctx)
	if err != nil && ctx.Err() != nil {
		return started, err
	}
	o.begun, o.started, o.err = true, started, err
	return started, err
}

// Close ends what was started, if anything was. The next Start begins again.
func (o *Once[T]) Close(end func(T) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var none T
	begun, started, err := o.begun, o.started, o.err
	o.begun, o.started, o.err = false, none, nil
	if !begun || err != nil {
		return nil
	}
	return end(started)
}
