// Package kubernetes builds network modes on the user's Kubernetes cluster. The cluster places
// pods, and toll runs in each of them as an agent (see package agent). The agent's only connection
// is an exec stream of the API server, so no port is opened, and the user's own credentials decide
// what is permitted. (An attach stream would not do, because the container runtime would log it.)
//
// What is between two pods depends on the network plug-in, so agents find these hops on the nodes
// (mode.Mode.Fits). The nodes' devices may count other packets as well. The pods' own devices must
// count the load alone.
//
// A journal is written before the first object is made and names the namespace. All objects there
// have runLabel. Pods end with their toll, or at a deadline.
package kubernetes

import (
	"context"
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Name is the backend's name.
const Name = sample.Kubernetes

// Kubernetes is the backend. Only Version must be set.
type Kubernetes struct {
	cluster.Pods
	// Program is the file of the static binary for the image; "": this program.
	Program string
	// StateDir is the directory of journals; "": the user's state directory.
	StateDir string

	kept cluster.Once[*run]
}

var _ path.Builder = (*Kubernetes)(nil)

// Name returns "kubernetes".
func (k *Kubernetes) Name() string { return Name }

// recipes build the modes that a cluster can have.
var recipes = map[mode.Name]func(*site) error{
	mode.Host:          (*site).host,
	mode.Shared:        (*site).shared,
	mode.Pod:           (*site).pod,
	mode.Headless:      (*site).headless,
	mode.ClusterIP:     (*site).clusterIP,
	mode.HostPort:      (*site).hostPort,
	mode.NodePortLocal: (*site).nodePortLocal,
	mode.NodePort:      (*site).nodePort,
}

// modes returns the names of the modes that a cluster can have.
func modes() []string { return recipe.Names(recipes) }

// Check returns why the path cannot be built, or nil. It makes the path's pods and services, which
// stay until Close, and reads the nodes' facts.
func (k *Kubernetes) Check(ctx context.Context, spec path.Spec) error {
	if err := k.refuse(spec); err != nil {
		return err
	}
	return cluster.Check(ctx, k, spec)
}

// refuse returns an error for paths that no cluster can have.
func (k *Kubernetes) refuse(s path.Spec) error {
	if recipes[s.Mode] == nil {
		return cluster.NoMode("Kubernetes has no pods", s.Mode, modes())
	}
	if k.Outside {
		if err := k.refuseOutside(s); err != nil {
			return err
		}
	}
	if k.Unprivileged && s.To.Outside() {
		return &machine.UnsupportedError{
			Missing: "the server of the target outside needs hostNetwork, which --unprivileged rules out",
			Remedy:  "pod, clusterip or nodeport, without --to outside"}
	}
	onNodes := s.From == mode.FromHost || s.From == mode.FromRemote && !k.Outside
	if k.Unprivileged && (s.Mode == mode.Host || s.Mode == mode.HostPort || onNodes) {
		what := "mode " + string(s.Mode) + " needs hostNetwork or hostPort"
		if onNodes {
			what = "a client on the node itself needs hostNetwork"
		}
		return &machine.UnsupportedError{Missing: what + ", which --unprivileged rules out",
			Remedy: "pod, clusterip or nodeport --from container,remote-container"}
	}
	if s.To.Six() {
		return &machine.UnsupportedError{Missing: "on Kubernetes, toll measures only over IPv4",
			Remedy: "--on lab, or -4", Lack: machine.LackIPv6}
	}
	return cluster.Refuse(s)
}

// Build builds the path.
func (k *Kubernetes) Build(ctx context.Context, spec path.Spec) (*path.Path, error) {
	return recipe.Build(ctx, spec, recipes[spec.Mode], func(p *path.Path) (*site, error) {
		r, err := k.start(ctx)
		if err != nil {
			return nil, err
		}
		p.Channel = r.hub
		at := &site{ctx: ctx, run: r, path: p}
		return at, at.begin()
	})
}

// Cluster starts an agent on each node of the run and returns the nodes' facts. without has the
// names of nodes without an agent, with the reason.
func (k *Kubernetes) Cluster(ctx context.Context) (all []sample.Node, without map[string]error,
	err error) {
	r, err := k.start(ctx)
	if err != nil {
		return nil, nil, err
	}
	return cluster.Nodes(ctx, r.nodes, func(n Node) (sample.Node, error) {
		about := sample.Node{Name: n.Name, ID: n.Name, Address: n.Addr.String(),
			Labels: n.labelled(k.Labels)}
		at := &site{ctx: ctx, run: r}
		e, err := at.end(n, serving)
		if err == nil {
			e.AddFacts(ctx, &about)
		}
		return about, err
	})
}

// start connects to the cluster once and remembers the result until Close.
func (k *Kubernetes) start(ctx context.Context) (*run, error) {
	return k.kept.Start(ctx, k.begin)
}

// Close ends the agents and removes everything that the backend made.
func (k *Kubernetes) Close() error {
	return k.kept.Close((*run).close)
}

func (r *run) alone() error {
	return &machine.UnsupportedError{Missing: fmt.Sprintf(
		"a client on another node needs two nodes, and there is only %s", r.nodes[0].Name),
		Remedy: "--from host,container; or --nodes with two"}
}

// Backend returns the backend for a program that links this package.
func Backend() cluster.Kubernetes {
	return cluster.Kubernetes{
		Inner: Inner,
		New:   func(p cluster.Pods) cluster.Backend { return &Kubernetes{Pods: p} },
		Check: checkManifest,
		Write: writeManifest,
		Clean: func(ctx context.Context, named cluster.Access, others bool) ([]string,
			[]cluster.Left, error) {
			c := Clean{Access: named, Others: others}
			removed, err := c.Run(ctx)
			return removed, c.Left, err
		},
	}
}

// The value of runLabel is the run's ID. The mark of the run's toll (see journal.Mark) is too long
// for a label, so it is an annotation.
const (
	runLabel        = "io.bridgetoll/run"
	roleLabel       = "io.bridgetoll/role"
	ownerAnnotation = "io.bridgetoll/owner"
)

// namePrefix is the prefix of all names, which are toll-RUN-ROLE-N.
const namePrefix = "toll-"

const containerName = "toll"

// Rule is a permission that a run needs, in RBAC's terms.
type Rule struct {
	Group     string // of the API; "" is core
	Resources []string
	Verbs     []string
	// Cluster means that the objects are cluster-scoped, so the rule belongs in a ClusterRole.
	Cluster bool
}

// Rules returns the least permissions that a run and toll clean need. An exec stream over WebSocket
// needs get, and since Kubernetes 1.35 also create.
func Rules() []Rule {
	return []Rule{
		{Resources: []string{"nodes"}, Verbs: []string{"get", "list"}, Cluster: true},
		{Resources: []string{"pods"}, Verbs: []string{"create", "get", "list", "delete"}},
		{Resources: []string{"pods/exec"}, Verbs: []string{"get", "create"}},
		{Resources: []string{"services"}, Verbs: []string{"create", "get", "list", "delete"}},
	}
}
