package dockerapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/machine"
)

// Clean removes what ended tolls left behind in this environment's Docker daemon and Podman service
// and on the machine. Journals only show where to look: in a daemon, Clean removes only what also
// has toll's label, and it contacts no other daemon. A daemon that does not run is an error only if
// a journal lists things there.
type Clean struct {
	// StateDir is the directory of journals; "": the user's state directory.
	StateDir string
	// Others means to remove also what tolls on other machines made in this swarm, and what belongs
	// to processes that this one cannot see.
	Others bool
	// Parts remove what backends make.
	Parts []Part

	// Left lists what remains after Run.
	Left []Left

	limit time.Duration // limits the wait for an answer; 0: NewClient's limit
}

// Part removes what a backend makes in addition to containers, networks and images.
type Part struct {
	// Daemon removes the backend's things from a daemon and records them in the sweep. It is called
	// after containers are removed and before networks and images are. An error ends the sweep.
	// Daemon may be nil.
	Daemon func(context.Context, *Sweep) error
	// Machine removes what has the mark of an ended toll, and what orphans list. still has the
	// files of orphans whose things remain. Machine may be nil.
	Machine func(orphans []Orphan, dead func(mark string) bool) (
		removed []string, still map[string]bool, err error)
}

// Run cleans up and returns what it removed.
func (c *Clean) Run(ctx context.Context) (removed []string, err error) {
	js, err := openJournals(c.StateDir, c.Others)
	defer js.close()
	c.Left = slices.Clone(js.dark)
	removed, kept, errDaemon := c.daemon(ctx, js)
	errs := []error{err, errDaemon}
	for _, p := range c.Parts {
		if p.Machine == nil {
			continue
		}
		some, still, err := p.Machine(js.left, js.dead)
		removed, errs = append(removed, some...), append(errs, err)
		maps.Copy(kept, still)
	}
	for _, j := range js.left {
		if !kept[j.File] {
			errs = append(errs, js.remove(j))
		}
	}
	return removed, errors.Join(errs...)
}

// daemon cleans this environment's Docker daemon and Podman service. kept has the files of journals
// whose things may still exist, there or in another daemon.
func (c *Clean) daemon(ctx context.Context, js *journals) (removed []string, kept map[string]bool,
	err error) {
	hosts := services(os.Getenv)
	made, files := make([][]Entry, len(hosts)), make([][]string, len(hosts))
	kept = map[string]bool{}
	var errs []error
	for _, j := range js.left {
		things := slices.DeleteFunc(slices.Clone(j.Made), Entry.OfMachine)
		if len(things) == 0 {
			continue
		}
		k := slices.IndexFunc(hosts, func(s server) bool { return sameDaemon(j.host, s.host) })
		if k < 0 {
			kept[j.File] = true
			errs = append(errs, &otherDaemon{j.File, j.host})
			continue
		}
		made[k], files[k] = append(made[k], things...), append(files[k], j.File)
	}
	for k, s := range hosts {
		if len(made[k]) == 0 && !s.listens() {
			continue
		}
		some, err := c.until(ctx, s, made[k], js.judge)
		removed = append(removed, some...)
		if err != nil {
			errs = append(errs, s.failed(err))
			for _, file := range files[k] {
				kept[file] = true
			}
		}
	}
	return removed, kept, errors.Join(errs...)
}

type server struct {
	service
	host string
}

// services returns the Docker daemon and Podman's service that an environment names.
func services(getenv func(string) string) (all []server) {
	if host, err := FindHost(getenv); err == nil {
		all = append(all, server{dockerService, host})
	}
	if host := FindPodman(getenv); !slices.ContainsFunc(all, func(s server) bool {
		return sameDaemon(s.host, host)
	}) {
		all = append(all, server{podmanService, host})
	}
	return all
}

// failed says at which daemon cleaning failed, unless err does.
func (s server) failed(err error) error {
	if strings.Contains(err.Error(), strings.TrimPrefix(s.host, "unix://")) {
		return fmt.Errorf("clean: %w", err)
	}
	return fmt.Errorf("clean the %s at %s: %w", s.what, s.host, err)
}

