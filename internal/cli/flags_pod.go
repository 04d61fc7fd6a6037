package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

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
