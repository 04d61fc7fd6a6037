package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/paths/kubernetes"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/swarm"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// kubernetesFlags are the flags of runs on a Kubernetes cluster, except those that are shared with
// a swarm.
type kubernetesFlags struct {
	all          *builderFlags
	access       kubernetes.Access
	unprivileged bool
	outside      bool
}

func (f *kubernetesFlags) add(fl *pflag.FlagSet, _ commandKind) {
	for _, name := range []string{"nodes", "image"} {
		if shared := f.all.own[swarm.Name].Lookup(name); shared != nil {
			fl.AddFlag(shared)
		}
	}
	f.addHow(fl)
	fl.BoolVar(&f.outside, "outside", false, "kubernetes: the client of --from remote is this machine, outside of the cluster; with --nodes a,b the pod is on a, and b is dialled")
}

// addHow adds the flags for how toll reaches the cluster, and what it may do there.
func (f *kubernetesFlags) addHow(fl *pflag.FlagSet) {
	fl.StringVar(&f.access.Context, "context", "", "kubernetes: the kubeconfig's context (default the current one)")
	fl.StringVar(&f.access.Kubeconfig, "kubeconfig", "", "kubernetes: the kubeconfig (default as kubectl: $KUBECONFIG, or ~/.kube/config)")
	fl.StringVar(&f.access.Namespace, "namespace", "", "kubernetes: where pods and services are made (default the context's)")
	fl.BoolVar(&f.unprivileged, "unprivileged", false, "kubernetes: only pods without any privilege; paths are witnessed at their ends only")
}

// shared returns the flags that a swarm has, too.
func (f *kubernetesFlags) shared() *swarmFlags { return f.all.of[swarm.Name].(*swarmFlags) }

func (f *kubernetesFlags) check() error {
	names := f.shared().nodes
	if len(names) > 2 {
		return usage(fmt.Errorf("--nodes names two nodes, the server's and the client's; %d were given", len(names)), "--nodes a,b; --nodes a for paths on one node")
	}
	if slices.Contains(names, "") {
		return usage(errors.New("--nodes: one has no name"), "--nodes a,b")
	}
	return nil
}

func (f *kubernetesFlags) with(_ context.Context, _ sample.Wire, use func(path.Builder) error) (err error) {
	k := f.backend(f.shared())
	k.Most = 2 // a server's and a client's
	defer func() { err = errors.Join(err, k.Close()) }()
	return use(k)
}

// backend returns the cluster, with the nodes and the image of the shared flags.
func (f *kubernetesFlags) backend(shared *swarmFlags) *kubernetes.Kubernetes {
	return &kubernetes.Kubernetes{Access: f.access, Nodes: shared.nodes, Image: shared.image, Unprivileged: f.unprivileged, Outside: f.outside, Version: version}
}

// defaults returns the modes that the flags allow, from where the flags allow. Beside the lab they
// are the modes of both: the lab's have the same path between pods, without plug-in and cluster.
func (f *kubernetesFlags) defaults(others []string) (*defaults, error) {
	besideLab := slices.Equal(others, []string{sample.Lab})
	if f.outside && len(others) > 0 {
		return nil, usage(errors.New("--outside works only with --on kubernetes alone"),
			"--on kubernetes, or leave --outside out")
	}
	if len(others) > 0 && !besideLab {
		return nil, nil
	}
	d := &defaults{
		modes: kubernetes.Usual(f.unprivileged, f.outside),
		from:  []mode.Placement{mode.FromRemote, mode.FromRemoteContainer},
		one:   mode.FromRemoteContainer,
	}
	if f.unprivileged {
		d.from, d.baseline = []mode.Placement{mode.FromRemoteContainer}, mode.Pod
	}
	if f.outside {
		d.from, d.one = []mode.Placement{mode.FromRemote}, ""
		if f.unprivileged { // two modes are left, and this is one of them
			d.baseline = mode.NodePortLocal
		}
	}
	if besideLab {
		d.modes, d.from, d.one = nil, []mode.Placement{mode.FromContainer, mode.FromRemoteContainer}, ""
		for _, m := range mode.OfLab() {
			both := slices.Contains(kubernetes.Modes(), string(m.Name))
			if both && (!f.unprivileged || m.Name != mode.Host) {
				d.modes = append(d.modes, string(m.Name))
			}
		}
	}
	return d, nil
}
