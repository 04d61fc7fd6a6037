package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	imageapi "github.com/moby/moby/api/types/image"
	"github.com/moby/moby/client"
)

// images removes those of dead tolls, and those that journals name: an image that
// every node has the same carries no mark, but the label of images of ours.
func (s *sweep) images(ctx context.Context, made []entry) error {
	all, err := s.api.ImageList(ctx, client.ImageListOptions{Filters: labelled()})
	if err != nil {
		return err
	}
	for _, i := range all.Items {
		if s.over(ofImage, strings.Join(i.RepoTags, ","), i.Labels) {
			err := s.removeImage(ctx, i, func(tag string) bool { return strings.HasPrefix(tag, repository) })
			s.errs = append(s.errs, err)
		}
	}
	named := func(tag string) bool { return slices.Contains(made, entry{ofImage, tag}) }
	if !slices.ContainsFunc(made, func(m entry) bool { return m.kind == ofImage }) {
		return nil
	}
	all, err = s.api.ImageList(ctx, client.ImageListOptions{Filters: make(client.Filters).Add("label", keptLabel)})
	for _, i := range all.Items {
		// The containers of a service go a while after it; if they stay, another run uses it.
		err := patiently(ctx, cerrdefs.IsConflict, func() error { return s.removeImage(ctx, i, named) })
		if !cerrdefs.IsConflict(err) {
			s.errs = append(s.errs, err)
		}
	}
	return err
}

// removeImage removes an image, or of one to which somebody gave another name only
// our own.
func (s *sweep) removeImage(ctx context.Context, i imageapi.Summary, ours func(tag string) bool) error {
	tags := slices.DeleteFunc(slices.Clone(i.RepoTags), func(tag string) bool { return !ours(tag) })
	for _, tag := range tags {
		what := tag
		if len(i.RepoTags) == 1 {
			what = i.ID // the name may be another image's by now
		}
		_, err := s.api.ImageRemove(ctx, what, client.ImageRemoveOptions{PruneChildren: true})
		if err != nil && !cerrdefs.IsNotFound(err) {
			return fmt.Errorf("remove image %s: %w", tag, err)
		}
		s.done(ofImage, tag, nil)
	}
	return nil
}
