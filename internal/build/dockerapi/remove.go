package dockerapi

import (
	"context"
	"errors"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// ScopeSwarm is the scope of networks that are a swarm's.
const ScopeSwarm = "swarm"

// removal is how long it may take to remove one thing.
const removal = 20 * time.Second

// cleanUp is a context for removals, which must happen also after an interrupt.
func cleanUp() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), removal)
}

// RemoveContainer removes a container of the run, also after an interrupt. One that is
// not there is no error.
func (d *Daemon) RemoveContainer(name string) error {
	err := removeContainer(d.API, name)
	if err == nil {
		d.Journal.Gone(Container, name)
	}
	return err
}

// RemoveNetwork removes a network of the run, also after an interrupt. One that is not
// there is no error.
func (d *Daemon) RemoveNetwork(name string) error {
	err := removeNetwork(d.API, name)
	if err == nil {
		d.Journal.Gone(Network, name)
	}
	return err
}

// removeContainer removes a container, which may be on its way out by itself.
func removeContainer(api *client.Client, name string) error {
	ctx, cancel := cleanUp()
	defer cancel()
	for {
		_, err := api.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		if err != nil && !cerrdefs.IsConflict(err) {
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

func removeNetwork(api *client.Client, name string) error {
	ctx, cancel := cleanUp()
	defer cancel()
	_, err := api.NetworkRemove(ctx, name, client.NetworkRemoveOptions{})
	if err != nil && !cerrdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// RemoveImage removes an image, as soon as no container needs it: those of a
// service go a while after it.
func RemoveImage(ctx context.Context, api *client.Client, name string) error {
	return Patiently(ctx, cerrdefs.IsConflict, func() error {
		_, err := api.ImageRemove(ctx, name, client.ImageRemoveOptions{PruneChildren: true})
		return err
	})
}

// Patiently does something again for as long as what it says passes by itself.
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
