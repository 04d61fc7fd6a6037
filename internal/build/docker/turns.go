package docker

import (
	"context"
	"runtime"
	"sync"
)

// turns are for what few may do at a time. A daemon makes no more of many requests at
// once than of a few, and what was requested cannot be taken back: an interrupt
// would have to wait for all of them. The zero value is ready.
type turns struct {
	once sync.Once // sets free
	free chan struct{}
}

// take waits for a turn, until ctx ends. Done gives it back.
func (t *turns) take(ctx context.Context) (done func(), err error) {
	t.once.Do(func() { t.free = make(chan struct{}, 2*runtime.NumCPU()) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case t.free <- struct{}{}:
		return func() { <-t.free }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
