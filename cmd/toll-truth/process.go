package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/peer"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

type process struct {
	*path.Process
	out  []byte        // its output, once it has ended
	err  error         // its error, once it has ended
	done chan struct{} // closed when it has ended
	stop func() bool
}

// spawn starts a command in a place. The end of ctx kills it.
func spawn(ctx context.Context, at path.Place, command []string) (*process, error) {
	started, err := at.Start(path.Command{Args: append([]string{becomeArg}, command...)})
	if err != nil {
		return nil, err
	}
	p := &process{Process: started, done: make(chan struct{})}
	p.stop = context.AfterFunc(ctx, p.killGroup)
	go func() {
		defer close(p.done)
		var readErr error
		p.out, readErr = io.ReadAll(p.Out)
		p.err = errors.Join(p.Wait(), readErr)
		p.Out.Close()
		if p.err != nil {
			p.err = fmt.Errorf("%s: %w", strings.Join(command, " "), p.err)
		}
		if ctx.Err() != nil {
			p.err = errors.Join(p.err, context.Cause(ctx))
		}
	}()
	return p, nil
}

// wait waits until the program ends by itself or is killed by its context.
func (p *process) wait() error {
	<-p.done
	p.stop()
	p.In.Close()
	return p.err
}

// kill kills the program and waits for its end.
func (p *process) kill() {
	p.killGroup()
	_ = p.wait() // it was killed
}

// killGroup kills the program and its child processes (qperf's server forks). The only possible
// error is that they have ended.
func (p *process) killGroup() { _ = syscall.Kill(-p.PID, syscall.SIGKILL) }

// listens waits until a socket in the program's namespace listens on port.
func (p *process) listens(ctx context.Context, port uint16) error {
	const poll = 5 * time.Millisecond
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return errors.Join(errors.New("the server ended"), p.err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if ok, err := peer.Listens(p.PID, port); ok || err != nil {
			return err
		}
	}
}

// within runs a command in a place and returns its output.
func within(ctx context.Context, at path.Place, input string, command ...string) (string, error) {
	p, err := spawn(ctx, at, command)
	if err != nil {
		return "", err
	}
	_, writeErr := io.WriteString(p.In, input)
	p.In.Close()
	if err := p.wait(); err != nil { // it says more than a broken pipe
		return "", err
	}
	return string(p.out), writeErr
}
