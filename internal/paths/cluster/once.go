package cluster

import (
	"context"
	"sync"
)

// Once keeps what a backend has started until Close. The zero value is ready to use.
type Once[T any] struct {
	mu      sync.Mutex
	begun   bool
	started T
	err     error
}

// Start calls begin and returns its result. Later calls return the same result, even an error. Only
// if begin failed because ctx ended do they call begin again.
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

// Close calls end with the result of begin, if begin has succeeded. The next Start calls begin
// again.
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
