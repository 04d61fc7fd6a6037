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

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
)

// Sweep is one search for what ended tolls left in a daemon.
type Sweep struct {
	API  *client.Client
	Made []Entry // listed for this daemon in journals of ended tolls

	judge
	removed []Entry
	spared  []Left
	errs    []error
	late    bool // the daemon does not answer in time: no more requests
}

// Labelled returns a filter for things with RunLabel.
func Labelled() client.Filters { return make(client.Filters).Add("label", RunLabel) }

// Over reports whether a thing belongs to an ended toll. It records a thing as spared if the state
// of its owner is unknown. Of tolls on other machines it records only a swarm's services and
// secrets: their other things are removed together with these.
func (s *Sweep) Over(kind Kind, name string, labels map[string]string) bool {
	return s.over(kind, name, labels[RunLabel], s.of)
}

// OverInCluster is Over for things of a swarm, which other machines make, too.
func (s *Sweep) OverInCluster(kind Kind, name string, labels map[string]string) bool {
	return s.over(kind, name, labels[RunLabel], s.inCluster)
}

func (s *Sweep) over(kind Kind, name, mark string, judge func(mark string) journal.State) bool {
	if mark == "" || s.late {
		return false
	}
	state := judge(mark)
	if state == journal.Unclear && (!journal.Elsewhere(mark) || kind == Service || kind == Secret) {
		s.spared = append(s.spared, Left{string(kind) + " " + name, journal.Whose(mark)})
	}
	return state == journal.Gone
}

// Done records the result of removing a thing.
func (s *Sweep) Done(kind Kind, name string, err error) {
	s.late = s.late || errors.Is(err, context.DeadlineExceeded)
	if err != nil {
		s.errs = append(s.errs, fmt.Errorf("remove %s %s: %w", kind, name, withoutURL(err)))
		return
	}
	s.removed = append(s.removed, Entry{kind, name})
}

// containers removes containers in several passes, as long as one removes any: Podman removes a
// container only after those that share its network.
func (s *Sweep) containers(ctx context.Context) error {
	type container struct{ id, name string }
	listed, err := Containers(ctx, s.API,
		client.ContainerListOptions{All: true, Filters: Labelled()})
	var over []container
	for _, b := range listed {
		// A container has no name if its daemon ended while it removed the container.
		name := cmp.Or(strings.TrimPrefix(strings.Join(b.Names, ","), "/"), b.ID)
		if s.Over(Container, name, b.Labels) {
			over = append(over, container{b.ID, name})
		}
	}
	for {
		var kept []container
		var errs []error
		for _, c := range over {
			if err := removeContainer(s.API, c.id); err != nil {
				kept, errs = append(kept, c), append(errs, err)
				if s.late = errors.Is(err, context.DeadlineExceeded); s.late {
					break
				}
				continue
			}
			s.Done(Container, c.name, nil)
		}
		if len(kept) == len(over) || s.late {
			for i, c := range kept {
				s.Done(Container, c.name, errs[i])
			}
			return err
		}
		over = kept
	}
}

// networks removes the daemon's networks. Those of a swarm are removed by the part for swarms.
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

// images removes labelled images and those listed in journals: images for the nodes of a swarm have
// only keptLabel.
func (s *Sweep) images(ctx context.Context) error {
	if s.late {
		return nil
	}
	all, err := s.API.ImageList(ctx, client.ImageListOptions{Filters: Labelled()})
	if err != nil {
		return err
	}
	for _, i := range all.Items {
		// An image has no tag if a user took it away while the run's containers used it.
		i.RepoTags = slices.DeleteFunc(i.RepoTags, func(tag string) bool { return tag == untagged })
		if !s.Over(Image, cmp.Or(strings.Join(i.RepoTags, ","), i.ID), i.Labels) {
			continue
		}
		if len(i.RepoTags) == 0 {
			_, err := s.API.ImageRemove(ctx, i.ID, client.ImageRemoveOptions{PruneChildren: true})
			s.Done(Image, i.ID, err)
			continue
		}
		s.errs = append(s.errs, s.removeImage(ctx, i, isOurs))
	}
	named := func(tag string) bool { return slices.Contains(s.Made, Entry{Image, shortTag(tag)}) }
	if !slices.ContainsFunc(s.Made, func(m Entry) bool { return m.Kind == Image }) {
		return nil
	}
	all, err = s.API.ImageList(ctx, client.ImageListOptions{
		Filters: make(client.Filters).Add("label", keptLabel)})
	for _, i := range all.Items {
		// A service's containers end some time after it; if they stay, another run uses the image.
		err := Patiently(ctx, cerrdefs.IsConflict, func() error {
			return s.removeImage(ctx, i, named)
		})
		if !cerrdefs.IsConflict(err) {
			s.errs = append(s.errs, err)
		}
	}
	return err
}

// untagged is what engines before API 1.43 list as the tag of an image without one.
const untagged = "<none>:<none>"

// shortTag returns a tag without the registry that Podman writes before it.
func shortTag(tag string) string {
	for _, registry := range []string{"docker.io/library/", "localhost/"} {
		if short, is := strings.CutPrefix(tag, registry); is {
			return short
		}
	}
	return tag
}

func isOurs(tag string) bool { return strings.HasPrefix(shortTag(tag), repository+":") }

// removeImage removes an image, or only toll's tags if the image has others.
func (s *Sweep) removeImage(ctx context.Context, i imageapi.Summary,
	ours func(tag string) bool) error {
	tags := slices.DeleteFunc(slices.Clone(i.RepoTags), func(tag string) bool { return !ours(tag) })
	for _, tag := range tags {
		what := tag
		if len(i.RepoTags) == 1 {
			what = i.ID // by now the tag may belong to another image
		}
		_, err := s.API.ImageRemove(ctx, what, client.ImageRemoveOptions{PruneChildren: true})
		if err != nil && !cerrdefs.IsNotFound(err) {
			return fmt.Errorf("remove image %s: %w", tag, err)
		}
		s.Done(Image, tag, nil)
	}
	return nil
}
