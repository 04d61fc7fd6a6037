package worker

import (
	"context"
	"errors"
	"io"

	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/measure/pipe"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Control is the parent's side of a worker.
type Control struct{ *pipe.Line[Reply] }

// ErrDied means that a worker ended without an answer.
var ErrDied = pipe.ErrDied

// NewControl returns the Control of a worker with this standard input and output. The caller calls
// Close and waits for the process.
func NewControl(in io.WriteCloser, out io.ReadCloser) *Control {
	return &Control{pipe.New[Reply](in, out)}
}

func (c *Control) await(ctx context.Context) (Reply, error) {
	r, err := c.Await(ctx)
	if err == nil && r.Error != "" {
		err = errors.New(r.Error)
	}
	return r, err
}

// Open sends the first request and waits until the worker listens or is connected.
func (c *Control) Open(ctx context.Context, r Request) error {
	if err := c.Send(r); err != nil {
		return err
	}
	_, err := c.await(ctx)
	return err
}

// Go sends the worker its schedule.
func (c *Control) Go(when load.Schedule) error { return c.Send(when) }

// Done waits for the load's end. The reply's Done is never nil.
func (c *Control) Done(ctx context.Context) (Reply, error) {
	r, err := c.await(ctx)
	if r.Done == nil {
		r.Done = &sample.Party{}
	}
	return r, err
}
