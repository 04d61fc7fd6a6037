package cluster

import (
	"context"
	"sync"
)

// Once is what a backend has started: once, and until it is closed. The zero value is ready.
type Once[T any] struct {
	mu      sync.Mutex // guards following
	begun   bool
	started T
	err     error // why there is none
}

// Start is what begin started when it was called first, or why it could not. That ctx ended is
// nobody's fault, and not remembered.
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

// Close ends what was started, if anything was. Then Start begins anew.
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
