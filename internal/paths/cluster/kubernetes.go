package cluster

import (
	"context"
	"io"

	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// Kubernetes is the backend for Kubernetes clusters. Its client is a fifth of what it is linked
// with, so only a program of its own has it; elsewhere the value is zero.
type Kubernetes struct {
	// Inner runs a part of the backend that another toll started, if args request that.
	Inner func(args []string) (ours bool, err error)
	// New returns the backend. The caller closes it.
	New func(Pods) Backend
	// Check returns an error if a name of the manifest is not valid.
	Check func(Manifest) error
	// Write writes the manifest, which must have passed Check, as YAML for kubectl apply.
	Write func(Manifest, io.Writer) error
	// Clean removes what ended runs left in the clusters that journals name, and in the named one
	// unless it is zero. others includes what tolls on other machines made.
	Clean func(ctx context.Context, named Access, others bool) (removed []string, left []Left,
		err error)
}

// Backend builds paths between a cluster's pods, or observes a server in one.
type Backend interface {
	path.Builder
	// Observer returns an agent on the node of Pods.Server, which runs until Close.
	Observer(ctx context.Context) (*agent.Agent, error)
	Close() error
}

// Linked reports whether this program has the client.
func (k Kubernetes) Linked() bool { return k.New != nil }

// Access selects a cluster's API server, as kubectl does.
type Access struct {
	Kubeconfig string // file; "": those of $KUBECONFIG, or ~/.kube/config
	Context    string // "": the current one
	Namespace  string // "": the context's
}

// Pods says where and how a run makes its pods. Only Version must be set.
type Pods struct {
	Access
	// Nodes lists the run's nodes. Unless a path names its nodes, the server is on the first and
	// the client on the second. Empty: all nodes that take pods.
	Nodes []string
	// Most limits the number of nodes that are used, from the first on; 0: all.
	Most int
	// Server is the pod, as [NAMESPACE/]NAME, on whose node Observer's agent is; "": none. Then no
	// paths are built.
	Server string
	// Image is toll's image in a registry; "": toll's own, which every node must have.
	Image string
	// Unprivileged means that no pod has privileges, so only counters in the pods are read.
	Unprivileged bool
	// Labels lists keys of the nodes' labels that are read in addition to PlaceLabels.
	Labels []string
	// Outside means that remote clients are on this machine, which must not be a node. If Nodes has
	// a second node, they dial its port, and it forwards to the server's node.
	Outside bool
	// Version is toll's version.
	Version string
}

// Manifest describes what an administrator applies so that another user may measure: a namespace
// whose Pod Security admits the pods, a service account, and the permissions that a run needs.
type Manifest struct {
	Namespace string
	// Account is the name of the service account and of the roles.
	Account string
	// Unprivileged means that runs use --unprivileged, so Pod Security may be stricter.
	Unprivileged bool
	// Nodes lists the nodes that the user may measure; nil: all of the cluster.
	Nodes []string
}

// JournalSuffix is the suffix of Kubernetes' journals, RUN.kubernetes, in the user's state
// directory.
const JournalSuffix = ".kubernetes"

// Left is an object that was not removed, and the reason.
type Left struct{ What, Why string }

// PlaceLabels returns the keys of the labels for a node's location, from region to rack, for which
// there is no standard one.
func PlaceLabels() []string {
	return []string{"topology.kubernetes.io/region", "topology.kubernetes.io/zone",
		"topology.kubernetes.io/rack", "topology.rook.io/rack", "rack"}
}