func (s server) listens() bool {
	file, err := s.socket(s.host)
	return err == nil && reachable(s.service, file) == nil
}

func sameDaemon(a, b string) bool {
	if a == b {
		return true
	}
	fileA, errA := Socket(a)
	fileB, errB := Socket(b)
	if errA != nil || errB != nil {
		return false
	}
	isA, errA := os.Stat(fileA)
	isB, errB := os.Stat(fileB)
	return errA == nil && errB == nil && os.SameFile(isA, isB)
}

type otherDaemon struct{ file, host string }

func (e *otherDaemon) Error() string {
	return fmt.Sprintf(
		"journal %q names another daemon, %q; toll does not contact a daemon only because a journal names it", e.file, e.host)
}

// plainHost matches addresses that a shell reads as one word.
var plainHost = regexp.MustCompile(`^unix://[A-Za-z0-9/._@:+-]+$`)

func (e *otherDaemon) Hint() string {
	if !plainHost.MatchString(e.host) {
		return "if you know that daemon, run toll clean with DOCKER_HOST set to it"
	}
	return "if you know that daemon: DOCKER_HOST=" + e.host + " toll clean"
}

// until cleans repeatedly, because the daemon may still be making what ended tolls requested.
func (c *Clean) until(ctx context.Context, of server, made []Entry, j judge) (removed []string,
	err error) {
	const (
		latest = 3 * time.Second
		again  = 200 * time.Millisecond
	)
	before := c.Left
	for began := time.Now(); ; {
		some, spared, err := c.once(ctx, of, made, j)
		c.Left = append(slices.Clone(before), spared...)
		for _, e := range some {
			removed = append(removed, string(e.Kind)+" "+e.Name)
			made = slices.DeleteFunc(made, func(m Entry) bool { return m == e })
		}
		if err != nil || len(made) == 0 || time.Since(began) > latest {
			return removed, err
		}
		select {
		case <-ctx.Done():
			return removed, context.Cause(ctx)
		case <-time.After(again):
		}
	}
}

func (s server) answers(ctx context.Context, api *client.Client, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := api.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &machine.UnsupportedError{Missing: fmt.Sprintf("it does not answer within %s", limit),
			Remedy: s.restart() + ", then toll clean again"}
	}
	return err
}

// once cleans a daemon once. Containers come first, because they use the other things. spared lists
// things whose tolls may be alive.
func (c *Clean) once(ctx context.Context, of server, made []Entry, j judge) (removed []Entry,
	spared []Left, err error) {
	file, err := of.socket(of.host)
	if err != nil {
		return nil, nil, unsupported(err, "")
	}
	if err := reachable(of.service, file); err != nil {
		return nil, nil, err
	}
	api, err := newClient(of.service, of.host, func(r *http.Request) time.Duration {
		return cmp.Or(c.limit, answerLimit(r))
	})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, api.Close()) }()
	if err := of.answers(ctx, api, cmp.Or(c.limit, defaultAnswer)); err != nil {
		return nil, nil, err
	}
	s := &Sweep{API: api, Made: made, judge: j}
	err = s.containers(ctx)
	for _, p := range c.Parts {
		if err == nil && p.Daemon != nil {
			err = p.Daemon(ctx, s)
		}
	}
	if err == nil {
		err = s.networks(ctx)
	}
	if err == nil {
		err = s.images(ctx)
	}
	return s.removed, s.spared, errors.Join(append(s.errs, withoutURL(err))...)
}

// withoutURL leaves the request's URL out of a client's error: its host is a socket's escaped path.
func withoutURL(err error) error {
	e, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	return urlless{err, strings.Replace(err.Error(), e.Error(), e.Err.Error(), 1)}
}

type urlless struct {
	error
	text string
}

func (u urlless) Error() string { return u.text }
func (u urlless) Unwrap() error { return u.error }
