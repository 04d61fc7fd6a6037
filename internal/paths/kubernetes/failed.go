package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// failed returns why the pod cannot run, or nil if it still may.
func (r *run) failed(p *corev1.Pod, n Node) error {
	if err := cmp.Or(r.forOther(p, n), intercepted(p)); err != nil {
		return err
	}
	if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return fmt.Errorf("node %s: the pod %s ended: %s", n.Name, p.Name, ending(p))
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
			c.Reason == corev1.PodReasonUnschedulable {
			return &machine.UnsupportedError{Missing: fmt.Sprintf(
				"node %s does not take the pod: %s", n.Name, said(c.Message)),
				Remedy: "kubectl describe node " + n.Name}
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			if err := r.waits(w, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// redirected is the annotation of pods whose connections Istio's ambient mode leads through a proxy
// of their node.
const redirected = "ambient.istio.io/redirection"

// intercepted returns an error if the cluster has put other containers into the pod, or redirects
// its connections: a service mesh's proxy would change the path. Init containers that end, and pods
// in their node's network, which meshes leave alone, do not matter.
func intercepted(p *corev1.Pod) error {
	if p.Spec.HostNetwork {
		return nil
	}
	var others []string
	for _, c := range p.Spec.Containers {
		if c.Name != containerName {
			others = append(others, said(c.Name))
		}
	}
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			others = append(others, said(c.Name))
		}
	}
	u := &machine.UnsupportedError{Remedy: "--namespace with one that no service mesh takes in; " +
		"or an exception there for pods with the label " + runLabel}
	switch {
	case len(others) > 0:
		u.Missing = "the cluster puts other containers into toll's pods (" +
			printable.List(others) + "), which may relay their connections"
	case p.Annotations[redirected] == "enabled":
		u.Missing = "the cluster leads the connections of toll's pods through a proxy of Istio's " +
			"ambient mode"
	default:
		return nil
	}
	return u
}

// otherArch returns an error if the node cannot run toll's own image, which is for this machine's
// architecture. An image that the user names may be for several.
func (r *run) otherArch(n Node) error {
	if r.backend.Image != "" || n.Arch == "" || n.Arch == runtime.GOARCH {
		return nil
	}
	return &machine.UnsupportedError{Missing: fmt.Sprintf(
		"node %s is %s, and toll's own image is for %s", n.Name, said(n.Arch), runtime.GOARCH),
		Remedy: otherKinds}
}

const otherKinds = "--image with a multi-architecture image in a registry; or --nodes with nodes of one architecture"

var notForIt = []string{"exec format error", "no match for platform in manifest",
	"no matching manifest for", "no image found in manifest list for architecture"}

func (r *run) forOther(p *corev1.Pod, n Node) error {
	for _, c := range p.Status.ContainerStatuses {
		words := ""
		if w := c.State.Waiting; w != nil {
			words = w.Message
		}
		if t := c.State.Terminated; t != nil {
			words += t.Message
		}
		if slices.ContainsFunc(notForIt, func(s string) bool {
			return strings.Contains(words, s)
		}) {
			return &machine.UnsupportedError{Missing: fmt.Sprintf(
				"node %s is %s, and the image %s is not for it", n.Name,
				cmp.Or(said(n.Arch), "another kind of machine"), said(r.image)), Remedy: otherKinds}
		}
	}
	return nil
}

// waits returns why the container cannot start, or nil if it still may.
func (r *run) waits(w *corev1.ContainerStateWaiting, n Node) error {
	switch w.Reason {
	case "ErrImageNeverPull", "ImagePullBackOff", "ErrImagePull", "InvalidImageName",
		"ImageInspectError", "RegistryUnavailable":
		u := &machine.UnsupportedError{Missing: fmt.Sprintf(
			"node %s cannot get the image %s (%s): %s", n.Name, said(r.image), w.Reason,
			said(w.Message)), Remedy: "kubectl describe node " + n.Name}
		if r.backend.Image == "" {
			u.Missing = fmt.Sprintf("node %s does not have toll's image %s (%s)", n.Name, r.image,
				w.Reason)
			u.Remedy = "kubectl-toll image | ssh " + n.Name + " " + n.imports() +
				"; or --image with its name in a registry"
		}
		return u
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
		"CrashLoopBackOff":
		u := &machine.UnsupportedError{Missing: fmt.Sprintf(
			"node %s cannot start toll's container (%s): %s", n.Name, w.Reason, said(w.Message)),
			Remedy: "kubectl describe node " + n.Name}
		return u
	}
	return nil
}

// imports returns the command that gives the node's container runtime an image.
func (n Node) imports() string {
	switch {
	case strings.HasPrefix(n.Runtime, "cri-o:"):
		return "podman load" // into the same storage
	case strings.HasPrefix(n.Runtime, "docker:"):
		return "docker load"
	case strings.Contains(n.Kubelet, "+k3s"):
		return "k3s ctr images import -"
	case strings.Contains(n.Kubelet, "+rke2"): // its ctr and its socket are its own
		return "/var/lib/rancher/rke2/bin/ctr -a /run/k3s/containerd/containerd.sock " +
			"-n k8s.io images import -"
	}
	return "ctr -n k8s.io images import -"
}

func ending(p *corev1.Pod) string {
	words := said(strings.TrimSpace(strings.Join([]string{p.Status.Reason, p.Status.Message}, " ")))
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			words = strings.TrimSpace(words + " " +
				said(fmt.Sprintf("%s (exit code %d) %s", t.Reason, t.ExitCode, t.Message)))
		}
	}
	return cmp.Or(strings.TrimSpace(words), string(p.Status.Phase))
}

