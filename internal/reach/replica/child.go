package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica/jail"
)

// buildTimeout limits the time for building a copy. It suffices for the largest machines on busy
// hosts.
const buildTimeout = time.Minute

// child is a process that holds a copy.
type child struct {
	ns      *netns.NS // the process is a child of its thread
	process *path.Process
	end     func() error // kills the process and waits for it
	lacks   []Lacks
	// open is the reason why the copy has no user namespace of its own; nil: it has one.
	open error
	// grants serves the jails of the copy; nil: none.
	grants *jail.Grants

	mu sync.Mutex // held during a request
}

// Ahead is a process for a copy of this machine that was started before the machine was read.
type Ahead struct{ made chan launched } // buffered; nil: it was taken

type launched struct {
	child *child
	err   error
}

// Launch begins to start the process. The caller calls Start or Close.
func Launch() *Ahead {
	a := &Ahead{make(chan launched, 1)}
	go func() {
		c, err := launchHere(true)
		a.made <- launched{c, err}
	}()
	return a
}

// Start is like the function Start for a machine that was read here.
func (a *Ahead) Start(ctx context.Context, m *Machine, sockets []Socket) (*Session, error) {
	return start(ctx, m, sockets, a)
}

// take returns the process, once; then, and without an Ahead, it starts another one.
func (a *Ahead) take(here bool) (*child, error) {
	if a == nil || a.made == nil {
		return launchHere(here)
	}
	l := <-a.made
	a.made = nil
	return l.child, l.err
}

// Close ends the process, unless it holds a copy.
func (a *Ahead) Close() error {
	if a == nil || a.made == nil {
		return nil
	}
	c, err := a.take(true)
	if err != nil {
		return nil //nolint:nilerr // there is none to end
	}
	return c.close()
}

// launchHere starts a process without a copy. here is whether that may be of this machine.
func launchHere(here bool) (*child, error) {
	c, err := launch(unix.CLONE_NEWUSER | unix.CLONE_NEWNET)
	if err != nil && here && os.Geteuid() == 0 {
		reason := machine.Machine{}.ExplainUserNamespace(err)
		if c, err = launch(unix.CLONE_NEWNET); err == nil {
			c.open = reason
		}
	}
	if err != nil {
		return nil, fmt.Errorf("copy the machine's network: %w",
			machine.Machine{}.ExplainUserNamespace(err))
	}
	return c, nil
}

func startChild(ctx context.Context, o Order, c *child) (*child, error) {
	o.Grants = c.grants != nil
	bare, rules := withoutRules(o)
	r, err := c.ask(ctx, buildTimeout, request{Order: bare}, rules...)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	c.lacks = r.Lacks
	return c, nil
}

func launch(namespaces uintptr) (*child, error) {
	ns, err := netns.Here()
	if err != nil {
		return nil, err
	}
	grants, err := jail.NewGrants()
	if err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	cmd, said := local.Again(path.Command{Args: []string{Arg}})
	if grants != nil {
		f := os.NewFile(uintptr(grants.FD()), "grants")
		defer f.Close()
		cmd.ExtraFiles = []*os.File{f}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if namespaces&unix.CLONE_NEWUSER != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	p, err := local.Start(ns, "a network namespace", cmd, said)
	if err != nil {
		return nil, errors.Join(err, ns.Close(), grants.Close())
	}
	return &child{
		ns: ns, process: p, grants: grants,
		end: sync.OnceValue(func() error {
			killed := p.Kill()
			err := p.Wait() // Wait closes In
			return errors.Join(killed, err, p.Out.Close(), ns.Close(), grants.Close())
		}),
	}, nil
}

// ask sends a request, with the rules of an order, and returns the reply. It kills the process if
// ctx ends, or if no reply comes within limit.
func (c *child) ask(ctx context.Context, limit time.Duration, q request,
	rules ...raw.Message) (r reply, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const name = "the copy of the machine's network"
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &exchange.SlowError{What: name, After: limit})
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = c.process.Kill() })
	defer stop()
	if err = errors.Join(send(c.process.In, q), raw.Send(c.process.In, rules)); err == nil {
		if q.Order != nil {
			debug.FreeOSMemory() // of reading the machine, which is not done again
		}
		err = receive(c.process.Out, &r)
	}
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case err != nil:
		return r, fmt.Errorf("%s failed: %w", name, cmp.Or(c.end(), err))
	case r.Err != "":
		return r, fmt.Errorf("%s: %s", name, r.Err)
	}
	return r, nil
}

func (c *child) close() error {
	_ = c.end() // the error is that the process was killed
	return nil
}
