package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/owner"
)

// Clean removes what runs left whose toll is gone, and says what it removed: what
// has their label at the daemon that this environment names and at those that
// their journals name, and what they made on the machine beside Docker. A daemon
// that is not there is no error, unless a journal says that it has something of
// ours.
type Clean struct {
	// StateDir is as Docker's.
	StateDir string
	// Others removes also what tolls of other machines made in this one's swarm:
	// whether they still run cannot be known here.
	Others bool

	// Left is what they made and was left alone, after Run.
	Left []string
}

// Run cleans.
func (c *Clean) Run(ctx context.Context) (removed []string, err error) {
	journals, err := leftJournals(c.StateDir)
	if err != nil {
		return nil, err
	}
	var hosts []string
	if host, err := findHost(os.Getenv); err == nil {
		if file, err := socketOf(host); err == nil && reachable(file) == nil {
			hosts = append(hosts, host)
		}
	}
	for _, j := range journals {
		if !slices.Contains(hosts, j.host) {
			hosts = append(hosts, j.host)
		}
	}
	removed, failed, errs := c.daemons(ctx, hosts, journals)
	some, still, err := cleanMachine(journals)
	removed, errs = append(removed, some...), append(errs, err)
	for _, j := range journals {
		if !failed[j.host] && !still[j.file] {
			errs = append(errs, os.Remove(j.file))
		}
	}
	return removed, errors.Join(errs...)
}

// daemons removes what dead tolls made at the daemons, whose addresses are hosts.
// Failed are those where something could not be removed.
func (c *Clean) daemons(ctx context.Context, hosts []string, journals []leftJournal) (removed []string, failed map[string]bool, errs []error) {
	failed = map[string]bool{}
	c.Left = nil
	for _, host := range hosts {
		var made []entry
		for _, j := range journals {
			if j.host == host {
				made = append(made, slices.DeleteFunc(slices.Clone(j.made), entry.ofMachine)...)
			}
		}
		some, spared, err := c.until(ctx, host, made)
		removed = append(removed, some...)
		for _, what := range spared {
			if !slices.Contains(c.Left, what) { // two addresses may be one daemon's
				c.Left = append(c.Left, what)
			}
		}
		if err != nil {
			failed[host] = true
			errs = append(errs, fmt.Errorf("clean the Docker daemon at %s: %w", host, err))
		}
	}
	return removed, failed, errs
}

// until removes what dead tolls made, also what their daemon still makes:
// it goes on with what it was asked for when the toll was killed. Spared is what
// was left alone in the end.
func (c *Clean) until(ctx context.Context, host string, made []entry) (removed, spared []string, err error) {
	const (
		latest = 3 * time.Second
		again  = 200 * time.Millisecond
	)
	for began := time.Now(); ; {
		some, spared, err := c.at(ctx, host, made)
		for _, e := range some {
			removed = append(removed, e.kind+" "+e.name)
			made = slices.DeleteFunc(made, func(m entry) bool { return m == e })
		}
		if err != nil || len(made) == 0 || time.Since(began) > latest {
			return removed, spared, err
		}
		select {
		case <-ctx.Done():
			return removed, spared, context.Cause(ctx)
		case <-time.After(again):
		}
	}
}

// leftJournals are the journals of runs whose toll is gone.
func leftJournals(dir string) ([]leftJournal, error) {
	dir, err := stateDir(dir)
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for journals: %w", err)
	}
	var out []leftJournal
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), journalSuffix) {
			continue
		}
		name := filepath.Join(dir, f.Name())
		j, err := readJournal(name)
		if err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		if j.mark != "" && j.host != "" && !owner.Alive(j.mark) {
			out = append(out, j)
		}
	}
	return out, nil
}

// at removes what has the label of a dead toll: containers first, because they hold
// the others. Spared is what has that of a toll on another machine.
func (c *Clean) at(ctx context.Context, host string, made []entry) (removed []entry, spared []string, err error) {
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
	e := &engine{api: api, host: host, journal: &journal{open: map[entry]bool{}}}
	defer func() { err = errors.Join(err, api.Close()) }()
	ours := make(client.Filters).Add("label", runLabel)
	dead := func(labels map[string]string) bool {
		mark := labels[runLabel]
		return mark != "" && (!owner.Alive(mark) || c.Others && owner.Elsewhere(mark))
	}
	spare := func(kind, name string, labels map[string]string) {
		if owner.Elsewhere(labels[runLabel]) && !c.Others {
			spared = append(spared, kind+" "+name)
		}
	}
	var errs []error
	remove := func(kind, name string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("remove %s %s: %w", kind, name, err))
			return
		}
		removed = append(removed, entry{kind, name})
	}

	containers, err := api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		return nil, nil, err
	}
	for _, b := range containers.Items {
		if dead(b.Labels) {
			name := strings.TrimPrefix(strings.Join(b.Names, ","), "/")
			// One that a daemon was about to remove when it ended has lost its name.
			remove(ofContainer, cmp.Or(name, b.ID), e.removeContainer(b.ID))
		}
	}
	if err := e.removeServices(ctx, made, dead, remove, spare); err != nil {
		return removed, spared, err
	}
	networks, err := api.NetworkList(ctx, client.NetworkListOptions{Filters: ours})
	if err != nil {
		return removed, spared, err
	}
	for _, n := range networks.Items {
		if dead(n.Labels) {
			if n.Scope == scopeSwarm {
				remove(ofNetwork, n.Name, RemoveNetwork(ctx, api, n.ID))
				continue
			}
			remove(ofNetwork, n.Name, e.removeNetwork(n.ID))
		}
	}
	images, err := api.ImageList(ctx, client.ImageListOptions{Filters: ours})
	if err != nil {
		return removed, spared, err
	}
	for _, i := range images.Items {
		if !dead(i.Labels) {
			continue
		}
		for _, tag := range i.RepoTags {
			if !strings.HasPrefix(tag, repository) {
				continue // somebody gave it another name
			}
			_, err := api.ImageRemove(ctx, tag, client.ImageRemoveOptions{PruneChildren: true})
			if cerrdefs.IsNotFound(err) {
				err = nil
			}
			remove(ofImage, tag, err)
		}
	}
	for _, m := range made { // those that every node has the same carry no mark
		if m.kind != ofImage || slices.Contains(removed, m) {
			continue
		}
		switch err := RemoveImage(ctx, api, m.name); {
		case cerrdefs.IsNotFound(err):
		case cerrdefs.IsConflict(err): // another run uses it
		default:
			remove(ofImage, m.name, err)
		}
	}
	return removed, spared, errors.Join(errs...)
}
