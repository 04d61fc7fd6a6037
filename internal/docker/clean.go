package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/owner"
)

// Clean removes what runs left whose toll is gone, and says what it removed: what
// has their label at the daemon that this environment names, and what they made on
// the machine beside Docker. Journals only say where to look: nothing is removed at a
// daemon for its name, and no other daemon is talked to because a journal names it. A
// daemon that is not there is no error, unless a journal says that it has something
// of ours.
type Clean struct {
	// StateDir is as Docker's.
	StateDir string
	// Others removes also what is not known to be over: what tolls of other machines
	// made in this one's swarm, and those whose process cannot be seen from here.
	Others bool

	// Left is what they made and was left alone, after Run.
	Left []Left
}

// Run cleans.
func (c *Clean) Run(ctx context.Context) (removed []string, err error) {
	js, err := openJournals(c.StateDir, c.Others)
	defer js.close()
	c.Left = slices.Clone(js.dark)
	removed, kept, errDaemon := c.daemon(ctx, js)
	some, still, errMachine := cleanMachine(js.left, js.dead)
	removed = append(removed, some...)
	errs := []error{err, errDaemon, errMachine}
	for _, j := range js.left {
		if !kept[j.file] && !still[j.file] {
			errs = append(errs, js.remove(j))
		}
	}
	return removed, errors.Join(errs...)
}

// daemon removes what dead tolls made at the daemon that docker uses now. Kept are
// the files of journals that tell of what may still be there, or at another one.
func (c *Clean) daemon(ctx context.Context, js *journals) (removed []string, kept map[string]bool, err error) {
	host, hostErr := findHost(os.Getenv)
	var made []entry
	var errs []error
	here := map[string]bool{}
	kept = map[string]bool{}
	for _, j := range js.left {
		things := slices.DeleteFunc(slices.Clone(j.made), entry.ofMachine)
		switch {
		case len(things) == 0:
		case hostErr == nil && sameDaemon(j.host, host):
			made, here[j.file] = append(made, things...), true
		default:
			kept[j.file] = true
			errs = append(errs, &otherDaemon{j.file, j.host})
		}
	}
	if hostErr != nil || len(made) == 0 && !listens(host) {
		return nil, kept, errors.Join(errs...)
	}
	if removed, err = c.until(ctx, host, made, js.judge); err != nil {
		errs = append(errs, fmt.Errorf("clean the Docker daemon at %s: %w", host, err))
		maps.Copy(kept, here)
	}
	return removed, kept, errors.Join(errs...)
}

// listens reports whether there is a daemon at the address.
func listens(host string) bool {
	file, err := socketOf(host)
	return err == nil && reachable(file) == nil
}

// sameDaemon reports whether two addresses are those of one socket.
func sameDaemon(a, b string) bool {
	if a == b {
		return true
	}
	fileA, errA := socketOf(a)
	fileB, errB := socketOf(b)
	if errA != nil || errB != nil {
		return false
	}
	isA, errA := os.Stat(fileA)
	isB, errB := os.Stat(fileB)
	return errA == nil && errB == nil && os.SameFile(isA, isB)
}

// otherDaemon says that a journal tells of things at a daemon that docker does not
// use now.
type otherDaemon struct{ file, host string }

func (e *otherDaemon) Error() string {
	return fmt.Sprintf("journal %q tells of things at another Docker daemon, %q, which is not asked because a journal names it", e.file, e.host)
}

// plainHost is an address that a shell takes as one word.
var plainHost = regexp.MustCompile(`^unix://[A-Za-z0-9/._@:+-]+$`)

// Hint is the command that asks it.
func (e *otherDaemon) Hint() string {
	if !plainHost.MatchString(e.host) {
		return "if you know that daemon, run toll clean with DOCKER_HOST set to it"
	}
	return "if you know that daemon: DOCKER_HOST=" + e.host + " toll clean"
}

// until removes what dead tolls made, also what their daemon still makes:
// it goes on with what it was asked for when the toll was killed.
func (c *Clean) until(ctx context.Context, host string, made []entry, j judge) (removed []string, err error) {
	const (
		latest = 3 * time.Second
		again  = 200 * time.Millisecond
	)
	before := c.Left
	for began := time.Now(); ; {
		some, spared, err := cleanOnce(ctx, host, made, j)
		c.Left = append(slices.Clone(before), spared...)
		for _, e := range some {
			removed = append(removed, e.kind+" "+e.name)
			made = slices.DeleteFunc(made, func(m entry) bool { return m == e })
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

// sweep is one look at a daemon.
type sweep struct {
	*engine
	judge
	removed []entry
	spared  []Left
	errs    []error
}

// cleanOnce removes what has the label of a dead toll: containers first, because they
// hold the others. Spared is what has that of one that may live.
func cleanOnce(ctx context.Context, host string, made []entry, j judge) (removed []entry, spared []Left, err error) {
	file, err := socketOf(host)
	if err != nil {
		return nil, nil, err
	}
	if err := reachable(file); err != nil {
		return nil, nil, err
	}
	api, err := newClient(host)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, api.Close()) }()
	s := &sweep{engine: &engine{api: api, host: host, journal: &journal{open: map[entry]bool{}}}, judge: j}
	err = s.containers(ctx)
	if err == nil {
		err = s.services(ctx, made)
	}
	if err == nil {
		err = s.networks(ctx)
	}
	if err == nil {
		err = s.images(ctx, made)
	}
	return s.removed, s.spared, errors.Join(append(s.errs, err)...)
}

// labelled asks for what has the label of a run.
func labelled() client.Filters { return make(client.Filters).Add("label", runLabel) }

// over reports whether a thing is that of a dead toll, and notes it if that cannot be
// told. What tolls on other machines make is told of a swarm's services and secrets:
// the rest goes with them.
func (s *sweep) over(kind, name string, labels map[string]string) bool {
	mark := labels[runLabel]
	if mark == "" {
		return false
	}
	state := s.of(mark)
	if state == owner.Unclear && (!owner.Elsewhere(mark) || kind == ofService || kind == ofSecret) {
		s.spared = append(s.spared, Left{kind + " " + name, why(mark)})
	}
	return state == owner.Gone
}

// done notes what came of removing a thing.
func (s *sweep) done(kind, name string, err error) {
	if err != nil {
		s.errs = append(s.errs, fmt.Errorf("remove %s %s: %w", kind, name, err))
		return
	}
	s.removed = append(s.removed, entry{kind, name})
}

func (s *sweep) containers(ctx context.Context) error {
	containers, err := s.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: labelled()})
	for _, b := range containers.Items {
		// One that a daemon was about to remove when it ended has lost its name.
		name := cmp.Or(strings.TrimPrefix(strings.Join(b.Names, ","), "/"), b.ID)
		if s.over(ofContainer, name, b.Labels) {
			// One that a daemon was about to remove when it ended has lost its name.
			s.done(ofContainer, cmp.Or(name, b.ID), s.removeContainer(b.ID))
		}
	}
	return err
}

func (s *sweep) networks(ctx context.Context) error {
	networks, err := s.api.NetworkList(ctx, client.NetworkListOptions{Filters: labelled()})
	for _, n := range networks.Items {
		switch {
		case !s.over(ofNetwork, n.Name, n.Labels):
		case n.Scope == scopeSwarm:
			s.done(ofNetwork, n.Name, RemoveNetwork(ctx, s.api, n.ID))
		default:
			s.done(ofNetwork, n.Name, s.removeNetwork(n.ID))
		}
	}
	return err
}
