// Package dockerapi connects to the Docker daemon that the docker command would use. It has a
// client, the daemon's facts, the image that contains toll, the journal of a run, and the clean-up.
//
// Everything that a run makes has the label RunLabel with the mark of its toll, and is first
// written to the run's journal. While the run is alive, it holds a lock on the journal. Without the
// lock, a mark proves that its toll has ended only if kill(pid, 0) finds no such process, or if the
// start time differs in a /proc of the same PID namespace.
//
// Requests that make something are never cancelled: the daemon would still carry them out, after
// the clean-up. Connect needs only permission to use the daemon's socket.
package dockerapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"github.com/moby/moby/client/pkg/versions"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Daemon is a connection to a daemon, with the journal of a run.
type Daemon struct {
	API     *client.Client
	Info    system.Info
	Host    string
	Mark    string // the mark of this process
	ID      string // part of the names of what the run makes
	Journal *Journal
	Podman  *Podman // nil: the daemon is not Podman's service

	http *http.Client
}

// service has the words for a kind of daemon: its name, its command, its services of systemd that
// start and restart it, the variable with its address, the first version that toll supports, and
// that variable with the default address.
type service struct{ what, short, socketUnit, unit, variable, first, given string }

// start returns the remedy that starts or installs the daemon.
func (s service) start() string {
	do := StartEngine()
	if s == podmanService {
		do = remedy.Provide(s.socketUnit, "podman", "podman") +
			" (without root: " + remedy.StartOwn(s.socketUnit) + ")"
	}
	return do + ", or set " + s.variable + " to its address; --on lab needs none"
}

// StartEngine returns the remedy that starts or installs Docker Engine. The command docker alone,
// as of docker-ce-cli or podman-docker, is no engine.
func StartEngine() string { return remedy.Provide("docker", "docker.io", "dockerd") }

func (s service) restart() string { return remedy.Restart(s.unit) }

var (
	dockerService = service{what: "Docker daemon", short: "docker",
		socketUnit: "docker", unit: "docker", variable: "DOCKER_HOST", first: "Docker Engine 20.10",
		given: "DOCKER_HOST=" + DefaultHost}
	podmanService = service{what: "Podman service", short: "podman",
		socketUnit: "podman.socket", unit: "podman", variable: "CONTAINER_HOST", first: "Podman 4.0",
		given: "CONTAINER_HOST=" + defaultPodman}
)

const defaultAnswer = 10 * time.Second

// firstAPI is the API version of the first supported engine, 20.10.
const firstAPI = "1.41"

// Connect connects to the daemon of this environment, and prepares a run's journal in dir; "" is
// the user's state directory. The caller closes the Daemon.
func Connect(ctx context.Context, dir string) (*Daemon, error) {
	return connectDocker(ctx, dir, defaultAnswer)
}

func connectDocker(ctx context.Context, dir string, answer time.Duration) (*Daemon, error) {
	host, err := FindHost(os.Getenv)
	if err != nil {
		return nil, unsupported(err, "")
	}
	return connect(ctx, dockerService, host, dir, answer)
}

func connect(ctx context.Context, of service, host, dir string, answer time.Duration) (*Daemon,
	error) {
	// A daemon with a Unix socket is on this machine, and so are its containers.
	file, err := of.socket(host)
	if err != nil {
		return nil, unsupported(err, ", or --on lab")
	}
	if err := reachable(of, file); err != nil {
		return nil, err
	}
	api, err := newClient(of, host, answerLimit)
	if err != nil {
		return nil, fmt.Errorf("reach the %s at %s: %w", of.what, host, err)
	}
	d := &Daemon{API: api, Host: host, Mark: journal.Mark(), ID: NewID()}
	if d.http, err = newHTTP(of, host, answerLimit); err != nil {
		return nil, errors.Join(err, api.Close())
	}
	if err := d.meet(ctx, of, answer); err != nil {
		return nil, errors.Join(err, api.Close())
	}
	if d.Journal, err = NewJournal(dir, d.ID, d.Mark, host); err != nil {
		return nil, errors.Join(err, api.Close())
	}
	return d, nil
}

// NewClient returns a client of a Docker daemon. It opens a connection for each request, so the
// daemon may restart in between. Answers are limited in time and size (package exchange), except
// streams such as events.
func NewClient(host string) (*client.Client, error) {
	return newClient(dockerService, host, answerLimit)
}

func newClient(of service, host string, limit func(*http.Request) time.Duration) (*client.Client,
	error) {
	bounded, err := newHTTP(of, host, limit)
	if err != nil {
		return nil, err
	}
	return client.New(client.WithHost(host), client.WithHTTPClient(bounded),
		client.WithScheme("http"), client.WithAPIVersionFromEnv(), client.WithUserAgent("toll"))
}

func newHTTP(of service, host string, limit func(*http.Request) time.Duration) (*http.Client,
	error) {
	at, err := client.ParseHostURL(host)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, at.Scheme, at.Host)
	}
	bounded := &exchange.Transport{Base: &http.Transport{
		DisableKeepAlives: true, DialContext: dial},
		What: "the " + of.what + " at " + host, Limit: limit, Stream: streams}
	return &http.Client{Transport: bounded, CheckRedirect: client.CheckRedirect}, nil
}

const (
	readLimit   = 20 * time.Second // limits a request that changes nothing
	changeLimit = making
)

func answerLimit(r *http.Request) time.Duration {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return readLimit
	}
	return changeLimit
}

