package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
)

// Observer returns an agent that sees all processes and network namespaces of the node of the
// server's pod. It starts the agent at the first call; the agent runs until Close.
func (k *Kubernetes) Observer(ctx context.Context) (*agent.Agent, error) {
	r, err := k.start(ctx)
	if err != nil {
		return nil, err
	}
	b, err := r.bodyOf(ctx, observing, r.nodes[0])
	var u *machine.UnsupportedError
	if errors.As(err, &u) && u.Lack == machine.LackPodSecurity {
		u.Remedy = fmt.Sprintf("--namespace with one that admits privileged pods; or permit it: "+
			"kubectl label namespace %s pod-security.kubernetes.io/enforce=privileged",
			r.client.Namespace)
	}
	if err != nil {
		return nil, err
	}
	return b.agent, nil
}

// beneath returns the node of a running pod, which is named as [NAMESPACE/]NAME.
func (c *Client) beneath(ctx context.Context, pod string) ([]Node, error) {
	in := *c
	space, name, ok := strings.Cut(pod, "/")
	if in.Namespace = space; !ok {
		in.Namespace, name = c.Namespace, pod
	}
	var p corev1.Pod
	err := in.get(ctx, pods, name, &p)
	var u *machine.UnsupportedError
	switch {
	case apierrors.IsNotFound(err):
		return nil, &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the namespace %s has no pod %s", said(in.Namespace), said(name)),
			Remedy: "--pod NAMESPACE/POD: kubectl get pods --all-namespaces lists them"}
	case errors.As(err, &u) && in.Namespace != c.Namespace && u.Lack == machine.LackPermission:
		u.Remedy = "ask for a role that may get pods there"
		return nil, u
	case err != nil:
		return nil, err
	case p.Status.Phase != corev1.PodRunning || p.Spec.NodeName == "":
		return nil, &machine.UnsupportedError{Missing: fmt.Sprintf("the pod %s does not run: it is %s",
			said(pod), strings.ToLower(said(string(p.Status.Phase)))),
			Remedy: fmt.Sprintf("kubectl -n %s describe pod %s", said(in.Namespace), said(name))}
	}
	out, err := c.named(ctx, []string{p.Spec.NodeName})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("the cluster has no node %s, on which the pod %s runs",
			said(p.Spec.NodeName), said(pod))
	}
	return out, err
}
