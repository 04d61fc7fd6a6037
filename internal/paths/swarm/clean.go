package swarm

import (
	"context"
	"fmt"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
)

// Leftovers returns the part of toll clean that removes what ended tolls left in a swarm.
func Leftovers() dockerapi.Part { return dockerapi.Part{Daemon: clean} }

func clean(ctx context.Context, s *dockerapi.Sweep) error {
	info, err := s.API.Info(ctx, client.InfoOptions{})
	if err != nil {
		return err
	}
	if info.Info.Swarm.ControlAvailable {
		err = cleanServices(ctx, s)
	} else if i := slices.IndexFunc(s.Made, func(m dockerapi.Entry) bool {
		return m.Kind == dockerapi.Service || m.Kind == dockerapi.Secret
	}); i >= 0 {
		err = fmt.Errorf(
			"%s %s belongs to a swarm, and this node is not a manager now: run toll clean on a manager",
			s.Made[i].Kind, s.Made[i].Name)
	}
	if err != nil {
		return err
	}
	networks, err := s.API.NetworkList(ctx,
		client.NetworkListOptions{Filters: dockerapi.Labelled()})
	for _, n := range networks.Items {
		if n.Scope == dockerapi.ScopeSwarm && s.OverInCluster(dockerapi.Network, n.Name, n.Labels) {
			s.Done(dockerapi.Network, n.Name, removeNetwork(ctx, s.API, n.ID))
		}
	}
	return err
}

func cleanServices(ctx context.Context, s *dockerapi.Sweep) error {
	services, err := s.API.ServiceList(ctx,
		client.ServiceListOptions{Filters: dockerapi.Labelled()})
	if err != nil {
		return err
	}
	for _, b := range services.Items {
		if s.OverInCluster(dockerapi.Service, b.Spec.Name, b.Spec.Labels) {
			_, err := s.API.ServiceRemove(ctx, b.ID, client.ServiceRemoveOptions{})
			s.Done(dockerapi.Service, b.Spec.Name, err)
		}
	}
	secrets, err := s.API.SecretList(ctx, client.SecretListOptions{Filters: dockerapi.Labelled()})
	for _, b := range secrets.Items {
		if s.OverInCluster(dockerapi.Secret, b.Spec.Name, b.Spec.Labels) {
			_, err := s.API.SecretRemove(ctx, b.ID, client.SecretRemoveOptions{})
			s.Done(dockerapi.Secret, b.Spec.Name, err)
		}
	}
	return err
}

func removeNetwork(ctx context.Context, api *client.Client, name string) error {
	gone := false
	return dockerapi.Patiently(ctx, func(error) bool { return !gone }, func() error {
		_, err := api.NetworkRemove(ctx, name, client.NetworkRemoveOptions{})
		if gone = err == nil || cerrdefs.IsNotFound(err); gone {
			return nil
		}
		return err
	})
}