func streams(r *http.Request) bool {
	p := r.URL.Path
	return strings.HasSuffix(p, "/events") || strings.HasSuffix(p, "/logs") ||
		strings.HasSuffix(p, "/images/load")
}

// unsupported converts a HostError to a *machine.UnsupportedError. besides is appended to the
// remedy.
func unsupported(err error, besides string) error {
	var e *HostError
	if !errors.As(err, &e) {
		return err
	}
	return &machine.UnsupportedError{Missing: e.Why, Remedy: e.Remedy + besides, Err: e.Err}
}

func reachable(of service, file string) error {
	c, err := net.DialTimeout("unix", file, defaultAnswer)
	switch {
	case err == nil:
		return c.Close()
	case errors.Is(err, fs.ErrPermission):
		return &machine.UnsupportedError{Missing: "this user may not use the " + of.what +
			"'s socket " + file,
			Remedy: "run toll as root: " + remedy.AsRoot("toll …"), Err: err}
	}
	fix := of.start()
	own := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "docker.sock")
	if _, err := os.Stat(own); err == nil && own != file && of == dockerService {
		fix = "DOCKER_HOST=unix://" + own + ", of your rootless Docker"
	}
	return &machine.UnsupportedError{Missing: "no " + of.what + " listens at " + file,
		Remedy: fix, Err: err}
}

// meet reads the daemon's facts. It returns a *machine.UnsupportedError if the daemon's containers
// are not on this machine.
func (d *Daemon) meet(ctx context.Context, of service, answer time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	ping, err := d.API.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	if v := ping.APIVersion; v != "" && versions.LessThan(v, firstAPI) {
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the %s at %s is too old: it has API %s, and toll needs %s", of.what, d.Host, v,
			firstAPI),
			Remedy: of.first + " or later, or --on lab"}
	}
	if err == nil {
		var got client.SystemInfoResult
		got, err = d.API.Info(ctx, client.InfoOptions{})
		d.Info = got.Info
	}
	if err == nil && d.Info.OSType == "" {
		err = errors.New("it reports no operating system")
	}
	if err == nil {
		d.Podman, err = d.askPodman(ctx)
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the %s at %s does not answer within %s", of.what, d.Host, answer),
			Remedy: of.restart() + ", or --on lab", Err: err}
	case err != nil:
		u := &machine.UnsupportedError{Missing: "the " + of.what + " at " + d.Host +
			" does not answer like one",
			Remedy: of.short + " info has details; toll supports " + of.first + " and later",
			Err:    err}
		if v := os.Getenv(client.EnvOverrideAPIVersion); v != "" {
			u.Remedy = "unset " + client.EnvOverrideAPIVersion + ", which is " +
				printable.Words(v) + "; " + u.Remedy
		}
		return u
	case strings.Contains(d.Info.OperatingSystem, "Docker Desktop"):
		return &machine.UnsupportedError{
			Missing: "Docker Desktop runs its containers in a virtual machine, so their counters cannot be read from here",
			Remedy:  "docker context use default for an engine of this machine, or --on lab"}
	case d.Info.OSType != "linux":
		return &machine.UnsupportedError{
			Missing: "the " + of.what + " runs " + d.Info.OSType +
				" containers, and their counters cannot be read from here",
			Remedy: "an engine with Linux containers on this machine, or --on lab"}
	}
	return nil
}

// Close closes the connection. It removes the journal if everything that the journal lists is gone.
func (d *Daemon) Close() error { return errors.Join(d.Journal.Close(), d.API.Close()) }

const making = time.Minute

// Uninterrupted returns a context for making one thing. Interrupts do not cancel it: after a
// cancelled request, the daemon might make the thing when toll has already cleaned up.
func Uninterrupted() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), making)
}

// NewID returns a short unique name.
func NewID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Engines connects to this environment's Docker daemon and to its Podman service, as Connect does,
// because both may have containers. Podman's is first if only CONTAINER_HOST is set. A service that
// does not listen is left out. err joins the errors of services that cannot be used. It is not nil
// if all is empty. The caller closes the daemons, also if err is not nil.
func Engines(ctx context.Context, dir string) (all []*Daemon, err error) {
	var absent, unusable []error
	for _, s := range inOrder(os.Getenv) {
		d, err := connect(ctx, s.service, s.host, dir, defaultAnswer)
		switch {
		case err == nil:
			all = append(all, d)
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
			absent = append(absent, err)
		default:
			unusable = append(unusable, err)
		}
	}
	if _, err := FindHost(os.Getenv); err != nil {
		unusable = append(unusable, unsupported(err, ""))
	}
	if len(all) == 0 && len(unusable) == 0 {
		return nil, absent[0]
	}
	return all, errors.Join(unusable...)
}

func inOrder(getenv func(string) string) []server {
	all := services(getenv)
	if PodmanFirst(getenv) {
		slices.Reverse(all)
	}
	return all
}

// PodmanFirst reports whether the environment names Podman's service and no Docker daemon.
func PodmanFirst(getenv func(string) string) bool {
	return getenv("CONTAINER_HOST") != "" && getenv("DOCKER_HOST") == "" &&
		getenv("DOCKER_CONTEXT") == ""
}

// Command returns the engine's command, such as "docker".
func (d *Daemon) Command() string {
	if d.Podman != nil {
		return podmanService.short
	}
	return dockerService.short
}
