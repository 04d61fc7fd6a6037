package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// process is a process in the namespace, with its child processes.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	done           chan struct{} // closed when it has ended
	err            error         // its error; valid once done is closed
}

// exitTimeout is how long a process may take to exit by itself.
const exitTimeout = 2 * time.Second

// spawn starts a command in ns. The caller must kill it, even if it has exited by itself. The end
// of ctx kills it at once.
func spawn(ctx context.Context, ns *netns.NS, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, name, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	return p, p.start(ns)
}

func (p *process) start(ns *netns.NS) error {
	p.cmd.Cancel = p.killGroup
	p.cmd.WaitDelay = exitTimeout
	if err := ns.Start(p.cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.cmd.Args[0], err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return nil
}

// killGroup kills the process and its child processes (qperf's server forks).
func (p *process) killGroup() error {
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill %s: %w", p.cmd.Args[0], err)
	}
	return nil
}

// kill kills the process and waits for its end. On nil it does nothing.
func (p *process) kill() error {
	if p == nil || p.cmd.Process == nil {
		return nil
	}
	err := p.killGroup()
	<-p.done
	return err
}

// wait waits until the process exits by itself.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.done:
	}
	if p.err != nil {
		const enough = 300
		text := printable.Start(printable.Words(p.stderr.String()+" "+p.stdout.String()), enough)
		return fmt.Errorf("%s: %w: %s", strings.Join(p.cmd.Args, " "), p.err, text)
	}
	return nil
}
