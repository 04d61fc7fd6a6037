package dockerapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	imageapi "github.com/moby/moby/api/types/image"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/build/owner"
)

// Sweep is one look at a daemon for what dead tolls left.
type Sweep struct {
	API  *client.Client
	Made []Entry // what journals of dead tolls name, at this daemon

	judge
	removed []Entry
	spared  []Left
	errs    []error
	late    bool // the daemon did not answer in time: nothing more is asked
}

// Labelled asks for what has the label of a run.
func Labelled() client.Filters { return make(client.Filters).Add("label", RunLabel) }

// Over reports whether a thing is that of a dead toll, and notes it if that cannot be
// told. What tolls on other machines make is told of a swarm's services and secrets:
// the rest goes with them.
func (s *Sweep) Over(kind Kind, name string, labels map[string]string) bool {
	mark := labels[RunLabel]
	if mark == "" || s.late {
		return false
	}
	state := s.of(mark)
	if state == owner.Unclear && (!owner.Elsewhere(mark) || kind == Service || kind == Secret) {
		s.spared = append(s.spared, Left{string(kind) + " " + name, why(mark)})
	}
	return state == owner.Gone
}

// Done notes what came of removing a thing.
func (s *Sweep) Done(kind Kind, name string, err error) {
	s.late = s.late || errors.Is(err, context.DeadlineExceeded)
	if err != nil {
		s.errs = append(s.errs, fmt.Errorf("remove %s %s: %w", kind, name, err))
		return
	}
	s.removed = append(s.removed, Entry{kind, name})
}

func (s *Sweep) containers(ctx context.Context) error {
	containers, err := s.API.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: Labelled()})
	for _, b := range containers.Items {
		// One that a daemon was about to remove when it ended has lost its name.
		name := cmp.Or(strings.TrimPrefix(strings.Join(b.Names, ","), "/"), b.ID)
		if s.Over(Container, name, b.Labels) {
			s.Done(Container, name, removeContainer(s.API, b.ID))
		}
	}
	return err
}

// networks removes those of one machine; a swarm's are the swarm's to remove.
func (s *Sweep) networks(ctx context.Context) error {
	if s.late {
		return nil
	}
	networks, err := s.API.NetworkList(ctx, client.NetworkListOptions{Filters: Labelled()})
	for _, n := range networks.Items {
		if n.Scope != ScopeSwarm && s.Over(Network, n.Name, n.Labels) {
			s.Done(Network, n.Name, removeNetwork(s.API, n.ID))
		}
	}
	return err
}

// images removes those of dead tolls, and those that journals name: an image that
// every node has the same carries no mark, but the label of images of ours.
func (s *Sweep) images(ctx context.Context) error {
	if s.late {
		return nil
	}
	all, err := s.API.ImageList(ctx, client.ImageListOptions{Filters: Labelled()})
	if err != nil {
		return err
	}
	for _, i := range all.Items {
		if s.Over(Image, strings.Join(i.RepoTags, ","), i.Labels) {
			err := s.removeImage(ctx, i, func(tag string) bool { return strings.HasPrefix(tag, repository+":") })
			s.errs = append(s.errs, err)
		}
	}
	named := func(tag string) bool { return slices.Contains(s.Made, Entry{Image, tag}) }
	if !slices.ContainsFunc(s.Made, func(m Entry) bool { return m.Kind == Image }) {
		return nil
	}
	all, err = s.API.ImageList(ctx, client.ImageListOptions{Filters: make(client.Filters).Add("label", keptLabel)})
	for _, i := range all.Items {
		// The containers of a service go a while after it; if they stay, another run uses it.
		err := Patiently(ctx, cerrdefs.IsConflict, func() error { return s.removeImage(ctx, i, named) })
		if !cerrdefs.IsConflict(err) {
			s.errs = append(s.errs, err)
		}
	}
	return err
}

// removeImage removes an image, or only our name of it if it was given another
// one.
func (s *Sweep) removeImage(ctx context.Context, i imageapi.Summary, ours func(tag string) bool) error {
	tags := slices.DeleteFunc(slices.Clone(i.RepoTags), func(tag string) bool { return !ours(tag) })
	for _, tag := range tags {
		what := tag
		if len(i.RepoTags) == 1 {
			what = i.ID // the name may be another image's by now
		}
		_, err := s.API.ImageRemove(ctx, what, client.ImageRemoveOptions{PruneChildren: true})
		if err != nil && !cerrdefs.IsNotFound(err) {
			return fmt.Errorf("remove image %s: %w", tag, err)
		}
		s.Done(Image, tag, nil)
	}
	return nil
}
