package dockerapi

import (
	"context"
	"errors"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// ScopeSwarm is the scope of a swarm's networks.
const ScopeSwarm = "swarm"

const removal = 20 * time.Second

func cleanUp() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), removal)
}

// RemoveContainer removes a container of the run, even after an interrupt. It returns nil if the
// container does not exist.
func (d *Daemon) RemoveContainer(name string) error {
	err := removeContainer(d.API, name)
	if err == nil {
		d.Journal.Gone(Container, name)
	}
	return err
}

// RemoveNetwork removes a network of the run, even after an interrupt. It returns nil if the
// network does not exist.
func (d *Daemon) RemoveNetwork(name string) error {
	err := removeNetwork(d.API, name)
	if err == nil {
		d.Journal.Gone(Network, name)
	}
	return err
}

// removeContainer removes a container that may be ending already.
func removeContainer(api *client.Client, name string) error {
	ctx, cancel := cleanUp()
	defer cancel()
	for {
		_, err := api.ContainerRemove(ctx, name,
			client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		if err != nil && !cerrdefs.IsConflict(err) && !endedFirst(err) {
			return err
		}
		const again = 10 * time.Millisecond
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(again):
		}
	}
}

// removeNetwork removes a network. It waits a while until no task of a swarm uses the network.
func removeNetwork(api *client.Client, name string) error {
	ctx, cancel := cleanUp()
	defer cancel()
	return Patiently(ctx, usedByTask, func() error {
		_, err := api.NetworkRemove(ctx, name, client.NetworkRemoveOptions{})
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// RemoveImage removes an image. For a limited time it waits until no container uses the image,
// because a service's containers end some time after the service.
func RemoveImage(ctx context.Context, api *client.Client, name string) error {
	return Patiently(ctx, cerrdefs.IsConflict, func() error {
		_, err := api.ImageRemove(ctx, name, client.ImageRemoveOptions{PruneChildren: true})
		return err
	})
}

// Containers lists an engine's containers, all or the running ones. While Podman removes one of
// them its list fails, so it is requested again for a limited time.
func Containers(ctx context.Context, api *client.Client, o client.ContainerListOptions) (
	all []container.Summary, err error) {
	err = Patiently(ctx, removedMeanwhile, func() error {
		list, err := api.ContainerList(ctx, o)
		all = list.Items
		return err
	})
	return all, err
}

// Patiently calls do again while passes reports that its error is temporary, for a limited time. It
// returns the last error.
func Patiently(ctx context.Context, passes func(error) bool, do func() error) error {
	const again = 100 * time.Millisecond
	for began := time.Now(); ; {
		err := do()
		if err == nil || !passes(err) || time.Since(began) > removal {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(again):
		}
	}
}
