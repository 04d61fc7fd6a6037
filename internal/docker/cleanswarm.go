package docker

import (
	"context"
	"fmt"
	"slices"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// scopeSwarm is the scope of networks that are a swarm's.
const scopeSwarm = "swarm"

// services removes the services and secrets of dead tolls, if the daemon manages a
// swarm.
func (s *sweep) services(ctx context.Context, made []entry) error {
	info, err := s.api.Info(ctx, client.InfoOptions{})
	if err != nil {
		return err
	}
	if !info.Info.Swarm.ControlAvailable {
		if i := slices.IndexFunc(made, func(m entry) bool { return m.kind == ofService || m.kind == ofSecret }); i >= 0 {
			return fmt.Errorf("%s %s is a swarm's, which this node does not manage now: run toll clean on a manager", made[i].kind, made[i].name)
		}
		return nil
	}
	services, err := s.api.ServiceList(ctx, client.ServiceListOptions{Filters: labelled()})
	if err != nil {
		return err
	}
	for _, b := range services.Items {
		if s.over(ofService, b.Spec.Name, b.Spec.Labels) {
			_, err := s.api.ServiceRemove(ctx, b.ID, client.ServiceRemoveOptions{})
			s.done(ofService, b.Spec.Name, err)
		}
	}
	secrets, err := s.api.SecretList(ctx, client.SecretListOptions{Filters: labelled()})
	for _, b := range secrets.Items {
		if s.over(ofSecret, b.Spec.Name, b.Spec.Labels) {
			_, err := s.api.SecretRemove(ctx, b.ID, client.SecretRemoveOptions{})
			s.done(ofSecret, b.Spec.Name, err)
		}
	}
	return err
}

// RemoveImage removes an image, as soon as no container needs it: those of a
// service go a while after it.
func RemoveImage(ctx context.Context, api *client.Client, name string) error {
	return patiently(ctx, cerrdefs.IsConflict, func() error {
		_, err := api.ImageRemove(ctx, name, client.ImageRemoveOptions{PruneChildren: true})
		return err
	})
}

// RemoveNetwork removes a swarm's network, as soon as no task is on it. One that
// is not there is no error.
func RemoveNetwork(ctx context.Context, api *client.Client, name string) error {
	gone := false
	return patiently(ctx, func(error) bool { return !gone }, func() error {
		_, err := api.NetworkRemove(ctx, name, client.NetworkRemoveOptions{})
		if gone = err == nil || cerrdefs.IsNotFound(err); gone {
			return nil
		}
		return err
	})
}

// patiently does something again for as long as what it says passes by itself.
func patiently(ctx context.Context, passes func(error) bool, do func() error) error {
	const (
		again  = 100 * time.Millisecond
		latest = removal
	)
	for began := time.Now(); ; {
		err := do()
		if err == nil || !passes(err) || time.Since(began) > latest {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(again):
		}
	}
}
