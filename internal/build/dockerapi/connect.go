// Package dockerapi talks to a Docker daemon: which one the docker command would
// talk to, a client of it, its facts, the image that is toll itself, the journal
// of what a run makes, and the clean-up of what runs left.
//
// All that a run makes at a daemon carries RunLabel with the mark of the toll that
// made it, and is written to the run's journal before it is made. Clean finds what
// a killed toll left by both.
//
// Be aware: Connect needs no more than the right to use the daemon's socket. What
// else a backend needs, it asks for itself.
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
	"strings"
	"time"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"github.com/moby/moby/client/pkg/versions"

	"github.com/bridgetoll/bridgetoll/internal/build/exchange"
	"github.com/bridgetoll/bridgetoll/internal/build/owner"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
)

// Daemon is a daemon at which a run makes things.
type Daemon struct {
	API     *client.Client
	Info    system.Info
	Host    string // its address
	Mark    string // of this process
	ID      string // of this run, for names
	Journal *Journal
}

// defaultAnswer bounds how long the daemon may take to say who it is.
const defaultAnswer = 10 * time.Second

// firstAPI is the API of the first engine that is understood, 20.10.
const firstAPI = "1.41"

// Connect finds the daemon that this environment names, and prepares the journal of
// a run. Dir is where journals are kept; "" is the user's state directory. The
// caller closes the Daemon.
func Connect(ctx context.Context, dir string) (*Daemon, error) {
	return connect(ctx, dir, defaultAnswer)
}

func connect(ctx context.Context, dir string, answer time.Duration) (*Daemon, error) {
	host, err := FindHost(os.Getenv)
	if err != nil {
		return nil, unsupported(err, "")
	}
	// Containers must be on this machine, and root here can reach the socket.
	file, err := Socket(host)
	if err != nil {
		return nil, unsupported(err, ", or --on lab")
	}
	if err := reachable(file); err != nil {
		return nil, err
	}
	api, err := NewClient(host)
	if err != nil {
		return nil, fmt.Errorf("reach the Docker daemon at %s: %w", host, err)
	}
	d := &Daemon{API: api, Host: host, Mark: owner.Mark(), ID: NewID()}
	if err := d.meet(ctx, answer); err != nil {
		return nil, errors.Join(err, api.Close())
	}
	if d.Journal, err = NewJournal(dir, d.ID, d.Mark, host); err != nil {
		return nil, errors.Join(err, api.Close())
	}
	return d, nil
}

// NewClient returns a client that opens a connection for each request, so that a daemon may
// restart between them. No answer takes more time or memory than exchange allows; streams, such
// as events, may last.
func NewClient(host string) (*client.Client, error) { return newClient(host, answerLimit) }

func newClient(host string, limit func(*http.Request) time.Duration) (*client.Client, error) {
	at, err := client.ParseHostURL(host)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, at.Scheme, at.Host)
	}
	bounded := &exchange.Transport{Base: &http.Transport{DisableKeepAlives: true, DialContext: dial},
		What: "the Docker daemon at " + host, Limit: limit, Stream: streams}
	return client.New(client.WithHost(host), client.WithHTTPClient(&http.Client{Transport: bounded, CheckRedirect: client.CheckRedirect}),
		client.WithScheme("http"), client.WithAPIVersionFromEnv(), client.WithUserAgent("toll"))
}

// Bounds of the daemon's answers.
const (
	readLimit   = 20 * time.Second // of one that changes nothing
	changeLimit = making
)

func answerLimit(r *http.Request) time.Duration {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return readLimit
	}
	return changeLimit
}

// streams reports whether the answer to a request lasts.
func streams(r *http.Request) bool {
	p := r.URL.Path
	return strings.HasSuffix(p, "/events") || strings.HasSuffix(p, "/logs") || strings.HasSuffix(p, "/images/load")
}

// unsupported is a HostError as that of a path that cannot be built, with one more
// remedy.
func unsupported(err error, besides string) error {
	var e *HostError
	if !errors.As(err, &e) {
		return err
	}
	return &path.UnsupportedError{Missing: e.Why, Remedy: e.Remedy + besides, Err: e.Err}
}

// reachable finds out whether a process listens at the daemon's socket.
func reachable(file string) error {
	c, err := net.DialTimeout("unix", file, defaultAnswer)
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

// meet asks the daemon who it is, and refuses one whose containers are not on
// this machine.
func (d *Daemon) meet(ctx context.Context, answer time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	ping, err := d.API.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	if v := ping.APIVersion; v != "" && versions.LessThan(v, firstAPI) {
		return &path.UnsupportedError{Missing: fmt.Sprintf("the Docker daemon at %s is too old: it speaks API %s, and toll %s", d.Host, v, firstAPI),
			Remedy: "Docker Engine 20.10 or later, or --on lab"}
	}
	if err == nil {
		var got client.SystemInfoResult
		got, err = d.API.Info(ctx, client.InfoOptions{})
		d.Info = got.Info
	}
	if err == nil && d.Info.OSType == "" {
		err = errors.New("it does not say what it is")
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &path.UnsupportedError{Missing: fmt.Sprintf("the Docker daemon at %s does not answer within %s", d.Host, answer),
			Remedy: "sudo systemctl restart docker, or --on lab", Err: err}
	case err != nil:
		return &path.UnsupportedError{Missing: "the Docker daemon at " + d.Host + " does not answer as one",
			Remedy: "docker info says more; engines from 20.10 on are understood", Err: err}
	case strings.Contains(d.Info.OperatingSystem, "Docker Desktop"):
		return &path.UnsupportedError{
			Missing: "the Docker daemon is Docker Desktop's, whose containers are in a virtual machine: their counters cannot be read from here",
			Remedy:  "docker context use default for an engine of this machine, or --on lab"}
	case d.Info.OSType != "linux":
		return &path.UnsupportedError{
			Missing: "the Docker daemon runs containers of " + d.Info.OSType + ", whose counters cannot be read from here",
			Remedy:  "an engine with Linux containers on this machine, or --on lab"}
	}
	return nil
}

// Close ends the connection. The journal goes, unless something is left that it
// tells of.
func (d *Daemon) Close() error { return errors.Join(d.Journal.Close(), d.API.Close()) }

// making is how long it may take to make one thing.
const making = time.Minute

// Uninterrupted is a context for making one thing, which goes on after an
// interrupt: the daemon would go on too, and make it after it was removed.
func Uninterrupted() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), making)
}

// NewID is a short unique name.
func NewID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}
