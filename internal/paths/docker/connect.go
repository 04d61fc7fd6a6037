package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/undo"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

type engine struct {
	*dockerapi.Daemon
	docker   *Docker
	rootless bool
	// where the engine's networks are: the machine, unless the engine is rootless
	spot
	machine spot
	hosts   spot             // where containers with the host's network are
	kit     *rootless.Engine // nil: not rootless, or lost
	lost    error            // why a rootless engine's networks cannot be entered
	podman  int              // PID of a process in a rootless Podman's namespaces; 0: not rootless, or lost

	trying sync.Mutex // guards the fields that follow
	held   undo.Stack // undone when the engine is closed
	trial  *trial     // nil before the first trial
	tries  map[mode.Name]error

	exempted exemption

	tuning     sync.Mutex // guards the fields that follow
	triedTunes map[mode.Key]error
	mostQueues int // the most queues of a veth pair; 0: not tried yet

	networking sync.Mutex // held while a network is made

	starting turns

	laying sync.Mutex // held from choosing a network until a device has it

	sharing sync.Mutex // guards the fields that follow
	shared  map[string]*sharedNet

	mu     sync.Mutex // guards the fields that follow
	count  int
	asked6 map[mode.Name]bool // modes requested over IPv6
	image  image
	saver  string
	saver6 string
	chosen map[uint16]bool // the machine's ports in use by this run
}

func (d *Docker) connect(ctx context.Context) (*engine, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.engine == nil && d.err == nil {
		d.engine, d.err = d.dial(ctx)
		if ctx.Err() != nil {
			err := d.err
			d.err = nil
			return d.engine, err
		}
	}
	return d.engine, d.err
}

func (d *Docker) dial(ctx context.Context) (*engine, error) {
	connect := dockerapi.Connect
	if d.Podman {
		connect = dockerapi.ConnectPodman
	}
	daemon, err := connect(ctx, d.StateDir)
	if err != nil {
		return nil, err
	}
	e := &engine{Daemon: daemon, docker: d, rootless: dockerapi.Rootless(daemon.Info)}
	if e.rootless && e.Podman == nil {
		e.lost = e.enter()
	}
	if e.rootless && e.Podman != nil {
		e.podman, e.lost = findPodman(e.Host)
	}
	if e.kit == nil {
		if err := e.mayEnter(); err != nil {
			return nil, errors.Join(err, daemon.Close())
		}
		if e.machine.ns, err = netns.Here(); err != nil {
			return nil, errors.Join(err, daemon.Close())
		}
		e.machine.name = thisMachine
		e.spot, e.hosts = e.machine, e.machine
	}
	return e, nil
}

// mayEnter returns nil if this process may enter the containers' namespaces, else a
// *machine.UnsupportedError.
func (e *engine) mayEnter() error {
	switch err := mayRead(e.words().product); {
	case err == nil:
		return nil
	case e.podman == 0:
		return cmp.Or(e.lost, err)
	case !rootless.Inside(e.podman):
		return &machine.UnsupportedError{
			Missing: "this Podman is rootless, and toll is not in its user namespace",
			Remedy:  "run toll as Podman's user, with --on podman alone; or as root"}
	}
	return nil
}

// mayRead returns nil if this process is root outside user namespaces: only root may enter the
// containers' namespaces and read the rules.
func mayRead(product string) error {
	needs := []struct {
		bit  int
		name string
	}{{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}, {unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"},
		{unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE"}}
	var lacks []string
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("read this process's capabilities: %w", err)
	}
	for _, n := range needs {
		if data[0].Effective&(1<<n.bit) == 0 {
			lacks = append(lacks, n.name)
		}
	}
	if len(lacks) == 0 && !rootless.InUserNamespace("self") {
		return nil
	}
	missing := "the counters of " + product + "'s containers and rules can only be read as root"
	if os.Geteuid() == 0 && len(lacks) > 0 {
		missing += ", with " + strings.Join(lacks, ", ")
	}
	return &machine.UnsupportedError{Missing: missing, Remedy: remedy.AsRoot("toll …") + "; --on lab needs no root"}
}

type image struct {
	tag string // "" before it is made
	err error
}

func (e *engine) makeImage(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.image.tag == "" && e.image.err == nil {
		tag, err := e.MakeImage(ctx, e.docker.Program)
		if err != nil && ctx.Err() != nil {
			return err
		}
		e.image = image{tag, err}
	}
	return e.image.err
}

// close removes the image and the journal. All paths must be closed before. The error lists what
// could not be removed.
func (e *engine) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.held.Undo(), e.RemoveImages(), e.Journal.Left(), e.ns.Close(),
		e.machine.ns.Close(), e.Close())
}
