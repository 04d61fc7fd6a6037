package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type kubernetesFlags struct {
	all          *builderFlags
	access       cluster.Access
	unprivileged bool
	outside      bool
	labels       []string // keys
}

func (f *kubernetesFlags) add(fl *pflag.FlagSet, _ commandKind) {
	own := []string{sample.Kubernetes}
	addAccess(fl, &f.access, own, "the kubeconfig (default as kubectl: $KUBECONFIG, or ~/.kube/config)",
		"the kubeconfig's context (default the current one)",
		"where pods and services are made (default the context's)")
	add(fl, flagDef{name: "unprivileged", group: where, value: toggle(&f.unprivileged), of: own,
		help: "only pods without any privilege; paths are witnessed at their ends only"})
	if f.all.mesh {
		add(fl, flagDef{name: labelFlag, group: toMeasure, value: list(&f.labels), word: "KEY", of: own,
			help: "key of a node label by which links are also grouped; may be repeated (default region, zone and rack)"})
		return
	}
	add(fl, flagDef{name: "outside", group: where, value: toggle(&f.outside), of: own,
		help: "the client of --from remote is this machine, outside the cluster; with --nodes a,b the pod is on a, and b is dialled"})
}

// addAccess adds the flags that name a cluster, as kubectl does.
func addAccess(fl *pflag.FlagSet, to *cluster.Access, of []string,
	kubeconfig, context, namespace string) {
	add(fl,
		flagDef{name: "kubeconfig", group: where, value: text(&to.Kubeconfig, ""), word: "FILE", of: of,
			help: kubeconfig, use: trusts},
		flagDef{name: "context", group: where, value: text(&to.Context, ""), word: "NAME", of: of,
			help: context},
		flagDef{name: "namespace", group: where, value: text(&to.Namespace, ""), word: "NAME", of: of,
			help: namespace})
}

func (f *kubernetesFlags) check() error {
	names := f.all.nodes
	if len(names) > 2 && !f.all.mesh {
		return notTwoNodes(len(names), "--nodes a,b; --nodes a for paths on one node")
	}
	if err := checkNames(names); err != nil {
		return err
	}
	if slices.Contains(f.labels, "") {
		return usage(errors.New("--label has an empty key"), "--label topology.kubernetes.io/zone")
	}
	return handOver()
}

func (f *kubernetesFlags) with(_ context.Context, _ sample.Wire,
	use func(path.Builder) error) error {
	return closing(kubernetes.New(cluster.Pods{
		Access:       f.access,
		Nodes:        f.all.nodes,
		Most:         f.all.mostNodes(),
		Image:        f.all.image,
		Labels:       f.labels,
		Unprivileged: f.unprivileged, Outside: f.outside, Version: version}), use)
}

// defaults returns nil in a run with backends other than the lab. In a run with the lab, it returns
// the modes and placements that both have, because the lab has the same paths between pods, without
// plug-in and cluster.
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
		modes: mode.UsualOfKubernetes(f.unprivileged, f.outside),
		from:  []mode.Placement{mode.FromRemote, mode.FromRemoteContainer},
		one:   mode.FromRemoteContainer,
		mesh:  string(mode.Pod) + "," + string(mode.Host),
	}
	if f.unprivileged {
		d.mesh = string(mode.Pod)
		d.from, d.baseline = []mode.Placement{mode.FromRemoteContainer}, mode.Pod
	}
	if f.outside {
		d.from, d.one = []mode.Placement{mode.FromRemote}, ""
		if f.unprivileged { // two modes are left, and this is one of them
			d.baseline = mode.NodePortLocal
		}
	}
	if besideLab {
		d.modes, d.from, d.one = nil, []mode.Placement{
			mode.FromContainer, mode.FromRemoteContainer}, ""
		for _, m := range mode.OfLab() {
			both := slices.ContainsFunc(mode.OfKubernetes(), func(k mode.Mode) bool {
				return k.Name == m.Name
			})
			if both && (!f.unprivileged || m.Name != mode.Host) {
				d.modes = append(d.modes, string(m.Name))
			}
		}
	}
	return d, nil
}

const labelFlag = "label"

// podFlags name a server's pod, and the cluster that it is in.
type podFlags struct {
	name, image string
	access      cluster.Access
}

const podFlag = "pod"

func (f *podFlags) add(fl *pflag.FlagSet) {
	own := []string{sample.Kubernetes}
	add(fl, flagDef{name: podFlag, group: where, value: text(&f.name, ""),
		word: "[NAMESPACE/]POD", of: own, use: trusts, not: peerFlag, main: "stream",
		help: "the server's pod: it is looked for on its node, by a privileged pod of toll's"})
	addAccess(fl, &f.access, own, "the kubeconfig of --pod (default as kubectl)",
		"the kubeconfig's context (default the current one)",
		"where toll's pod is made (default the context's)")
	add(fl, flagDef{name: "image", group: where, value: text(&f.image, ""), word: "IMAGE", of: own,
		use:  trusts,
		help: "toll's image in a registry (default its own, which the node must have: see toll image)"})
}

var podName = regexp.MustCompile(`^([a-z0-9][-a-z0-9]{0,62}/)?[a-z0-9][-a-z0-9.]{0,252}$`)

// check returns an error if the flags make no sense, and hands the command line over to a toll that
// has Kubernetes' client.
func (f *podFlags) check() error {
	switch {
	case f.name == "" && (f.image != "" || f.access != cluster.Access{}):
		return usage(errors.New("--kubeconfig, --context, --namespace and --image need --pod"),
			"--pod [NAMESPACE/]POD, the server's pod")
	case f.name == "":
		return nil
	case !podName.MatchString(f.name):
		return usage(fmt.Errorf("--pod %q: must be [NAMESPACE/]POD", f.name),
			"kubectl get pods --all-namespaces lists them")
	}
	return handOver()
}

// backend returns what observes the server's pod, or nil.
func (f *podFlags) backend() cluster.Backend {
	if f.name == "" {
		return nil
	}
	return kubernetes.New(cluster.Pods{Access: f.access, Image: f.image, Server: f.name,
		Version: version})
}

// observe starts an agent on the node of the server's pod. close ends it.
func (p places) observe(ctx context.Context) (endpoint.Peer, error) {
	a, err := p.pod.Observer(ctx)
	if err != nil {
		return endpoint.Peer{}, err
	}
	return endpoint.Peer{Place: a, Err: a.Err,
		Denied: "toll may not capture packets on " + a.Name() + ": is its pod in a sandbox?"}, nil
}
