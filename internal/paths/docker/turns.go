package docker

import (
	"context"
	"runtime"
	"sync"
)

// turns limits the number of parallel requests: more are not faster, and an interrupt would wait
// for all of them. The zero value is ready to use.
type turns struct {
	once sync.Once // sets free
	free chan struct{}
}

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
