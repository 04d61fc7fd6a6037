package swarm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/moby/moby/api/types/swarm"

	"github.com/bridgetoll/bridgetoll/internal/kernel/undo"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
)

type run struct {
	swarm     *Swarm
	daemon    *dockerapi.Daemon
	nodes     []Node
	everyNode bool
	key       *agent.Key
	hub       *agent.Hub
	secret    *swarm.SecretReference
	image     string
	end       undo.Stack
	until     time.Time // deadline of removals
	devices   cluster.Devices

	espMu sync.Mutex      // guards the fields that follow
	noESP map[string]bool // by the node's ID: not waited for again

	ipvsMu sync.Mutex       // guards the fields that follow
	noIPVS map[string]error // by the node's ID: not waited for again

	making   sync.Mutex // guards the fields that follow
	services map[role]*service
	made     int
}

func (s *Swarm) begin(ctx context.Context) (*run, error) {
	d, err := dockerapi.Connect(ctx, s.StateDir)
	if err != nil {
		return nil, err
	}
	r := &run{swarm: s, daemon: d, services: map[role]*service{}, noESP: map[string]bool{},
		noIPVS: map[string]error{}}
	if err := r.begin(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *run) begin(ctx context.Context) error {
	if err := managed(r.daemon.Info.Swarm); err != nil {
		return err
	}
	ready, why, err := nodes(ctx, r.daemon.API)
	if err != nil {
		return err
	}
	if r.nodes, err = choose(ready, why, r.swarm.Nodes); err != nil {
		return err
	}
	if most := r.swarm.Most; most > 0 && len(r.nodes) > most {
		r.nodes = r.nodes[:most]
	}
	r.everyNode = len(r.nodes) == len(ready)
	if err := enough(r.nodes, ready, why); err != nil {
		return err
	}
	if err := r.listen(); err != nil {
		return err
	}
	if err := r.makeImage(ctx); err != nil {
		return err
	}
	return r.makeSecret()
}

func managed(i swarm.Info) error {
	switch u := dockerapi.InSwarm(i); {
	case u != nil:
		return u
	case i.LocalNodeState != swarm.LocalNodeStateActive:
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"this Docker Engine is not in a swarm (it is %s)", i.LocalNodeState),
			Remedy: "docker swarm init here and docker swarm join on the other machines; --on lab needs none"}
	case !i.ControlAvailable:
		return &machine.UnsupportedError{
			Missing: "this node of the swarm is not a manager, and only managers can make services",
			Remedy:  "run toll on a manager: docker node ls there; or set DOCKER_HOST to a manager's address"}
	}
	return nil
}

func (r *run) listen() (err error) {
	at := r.swarm.Control
	if !at.Addr().IsValid() {
		known, err := netip.ParseAddr(r.daemon.Info.Swarm.NodeAddr)
		if err != nil {
			return &machine.UnsupportedError{
				Missing: "the swarm does not know this node's address, which agents dial",
				Remedy:  "--address with an address of this machine that the nodes reach", Err: err}
		}
		at = netip.AddrPortFrom(known, at.Port())
	}
	if r.key, err = agent.NewKey(); err != nil {
		return err
	}
	if r.hub, err = agent.Listen(at, r.key, r.swarm.Version); err != nil {
		return &machine.UnsupportedError{Missing: "this machine cannot listen on " + at.String() +
			", the address that the nodes' agents dial",
			Remedy: "run toll on the manager itself, or --address with an address of this machine that the nodes reach", Err: err}
	}
	return nil
}

func (r *run) name(what string) string {
	r.made++
	return r.prefix() + what + strconv.Itoa(r.made)
}

func (r *run) prefix() string { return "toll-" + r.daemon.ID + "-" }

// close releases the agents, which then exit, and removes what the run made.
func (r *run) close() error {
	var err error
	if r.hub != nil {
		err = r.hub.Close()
	}
	return errors.Join(err, r.end.Undo(), r.daemon.Close())
}
