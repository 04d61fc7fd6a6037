package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

// asked limits the wait for the daemon's answer about a process.
const asked = 5 * time.Second

type contained struct{ *box }

var _ path.Place = contained{}

func (p contained) Name() string { return p.what }

// Start starts toll as `docker exec` does. Programs of the machine, which the image lacks, run on
// the machine with the container's network.
func (p contained) Start(c path.Command) (*path.Process, error) {
	if c.Apart {
		return local.StartSelf(p.ns, p.what, c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), asked)
	defer cancel()
	made, err := p.engine.API.ExecCreate(ctx, p.id,
		client.ExecCreateOptions{AttachStdin: true, AttachStdout: true, AttachStderr: true,
			Env: c.Env, Cmd: append([]string{dockerapi.InImage}, c.Args...)})
	if cerrdefs.IsNotFound(err) { // Docker's error has only the container's ID
		err = fmt.Errorf("the container is gone: it was removed, or %s was restarted",
			p.engine.words().daemon)
	}
	if err != nil {
		return nil, fmt.Errorf("start in %s: %w", p.what, err)
	}
	conn, err := p.engine.API.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
	if err != nil {
		return nil, fmt.Errorf("start in %s: %w", p.what, err)
	}
	out, w := io.Pipe()
	r := &running{api: p.engine.API, id: made.ID, conn: conn.HijackedResponse,
		ended: make(chan struct{})}
	go r.read(w)
	return &path.Process{PID: r.pid(ctx), In: input{&r.conn}, Out: out, Wait: r.wait, Kill: r.kill},
		nil
}

type running struct {
	api   *client.Client
	id    string
	conn  client.HijackedResponse
	said  local.Tail
	ended chan struct{}
	cut   error
}

func (r *running) read(out *io.PipeWriter) {
	defer close(r.ended)
	_, r.cut = stdcopy.StdCopy(&lenient{w: out}, &r.said, r.conn.Reader)
	_ = out.Close()
}

// pid returns 0 if the process has ended, or if the daemon does not answer in time.
func (r *running) pid(ctx context.Context) int {
	const (
		again  = 2 * time.Millisecond
		moment = 2 * time.Second
	)
	ctx, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	for {
		got, err := r.api.ExecInspect(ctx, r.id, client.ExecInspectOptions{})
		if err != nil || got.PID > 0 {
			return got.PID
		}
		select {
		case <-r.ended:
			return 0
		case <-ctx.Done():
			return 0
		case <-time.After(again):
		}
	}
}

func (r *running) wait() error {
	<-r.ended
	defer r.conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), asked)
	defer cancel()
	for {
		got, err := r.api.ExecInspect(ctx, r.id, client.ExecInspectOptions{})
		switch {
		case err != nil:
			return r.said.Explain(fmt.Errorf("its exit status is unknown: %w",
				errors.Join(err, r.cut)))
		case !got.Running && got.ExitCode == 0:
			return nil
		case !got.Running:
			return r.said.Explain(fmt.Errorf("exit status %d", got.ExitCode))
		}
		const again = 2 * time.Millisecond
		time.Sleep(again) // the output ends shortly before the process
	}
}

// kill sends SIGKILL directly, because Docker's API cannot signal an exec'd process.
func (r *running) kill() error {
	ctx, cancel := context.WithTimeout(context.Background(), asked)
	defer cancel()
	defer r.conn.Close()
	got, err := r.api.ExecInspect(ctx, r.id, client.ExecInspectOptions{})
	if err != nil || !got.Running || got.PID <= 0 {
		return nil //nolint:nilerr // container or daemon is gone, and so is the process
	}
	if err := unix.Kill(got.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// input is the process's standard input. Closing it ends the process.
type input struct{ conn *client.HijackedResponse }

func (i input) Write(b []byte) (int, error) { return i.conn.Conn.Write(b) }
func (i input) Close() error                { return i.conn.CloseWrite() }

// lenient discards data after a failed write, so that the stream is read to its end.
type lenient struct {
	w      io.Writer
	failed bool
}

func (l *lenient) Write(b []byte) (int, error) {
	if !l.failed {
		_, err := l.w.Write(b)
		l.failed = err != nil
	}
	return len(b), nil
}

// Inner runs a container's first process, which sleeps until the end of its standard input. ours is
// false if args do not name that process.
func Inner(args []string) (ours bool, err error) {
	if len(args) == 0 || args[0] != dockerapi.PauseArg {
		return false, nil
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return true, err
}
