package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"github.com/moby/moby/client/pkg/versions"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/owner"
	"github.com/bridgetoll/bridgetoll/internal/path"
)

// engine is a daemon that toll talks to.
type engine struct {
	docker   *Docker
	api      *client.Client
	host     string // its address
	info     system.Info
	rootless bool
	mark     string    // of this process
	id       string    // of this run, in names
	ns       *netns.NS // this machine's
	journal  *journal

	trying sync.Mutex          // guards following
	trial  *trial              // nil before the first
	tries  map[mode.Name]error // what came of others

	networking sync.Mutex // held while a network is made

	starting turns // of containers

	laying sync.Mutex // held from choosing a network until a device has it

	sharing sync.Mutex // guards following
	shared  map[string]*sharedNet

	mu     sync.Mutex // guards following
	count  int        // of sites
	image  image
	saver  string          // the program that shows the rules
	chosen map[uint16]bool // the machine's ports that paths were given
}

// answer bounds how long the daemon may take to say who it is.
const answer = 10 * time.Second

// firstAPI is the API of the first engine that is understood, 20.10.
const firstAPI = "1.41"

// connect finds the daemon once; what came of it is remembered until Close.
func (d *Docker) connect(ctx context.Context) (*engine, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.engine == nil && d.err == nil {
		d.engine, d.err = d.dial(ctx)
		if ctx.Err() != nil { // not the daemon's fault
			err := d.err
			d.err = nil
			return d.engine, err
		}
	}
	return d.engine, d.err
}

func (d *Docker) dial(ctx context.Context) (*engine, error) {
	e, err := d.reach(ctx, mayRead)
	if err != nil {
		return nil, err
	}
	if e.ns, err = here(); err != nil {
		return nil, errors.Join(err, e.api.Close())
	}
	return e, nil
}

// reach finds the daemon and prepares a journal, if may has nothing against it.
func (d *Docker) reach(ctx context.Context, may func() error) (*engine, error) {
	host, err := findHost(os.Getenv)
	if err != nil {
		return nil, err
	}
	file, err := socketOf(host)
	if err != nil {
		return nil, err
	}
	if err := reachable(file); err != nil {
		return nil, err
	}
	if err := may(); err != nil {
		return nil, err
	}
	api, err := newClient(host)
	if err != nil {
		return nil, fmt.Errorf("reach the Docker daemon at %s: %w", host, err)
	}
	e := &engine{docker: d, api: api, host: host, mark: owner.Mark(), id: random()}
	if err := e.meet(ctx); err != nil {
		return nil, errors.Join(err, api.Close())
	}
	if e.journal, err = newJournal(d.StateDir, e.id, e.mark, host); err != nil {
		return nil, errors.Join(err, api.Close())
	}
	return e, nil
}

// newClient talks to a daemon over a connection for each question, so that none
// is left between them and a daemon may restart.
func newClient(host string) (*client.Client, error) {
	return client.New(client.WithHTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}),
		client.WithHost(host), client.WithScheme("http"), client.WithAPIVersionFromEnv(), client.WithUserAgent("toll"))
}

// meet asks the daemon who it is, and refuses one whose containers are not on
// this machine.
func (e *engine) meet(ctx context.Context) error {
	limit := answer
	if e.docker.answer != 0 {
		limit = e.docker.answer
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ping, err := e.api.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	if v := ping.APIVersion; v != "" && versions.LessThan(v, firstAPI) {
		return &path.UnsupportedError{Missing: fmt.Sprintf("the Docker daemon at %s is too old: it speaks API %s, and toll %s", e.host, v, firstAPI),
			Remedy: "Docker Engine 20.10 or later, or --on lab"}
	}
	if err == nil {
		var got client.SystemInfoResult
		got, err = e.api.Info(ctx, client.InfoOptions{})
		e.info = got.Info
	}
	if err == nil && e.info.OSType == "" {
		err = errors.New("it does not say what it is")
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &path.UnsupportedError{Missing: fmt.Sprintf("the Docker daemon at %s does not answer within %s", e.host, limit),
			Remedy: "sudo systemctl restart docker, or --on lab", Err: err}
	case err != nil:
		return &path.UnsupportedError{Missing: "the Docker daemon at " + e.host + " does not answer as one",
			Remedy: "docker info says more; engines from 20.10 on are understood", Err: err}
	case strings.Contains(e.info.OperatingSystem, "Docker Desktop"):
		return &path.UnsupportedError{
			Missing: "the Docker daemon is Docker Desktop's, whose containers are in a virtual machine: their counters cannot be read from here",
			Remedy:  "docker context use default for an engine of this machine, or --on lab"}
	case e.info.OSType != "linux":
		return &path.UnsupportedError{
			Missing: "the Docker daemon runs containers of " + e.info.OSType + ", whose counters cannot be read from here",
			Remedy:  "an engine with Linux containers on this machine, or --on lab"}
	}
	e.rootless = slices.ContainsFunc(e.info.SecurityOptions, func(s string) bool { return strings.Contains(s, "name=rootless") })
	return nil
}

// version names the engine.
func (e *engine) version() string { return "Docker Engine " + e.info.ServerVersion }

// reachable finds out whether somebody listens at the daemon's socket.
func reachable(file string) error {
	c, err := net.DialTimeout("unix", file, answer)
	switch {
	case err == nil:
		return c.Close()
	case errors.Is(err, fs.ErrPermission):
		return &path.UnsupportedError{Missing: "this user may not use the Docker daemon's socket " + file,
			Remedy: "run toll as root: sudo toll …", Err: err}
	}
	return &path.UnsupportedError{Missing: "no Docker daemon listens at " + file,
		Remedy: "sudo systemctl start docker, or DOCKER_HOST with the daemon's address; --on lab needs none", Err: err}
}

// mayRead refuses those who cannot enter the containers' network namespaces and
// read the rules: all but root, with its capabilities, outside user namespaces.
func mayRead() error {
	needs := []struct {
		bit  int
		name string
	}{{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}, {unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE"}}
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
	uids, _ := os.ReadFile("/proc/self/uid_map")
	if f := strings.Fields(string(uids)); len(lacks) == 0 && (len(f) < 3 || f[2] == "4294967295") {
		return nil
	}
	missing := "the counters of Docker's containers and rules can only be read as root"
	if os.Geteuid() == 0 && len(lacks) > 0 {
		missing += ", with " + strings.Join(lacks, ", ")
	}
	return &path.UnsupportedError{Missing: missing, Remedy: "sudo toll …; --on lab needs no root"}
}

// close removes the image and the journal of a run whose paths are closed, and says
// what is left.
func (e *engine) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := errors.Join(e.removeImage(), e.journal.left())
	return errors.Join(err, e.journal.close(err == nil), e.ns.Close(), e.api.Close())
}
