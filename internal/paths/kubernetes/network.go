package kubernetes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

const unknown = "unknown"

// plugins maps prefixes of devices' names on nodes to plug-ins.
var plugins = []struct{ device, name string }{
	{"cilium_", "Cilium"},
	{"vxlan.calico", "Calico"}, {"cali", "Calico"},
	{"flannel.", "Flannel"},
	{"antrea-", "Antrea"},
	{"ovn-k8s-", "OVN-Kubernetes"},
	{"weave", "Weave Net"},
	{"kube-bridge", "kube-router"},
	{"eni", "Amazon VPC CNI"},
	{"azv", "Azure CNI"},
}

// annotations maps prefixes of nodes' annotations to plug-ins.
var annotations = []struct{ key, name string }{
	{"network.cilium.io/", "Cilium"}, {"io.cilium.", "Cilium"},
	{"projectcalico.org/", "Calico"},
	{"flannel.alpha.coreos.com/", "Flannel"},
	{"node.antrea.io/", "Antrea"},
	{"k8s.ovn.org/", "OVN-Kubernetes"},
	{"kube-router.io/", "kube-router"},
	{"vpc.amazonaws.com/", "Amazon VPC CNI"},
}

// pluginOf returns the name of the plug-in, or "" if annotations and devices do not show it.
func pluginOf(n Node, devices []agent.Interface) string {
	for _, a := range annotations {
		for key := range n.Annotations {
			if strings.HasPrefix(key, a.key) {
				return a.name
			}
		}
	}
	for _, p := range plugins {
		if slices.ContainsFunc(devices, func(d agent.Interface) bool {
			return strings.HasPrefix(d.Name, p.device)
		}) {
			return p.name
		}
	}
	if i := slices.IndexFunc(devices, func(d agent.Interface) bool {
		return d.Kind == "bridge" && strings.HasPrefix(d.Name, "cni")
	}); i >= 0 {
		// This is the usual bridge of the plug-in bridge, but other plug-ins use the name as well.
		return "one with the bridge " + devices[i].Name
	}
	return ""
}

func (s *site) network() map[string]string {
	if s.server.Agent == nil {
		return map[string]string{"network plug-in": cmp.Or(pluginOf(s.server.Node, nil), unknown),
			"data path": unknown, "kube-proxy": unknown}
	}
	out := map[string]string{"network plug-in": cmp.Or(
		pluginOf(s.server.Node, s.server.Devices), unknown),
		"kube-proxy": s.run.proxyOn(s.ctx, s.server)}
	if s.path.Spec.Mode == mode.Host || s.path.Spec.Mode == mode.Shared {
		return out
	}
	var parts []string
	for _, k := range []struct {
		kind mode.HopKind
		word string
	}{{mode.HopNetkit, "netkit pair"}, {mode.HopVeth, "veth pair"}, {mode.HopBridge, "bridge"},
		{mode.HopVXLAN, "VXLAN"}, {mode.HopTunnel, "tunnel"}} {
		for _, h := range s.path.Hops {
			if h.Kind == k.kind {
				word := k.word
				if k.kind != mode.HopVeth && k.kind != mode.HopNetkit {
					word += " " + strings.TrimSuffix(h.Name, " ports")
				}
				if k.kind == mode.HopTunnel {
					word += " (" + s.server.kindOf(h.Name) + ")"
				}
				if !slices.Contains(parts, word) {
					parts = append(parts, word)
				}
			}
		}
	}
	tunnelled := slices.ContainsFunc(s.path.Hops, func(h path.Hop) bool {
		return h.Kind == mode.HopVXLAN || h.Kind == mode.HopTunnel
	})
	if s.client != s.server && !tunnelled {
		parts = append(parts, "routes between the nodes")
	}
	if programs := s.programs(); programs != "" {
		parts = append(parts, programs)
	}
	out["data path"] = cmp.Or(strings.Join(parts, ", "), unknown)
	return out
}

// programs returns a text that lists programs which may let packets bypass devices, or "".
func (s *site) programs() string {
	var found []string
	for _, e := range s.ends() {
		all, err := e.Agent.Inspect(e.Crossed().At)
		if err != nil {
			continue // the path's own inspection reports the failure
		}
		for _, set := range all {
			if set.Diverts {
				if word := said(fmt.Sprintf("%s of %s", set.What, set.Of)); !slices.Contains(found,
					word) {
					found = append(found, word)
				}
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	const most = 4
	if len(found) > most {
		found = append(found[:most:most], "…")
	}
	return "programs that may take packets past devices: " + strings.Join(found, "; ")
}
