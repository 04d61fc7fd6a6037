package kubernetes

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

type run struct {
	backend *Kubernetes
	client  *Client
	version string    // the API server's version
	here    *netns.NS // this machine, if clients are outside the cluster
	id      string    // runLabel's value
	owner   string    // mark of this toll
	image   string
	nodes   []Node
	key     *agent.Key
	hub     *agent.Hub
	devices cluster.Devices
	knocked sync.Map // how nodes rewrite connections, [2]bool{DNAT, SNAT}; see rewritten
	unnamed sync.Map // why service names do not resolve, by the agent's name
	proxies sync.Map // kube-proxy's mode, by the node's name
	reached sync.Map // *reached of nodes' ports, from outside

	making  sync.Mutex // guards the fields that follow
	journal *journalFile
	made    int
	objects []Object
	bodies  map[place]*body
	fronts  map[front]*service
	streams []*stream
	closed  bool
}

type place struct {
	role role
	node string
}

type body struct {
	once  sync.Once
	agent *agent.Agent
	pod   *corev1.Pod
	port  hostPort
	err   error // why the pod has no agent
}

// joinTimeout includes the time for pulling an image.
const joinTimeout = 90 * time.Second

// begin connects to the cluster. It makes no objects.
func (k *Kubernetes) begin(ctx context.Context) (*run, error) {
	c, err := connect(ctx, k.Access)
	if err != nil {
		return nil, err
	}
	const length = 5 // bytes
	id := make([]byte, length)
	if _, err := rand.Read(id); err != nil {
		return nil, err
	}
	r := &run{backend: k, client: c, id: hex.EncodeToString(id), owner: journal.Mark(),
		bodies: map[place]*body{}, fronts: map[front]*service{}}
	if r.version, err = c.version(ctx); err != nil {
		return nil, err
	}
	var all []Node
	if k.Server != "" {
		r.nodes, err = c.beneath(ctx, k.Server)
	} else {
		all, r.nodes, err = k.chosen(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	if r.image, err = k.image(); err != nil {
		return nil, err
	}
	if r.key, err = agent.NewKey(); err != nil {
		return nil, err
	}
	if k.Outside {
		if r.here, err = stepOut(all); err != nil {
			return nil, err
		}
	}
	r.hub = agent.NewHub(r.key, k.Version)
	return r, nil
}

// chosen returns the nodes that the user may read, and the run's.
func (k *Kubernetes) chosen(ctx context.Context, c *Client) (all, chosen []Node, err error) {
	all, err = c.nodes(ctx)
	if err != nil && len(k.Nodes) > 0 {
		if some, named := c.named(ctx, k.Nodes); named == nil { // the user may read only some nodes
			all, err = some, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if chosen, err = choose(all, k.Nodes); err != nil {
		return nil, nil, err
	}
	if most := k.Most; most > 0 && len(chosen) > most {
		chosen = chosen[:most]
	}
	return all, chosen, nil
}

func (k *Kubernetes) image() (string, error) {
	if k.Image != "" {
		return k.Image, nil
	}
	name, _, err := dockerapi.Archive(k.Program, dockerapi.NodeRepository)
	return name, err
}

// owes records an object for removal, and writes the journal before the first one. The caller makes
// the object afterwards.
func (r *run) owes(o Object) error {
	r.making.Lock()
	defer r.making.Unlock()
	if r.closed {
		return errClosed
	}
	if r.journal == nil {
		j := Journal{Owner: r.owner, Run: r.id, Kubeconfig: kubeconfigOf(r.backend.Access),
			Context: r.client.Context, Server: r.client.Server, Namespace: r.client.Namespace}
		var err error
		if r.journal, err = j.write(r.backend.StateDir); err != nil {
			return err
		}
	}
	r.objects = append(r.objects, o)
	return nil
}

var errClosed = errors.New("the run is over")

func (r *run) makePod(ctx context.Context, kind role, n Node, port hostPort) (*corev1.Pod, error) {
	if err := r.otherArch(n); err != nil {
		return nil, err
	}
	r.making.Lock()
	name := r.name(string(kind))
	r.making.Unlock()
	if err := r.owes(Object{Kind: pods, Name: name}); err != nil {
		return nil, err
	}
	into := &corev1.Pod{}
	// Interrupts do not cancel the request: toll must know whether the object was made.
	if err := r.client.create(context.WithoutCancel(ctx), pods, r.pod(name, kind, n, port), into); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	defer exchange.Waiting(fmt.Sprintf("node %s to start pod %s", n.Name, name))()
	answered := time.Now()
	for {
		err := r.client.get(ctx, pods, name, into)
		if err == nil {
			answered = time.Now()
		} else if ctx.Err() == nil && (final(err) || time.Since(answered) > outage) {
			return nil, err
		}
		switch why := r.failed(into, n); {
		case why != nil:
			return into, why
		case into.Status.Phase == corev1.PodRunning && into.Status.PodIP != "":
			return into, nil
		}
		const again = 150 * time.Millisecond
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				return into, cause
			}
			return into, r.late(into, n)
		case <-time.After(again):
		}
	}
}

// outage is how long the API server may fail while a pod starts, as when it restarts or another one
// takes its place.
const outage = 15 * time.Second

// final reports whether asking again for a pod would not help: it is gone, or may not be read.
func final(err error) bool {
	var u *machine.UnsupportedError
	return apierrors.IsNotFound(err) || errors.As(err, &u) && u.Lack == machine.LackPermission
}

// bodyOf returns the pod of a role on a node, with its agent. It makes them at the first call.
func (r *run) bodyOf(ctx context.Context, kind role, n Node) (*body, error) {
	at := place{kind, n.Name}
	r.making.Lock()
	b := r.bodies[at]
	if b == nil {
		b = &body{}
		r.bodies[at] = b
	}
	r.making.Unlock()
	b.once.Do(func() {
		b.err = r.bring(ctx, b, kind, n)
		if ctx.Err() != nil { // the caller was interrupted, so a later call may try again
			r.making.Lock()
			delete(r.bodies, at)
			r.making.Unlock()
		}
	})
	if b.err != nil {
		return nil, b.err
	}
	if err := b.agent.Err(); err != nil {
		why, _ := r.whyLeft(b, err)
		return nil, &path.LeftError{Node: n.Name, Err: why}
	}
	return b, nil
}

func (r *run) bring(ctx context.Context, b *body, kind role, n Node) (err error) {
	if kind == published {
		b.port = hostPort(cluster.DrawPort())
	}
	if b.pod, err = r.makePod(ctx, kind, n, b.port); err != nil {
		return err
	}
	name := "pod on node " + n.Name
	if kind == onNode || kind == observing {
		name = "node " + n.Name
	}
	if kind == published || kind == serving {
		name = "server's " + name
	}
	b.agent, err = r.agentIn(ctx, b.pod.Name, name)
	return err
}

type service struct {
	once sync.Once
	made corev1.Service
	err  error
}

func (r *run) frontOf(ctx context.Context, kind front) (*corev1.Service, error) {
	r.making.Lock()
	s := r.fronts[kind]
	if s == nil {
		s = &service{}
		r.fronts[kind] = s
	}
	name := r.name(string(kind))
	r.making.Unlock()
	s.once.Do(func() {
		if s.err = r.owes(Object{Kind: services, Name: name}); s.err == nil {
			s.err = r.client.create(context.WithoutCancel(ctx), services, r.serviceOf(name, kind),
				&s.made)
		}
	})
	return &s.made, s.err
}

func (r *run) proxyOn(ctx context.Context, e *end) string {
	if known, ok := r.proxies.Load(e.Name); ok {
		return known.(string)
	}
	mode, err := e.Agent.KubeProxy(ctx)
	word := cmp.Or(mode, "no sign of it")
	if err != nil {
		word = unknown
	}
	r.proxies.Store(e.Name, word)
	return word
}

const removal = 45 * time.Second

func (r *run) close() error {
	err := r.hub.Close()
	if r.here != nil {
		err = errors.Join(err, r.here.Close())
	}
	r.making.Lock()
	r.closed = true
	objects, streams, journal := r.objects, r.streams, r.journal
	r.making.Unlock()
	for _, s := range streams {
		_ = s.Close()
	}
	if journal == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), removal)
	defer cancel()
	gone := r.client.removeAll(ctx, objects)
	if gone != nil {
		gone = &leftError{gone}
	}
	return errors.Join(err, gone, journal.close(gone == nil))
}

type leftError struct{ err error }

func (e *leftError) Error() string { return "left behind: " + e.err.Error() }
func (e *leftError) Unwrap() error { return e.err }

// Left marks the error as one about things that remain.
func (e *leftError) Left() {}

// Hint tells how to remove the objects.
func (e *leftError) Hint() string {
	return "once the API server and the nodes answer, toll clean removes what is left; pods also end without it"
}
