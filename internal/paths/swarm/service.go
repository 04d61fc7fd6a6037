package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/api/types/swarm"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
)

type role string

const (
	// onHost is in the node's own namespace, where its counters are. Every node of a run has one.
	onHost role = "host"
	// inside is on the node, too, and can enter the namespaces of overlay networks.
	inside role = "inside"
	// published is on the default bridge, with a port of the node.
	published role = "publish"
	// meshed has a port of the routing mesh, on its network ingress.
	meshed    role = "ingress"
	onOverlay role = "overlay"
	encrypted role = "encrypted"
)

const (
	keyFile   = "key"
	secretDir = "/run/secrets"
	// dockerNetns is dockerd's default directory of namespaces. onHost tasks have it at inTask.
	dockerNetns = "/run/docker/netns"
	inTask      = "/netns"
)

const removal = 45 * time.Second

// cleanUp returns a context for one removal. Interrupts do not cancel it. When the run's time for
// removals has passed, each remaining removal still gets a second.
func (r *run) cleanUp() (context.Context, context.CancelFunc) {
	const (
		most  = 20 * time.Second
		least = time.Second
	)
	return context.WithTimeout(context.Background(),
		max(least, min(most, time.Until(r.patience()))))
}

func (r *run) makeSecret() error {
	name := r.name("key")
	err := r.owes(dockerapi.Secret, name, func(ctx context.Context) error {
		_, err := r.daemon.API.SecretRemove(ctx, name, client.SecretRemoveOptions{})
		return err
	})
	if err != nil {
		return err
	}
	ctx, cancel := dockerapi.Uninterrupted()
	defer cancel()
	made, err := r.daemon.API.SecretCreate(ctx, client.SecretCreateOptions{Spec: swarm.SecretSpec{
		Annotations: swarm.Annotations{Name: name, Labels: r.daemon.Labels()},
		Data:        r.key.Bundle()}})
	if err != nil {
		return fmt.Errorf("make secret: %w", err)
	}
	r.secret = &swarm.SecretReference{SecretID: made.ID, SecretName: name,
		File: &swarm.SecretReferenceFileTarget{Name: keyFile, UID: "0", GID: "0", Mode: 0o400}}
	return nil
}

func (r *run) makeNetwork(kind role) (id string, err error) {
	name := r.name("net")
	err = r.owes(dockerapi.Network, name, func(ctx context.Context) error {
		return removeNetwork(ctx, r.daemon.API, name)
	})
	if err != nil {
		return "", err
	}
	options := map[string]string{}
	if kind == encrypted {
		options["encrypted"] = ""
	}
	ctx, cancel := dockerapi.Uninterrupted()
	defer cancel()
	made, err := r.daemon.API.NetworkCreate(
		ctx, name, client.NetworkCreateOptions{Driver: "overlay", Scope: dockerapi.ScopeSwarm,
			Options: options, Labels: r.daemon.Labels()})
	if err != nil {
		return "", fmt.Errorf("make network: %w", err)
	}
	return made.ID, nil
}

// makeServices makes one service for all nodes, or one for each chosen node. It does not make
// services again that an earlier call made.
func (r *run) makeServices(ctx context.Context, s *service) error {
	make := func(name string, mode swarm.ServiceMode, where ...string) error {
		err := r.owes(dockerapi.Service, name, func(ctx context.Context) error {
			_, err := r.daemon.API.ServiceRemove(ctx, name, client.ServiceRemoveOptions{})
			return err
		})
		if err != nil {
			return err
		}
		ctx, cancel := dockerapi.Uninterrupted()
		defer cancel()
		made, err := r.daemon.API.ServiceCreate(
			ctx, client.ServiceCreateOptions{Spec: r.spec(s, name, mode, where)})
		if err != nil {
			return fmt.Errorf("make service %s: %w", name, err)
		}
		s.ids = append(s.ids, made.ID)
		return nil
	}
	if r.everyNode && s.role == onHost {
		if len(s.ids) > 0 {
			return nil
		}
		return make(r.name(string(s.role)), swarm.ServiceMode{Global: &swarm.GlobalService{}})
	}
	one := uint64(1)
	for _, n := range s.nodes[len(s.ids):] {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := make(r.name(string(s.role)), swarm.ServiceMode{
			Replicated: &swarm.ReplicatedService{Replicas: &one}}, "node.id=="+n.ID)
		if err != nil {
			return err
		}
	}
	return nil
}

