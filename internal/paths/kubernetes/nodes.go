package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
)

// Node is a machine of the cluster.
type Node struct {
	Name        string
	Addr        netip.Addr   // internal, IPv4
	External    []netip.Addr // external, IPv4
	Kubelet     string       // kubelet's version
	Runtime     string       // the container runtime, with its version
	Arch        string
	PodCIDR     string
	Annotations map[string]string
	Labels      map[string]string
	Why         string // why it takes no pods; "": it takes pods
}

// nodes returns the cluster's nodes, sorted by name.
func (c *Client) nodes(ctx context.Context) ([]Node, error) {
	var got corev1.NodeList
	if err := c.list(ctx, nodes, "", &got); err != nil {
		return nil, err
	}
	var out []Node
	for _, n := range got.Items {
		out = append(out, nodeOf(n))
	}
	slices.SortFunc(out, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// named returns those of the named nodes that exist. It is for users who may not list all nodes.
func (c *Client) named(ctx context.Context, names []string) (out []Node, err error) {
	for _, name := range names {
		var n corev1.Node
		switch err := c.get(ctx, nodes, name, &n); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, err
		default:
			out = append(out, nodeOf(n))
		}
	}
	return out, nil
}

// labelled returns the node's labels with the keys and those for its location, or nil if there are
// none.
func (n Node) labelled(keys []string) map[string]string {
	var out map[string]string
	for _, key := range append(cluster.PlaceLabels(), keys...) {
		if v := n.Labels[key]; v != "" {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = said(v)
		}
	}
	return out
}

func nodeOf(n corev1.Node) Node {
	i := n.Status.NodeInfo
	out := Node{Name: n.Name, Kubelet: i.KubeletVersion,
		Runtime: i.ContainerRuntimeVersion, Arch: i.Architecture,
		PodCIDR: n.Spec.PodCIDR, Annotations: n.Annotations, Labels: n.Labels}
	for _, a := range n.Status.Addresses {
		at, err := netip.ParseAddr(a.Address)
		switch {
		case err != nil || !at.Is4():
		case a.Type == corev1.NodeInternalIP && !out.Addr.IsValid():
			out.Addr = at
		case a.Type == corev1.NodeExternalIP:
			out.External = append(out.External, at)
		}
	}
	out.Why = whyNot(n, out)
	return out
}

func whyNot(n corev1.Node, is Node) string {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	switch {
	case !ready:
		return "is not ready"
	case n.Spec.Unschedulable:
		return "is cordoned"
	case n.Status.NodeInfo.OperatingSystem != "" && n.Status.NodeInfo.OperatingSystem != "linux":
		return "runs " + said(n.Status.NodeInfo.OperatingSystem)
	case !is.Addr.IsValid():
		return "has no internal IPv4 address"
	}
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			return "has the taint " + said(t.ToString())
		}
	}
	return ""
}

// choose returns the wanted nodes, or all nodes that take pods if none is named.
func choose(all []Node, wanted []string) ([]Node, error) {
	const remedy = "kubectl get nodes lists them; kubectl describe node has details"
	if len(wanted) == 0 {
		ready := slices.DeleteFunc(slices.Clone(all), func(n Node) bool { return n.Why != "" })
		if len(ready) > 0 {
			return ready, nil
		}
		var why []string
		for _, n := range all {
			why = append(why, n.Name+" "+n.Why)
		}
		return nil, &machine.UnsupportedError{Missing: "no node of the cluster takes pods",
			Remedy: remedy, Err: errors.New(cmp.Or(strings.Join(why, "; "), "it has none"))}
	}
	var out []Node
	for _, w := range wanted {
		i := slices.IndexFunc(all, func(n Node) bool { return n.Name == w })
		switch {
		case i < 0:
			return nil, &machine.UnsupportedError{Missing: fmt.Sprintf(
				"the cluster has no node %q", said(w)), Remedy: remedy}
		case all[i].Why != "":
			return nil, &machine.UnsupportedError{Missing: fmt.Sprintf("node %s %s", w, all[i].Why),
				Remedy: "kubectl uncordon or another node; " + remedy}
		case slices.ContainsFunc(out, func(n Node) bool { return n.Name == w }):
			return nil, &machine.UnsupportedError{Missing: "node " + w + " is named twice",
				Remedy: "--nodes a,b"}
		}
		out = append(out, all[i])
	}
	return out, nil
}
