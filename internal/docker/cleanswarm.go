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

// removeServices removes the services and secrets of dead tolls, if the daemon
// manages a swarm.
func (e *engine) removeServices(ctx context.Context, made []entry, dead func(map[string]string) bool, remove func(kind, name string, err error), spare func(kind, name string, labels map[string]string)) error {
	info, err := e.api.Info(ctx, client.InfoOptions{})
	if err != nil {
		return err
	}
	if !info.Info.Swarm.ControlAvailable {
		if i := slices.IndexFunc(made, func(m entry) bool { return m.kind == ofService || m.kind == ofSecret }); i >= 0 {
			return fmt.Errorf("%s %s is a swarm's, which this node does not manage now: run toll clean on a manager", made[i].kind, made[i].name)
		}
		return nil
	}
	ours := make(client.Filters).Add("label", runLabel)
	services, err := e.api.ServiceList(ctx, client.ServiceListOptions{Filters: ours})
	if err != nil {
		return err
	}
	for _, s := range services.Items {
		if dead(s.Spec.Labels) {
			_, err := e.api.ServiceRemove(ctx, s.ID, client.ServiceRemoveOptions{})
			remove(ofService, s.Spec.Name, err)
		}
		spare(ofService, s.Spec.Name, s.Spec.Labels)
	}
	secrets, err := e.api.SecretList(ctx, client.SecretListOptions{Filters: ours})
	if err != nil {
		return err
	}
	for _, s := range secrets.Items {
		if dead(s.Spec.Labels) {
			_, err := e.api.SecretRemove(ctx, s.ID, client.SecretRemoveOptions{})
			remove(ofSecret, s.Spec.Name, err)
		}
		spare(ofSecret, s.Spec.Name, s.Spec.Labels)
	}
	return nil
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