// spec describes a service whose tasks start one agent and are never restarted.
func (r *run) spec(s *service, name string, how swarm.ServiceMode,
	where []string) swarm.ServiceSpec {
	grace := time.Second
	c := &swarm.ContainerSpec{Image: r.image,
		Command: []string{dockerapi.InImage, agent.Arg, "--bundle",
			secretDir + "/" + keyFile, "--dial", r.hub.Addr().String()},
		Env:     s.environment(),
		Secrets: []*swarm.SecretReference{r.secret},
		// CAP_NET_ADMIN permits reading rules, connection tracking tables and XFRM states.
		CapabilityAdd:   []string{"CAP_NET_ADMIN"},
		StopGracePeriod: &grace, ReadOnly: true,
		Privileges: &swarm.Privileges{NoNewPrivileges: true}}
	task := swarm.TaskSpec{ContainerSpec: c, LogDriver: &swarm.Driver{Name: "none"},
		RestartPolicy: &swarm.RestartPolicy{Condition: swarm.RestartPolicyConditionNone},
		Placement:     &swarm.Placement{Constraints: where}}
	end := &swarm.EndpointSpec{Mode: swarm.ResolutionModeDNSRR}
	switch s.role {
	case onHost:
		task.Networks = []swarm.NetworkAttachmentConfig{{Target: "host"}}
	case inside:
		task.Networks = []swarm.NetworkAttachmentConfig{{Target: "host"}}
		c.CapabilityAdd = append(c.CapabilityAdd, "CAP_SYS_ADMIN") // to enter namespaces
		c.Mounts = []mount.Mount{{Type: mount.TypeBind, Source: dockerNetns, Target: inTask,
			ReadOnly:    true,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRSlave}}}
	case published, meshed:
		how := swarm.PortConfigPublishModeHost
		if s.role == meshed {
			how, end.Mode = swarm.PortConfigPublishModeIngress, swarm.ResolutionModeVIP
		}
		for _, proto := range []network.IPProtocol{network.TCP, network.UDP} {
			end.Ports = append(end.Ports, swarm.PortConfig{
				Protocol: proto, TargetPort: serverPort, PublishMode: how})
		}
	case onOverlay, encrypted:
		task.Networks = []swarm.NetworkAttachmentConfig{{Target: s.network}}
	}
	return swarm.ServiceSpec{Annotations: swarm.Annotations{Name: name, Labels: r.daemon.Labels()},
		TaskTemplate: task, Mode: how, EndpointSpec: end}
}

// owes writes a thing to the journal and registers its removal. The caller makes the thing
// afterwards.
func (r *run) owes(kind dockerapi.Kind, name string, remove func(context.Context) error) error {
	if err := r.daemon.Journal.Add(kind, name); err != nil {
		return err
	}
	r.end.Push(fmt.Sprintf("remove %s %s", kind, name), func() error {
		return r.removed(kind, name, remove)
	})
	return nil
}

// removed removes a thing. It tries again while the swarm has no leader. It returns nil if the
// thing does not exist.
func (r *run) removed(kind dockerapi.Kind, name string, remove func(context.Context) error) error {
	const again = 300 * time.Millisecond
	for {
		ctx, cancel := r.cleanUp()
		err := remove(ctx)
		cancel()
		switch {
		case err == nil || cerrdefs.IsNotFound(err):
			r.daemon.Journal.Gone(kind, name)
			return nil
		case dockerapi.NotManager(err):
			return &machine.UnsupportedError{Missing: fmt.Sprintf(
				"remove %s %s: this node is no longer a manager of the swarm", kind, name),
				Remedy: "toll clean --force on a manager", Err: err}
		case !time.Now().Before(r.patience()):
			return fmt.Errorf("remove %s %s: %w", kind, name, err)
		}
		time.Sleep(again)
	}
}

// patience returns the deadline that all removals share.
func (r *run) patience() time.Time {
	if r.until.IsZero() {
		r.until = time.Now().Add(removal)
	}
	return r.until
}

// makeImage loads toll's image on this node, unless the user named an image. The other nodes must
// have it already, because a swarm does not distribute images.
func (r *run) makeImage(ctx context.Context) error {
	if r.swarm.Image != "" {
		r.image = r.swarm.Image
		return nil
	}
	name, archive, err := dockerapi.Archive(r.swarm.Program, dockerapi.NodeRepository)
	if err != nil {
		return err
	}
	r.image = name
	_, err = r.daemon.API.ImageInspect(ctx, name)
	if err == nil || !cerrdefs.IsNotFound(err) {
		return err
	}
	err = r.owes(dockerapi.Image, name, func(ctx context.Context) error {
		err := dockerapi.RemoveImage(ctx, r.daemon.API, name)
		if cerrdefs.IsConflict(err) && !r.uses(name) { // another run uses the image
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := r.daemon.Load(archive); err != nil {
		return errors.Join(fmt.Errorf("make image %s: %w", name, err), ctx.Err())
	}
	return nil
}

// uses reports whether containers of the run still use the image: the engine may remove them late.
func (r *run) uses(image string) bool {
	ctx, cancel := r.cleanUp()
	defer cancel()
	got, err := r.daemon.API.ContainerList(
		ctx, client.ContainerListOptions{All: true,
			Filters: make(client.Filters).Add("ancestor", image)})
	return err == nil && slices.ContainsFunc(got.Items, func(c container.Summary) bool {
		return strings.HasPrefix(c.Labels[serviceLabel], r.prefix())
	})
}

const serviceLabel = "com.docker.swarm.service.name"
