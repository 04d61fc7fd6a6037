package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// becomeArg makes this process execute the command line that follows. A place can only start this
// program, so other programs are started through it.
const becomeArg = "become"

// Command returns what starts a program in a place.
func Command(command ...string) path.Command {
	return path.Command{Args: append([]string{becomeArg}, command...)}
}

// Inner executes the program that Command was given. ours is false for other args.
func Inner(args []string) (ours bool, err error) {
	if len(args) < 2 || args[0] != becomeArg {
		return false, nil
	}
	file, err := exec.LookPath(args[1])
	if err != nil {
		return true, err
	}
	return true, syscall.Exec(file, args[1:], os.Environ())
}

// Namespace is a network namespace as a place.
type Namespace struct{ *netns.NS }

// Name returns a phrase.
func (Namespace) Name() string { return "a network namespace" }

// Start starts this program in the namespace.
func (n Namespace) Start(c path.Command) (*path.Process, error) {
	return local.StartSelf(n.NS, n.Name(), c)
}

// Process is a program in a place.
type Process struct {
	*path.Process
	Done chan struct{} // closed when it has ended
	out  []byte        // the output, once it has ended
	err  error         // once it has ended
	stop func() bool
}

// Start starts a command in a place. The end of ctx kills it. The caller must call Wait or kill.
func Start(ctx context.Context, at path.Place, command ...string) (*Process, error) {
	started, err := at.Start(Command(command...))
	if err != nil {
		return nil, err
	}
	p := &Process{Process: started, Done: make(chan struct{})}
	p.stop = context.AfterFunc(ctx, p.killGroup)
	go func() {
		defer close(p.Done)
		var readErr error
		p.out, readErr = io.ReadAll(p.Out)
		p.err = errors.Join(p.Process.Wait(), readErr)
		p.Out.Close()
		if p.err != nil {
			const enough = 300
			p.err = fmt.Errorf("%s: %w: %s", strings.Join(command, " "), p.err,
				printable.Start(printable.Words(string(p.out)), enough))
		}
		if ctx.Err() != nil {
			p.err = errors.Join(p.err, context.Cause(ctx))
		}
	}()
	return p, nil
}

// Wait waits until the program exits or is killed by its context, and returns its output.
func (p *Process) Wait() (out []byte, err error) {
	<-p.Done
	p.stop()
	p.In.Close()
	return p.out, p.err
}

func (p *Process) kill() {
	p.killGroup()
	_, _ = p.Wait()
}

// Child processes are killed, too (qperf's server forks). The only possible error is that they have
// ended.
func (p *Process) killGroup() { _ = syscall.Kill(-p.PID, syscall.SIGKILL) }

func (p *Process) listens(ctx context.Context, port uint16) error {
	const poll = 5 * time.Millisecond
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-p.Done:
			return errors.Join(errors.New("the server ended"), p.err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if ok, err := listens(p.PID, port); ok || err != nil {
			return err
		}
	}
}

// Ends are where a tool runs, and the CPUs to which its processes are pinned; none: any.
type Ends struct {
	Server, Client         path.Place
	ServerCPUs, ClientCPUs []int
}

// Visit measures once, with a new server and client, and returns the tool's figure. The end of ctx
// ends it. watch, unless nil, is called when both have started.
func (t Tool) Visit(ctx context.Context, at Ends, a Ask,
	watch func(client, server *Process) error) (float64, error) {
	server, err := Start(ctx, at.Server, pinned(at.ServerCPUs, t.server(a))...)
	if err != nil {
		return 0, err
	}
	defer server.kill() // some servers do not exit by themselves
	if err := server.listens(ctx, a.Listen.Port()); err != nil {
		return 0, err
	}
	client, err := Start(ctx, at.Client, pinned(at.ClientCPUs, t.client(a))...)
	if err != nil {
		return 0, err
	}
	defer client.kill()
	if watch != nil {
		if err := watch(client, server); err != nil {
			select {
			case <-client.Done:
				err = errors.Join(err, client.err)
			default:
			}
			return 0, err
		}
	}
	out, err := client.Wait()
	if err != nil {
		return 0, err
	}
	return t.parse(out)
}