func (r *run) late(p *corev1.Pod, n Node) error {
	state := strings.ToLower(cmp.Or(string(p.Status.Phase), "not there"))
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			state += ": " + said(strings.TrimSpace(w.Reason+" "+w.Message))
		}
	}
	return &machine.UnsupportedError{Missing: fmt.Sprintf(
		"node %s did not start the pod %s within %s: it is %s", n.Name, p.Name, joinTimeout, state),
		Remedy: fmt.Sprintf("kubectl -n %s get events; kubectl describe node %s",
			r.client.Namespace, n.Name)}
}

// whyLeft asks the API server why an agent is lost, and returns err with that reason. gone means
// that the agent's pod no longer runs.
func (r *run) whyLeft(b *body, err error) (why error, gone bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) //nolint:mnd // only the error's text depends on it
	defer cancel()
	var now corev1.Pod
	got := r.client.get(ctx, pods, b.pod.Name, &now)
	switch {
	case apierrors.IsNotFound(got):
		return fmt.Errorf(
			"its pod %s was deleted, by a user or because the node is being drained (%w)",
			b.pod.Name, err), true
	case got == nil && now.DeletionTimestamp != nil:
		return fmt.Errorf("its pod %s is being removed: %s (%w)", b.pod.Name, evicted(&now), err),
			true
	case got == nil && (now.Status.Phase == corev1.PodFailed ||
		now.Status.Phase == corev1.PodSucceeded):
		return fmt.Errorf("its pod %s was ended: %s (%w)", b.pod.Name, ending(&now), err), true
	case !errors.As(err, new(*path.CutError)):
		return err, false
	case got != nil:
		return &path.CutError{Err: fmt.Errorf("%w; %s", err, path.OneLine(got))}, false
	}
	return &path.CutError{
		Err: fmt.Errorf(
			"%w; the API server answers and reports the pod as %s: its node's kubelet or the connection to it may have failed", err, now.Status.Phase)}, false
}

// evicted returns why the pod is being removed. Kubernetes has the condition that shows this since
// 1.26.
func evicted(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return said(strings.TrimSpace("evicted, " + c.Reason + ": " + c.Message))
		}
	}
	return "deleted, by a user or because the node is being drained"
}
