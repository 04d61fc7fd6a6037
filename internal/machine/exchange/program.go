package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Limits are the limits of a program's run.
type Limits struct {
	Time   time.Duration
	Output int64 // on its standard output, in bytes; 0: maxAnswer
}

// killDelay is the time in which the children of a killed program may close its output.
const killDelay = time.Second

// Output runs a program and returns its standard output. It kills a program that prints too much or
// takes too long; if SysProcAttr has Setpgid, also the program's children. If cmd.Stderr is nil,
// errors include the end of the standard error.
func Output(ctx context.Context, cmd *exec.Cmd, l Limits) ([]byte, error) {
	out := &bounded{most: l.Output}
	if out.most == 0 {
		out.most = maxAnswer
	}
	out.full = func() { _ = kill(cmd) }
	said := &tail{}
	if cmd.Stderr == nil {
		cmd.Stderr = said
	}
	cmd.Stdout, cmd.WaitDelay = out, killDelay
	name := filepath.Base(cmd.Path)
	defer Waiting(name)()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.Time, &SlowError{name, l.Time})
	defer cancel()
	ended := make(chan struct{})
	var err error
	go func() { err = cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		_ = kill(cmd)
		<-ended
		return nil, context.Cause(ctx)
	}
	switch words := printable.Words(string(said.b)); {
	case out.over:
		return nil, fmt.Errorf("%s: %w", name, ErrTooLong)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay) && words != "":
		return nil, fmt.Errorf("%w: %s", err, words)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, err
	}
	return out.b, nil
}

func kill(cmd *exec.Cmd) error {
	if cmd.SysProcAttr != nil && cmd.SysProcAttr.Setpgid {
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return cmd.Process.Kill()
}

// bounded calls full when more than most bytes arrive.
type bounded struct {
	b    []byte
	most int64
	over bool
	full func()
}

func (w *bounded) Write(p []byte) (int, error) {
	if int64(len(w.b)+len(p)) > w.most {
		w.over = true
		w.full()
		return 0, io.ErrShortWrite
	}
	w.b = append(w.b, p...)
	return len(p), nil
}

type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 2 << 10
	t.b = append(t.b, p[max(0, len(p)-most):]...)
	t.b = t.b[max(0, len(t.b)-most):]
	return len(p), nil
}
