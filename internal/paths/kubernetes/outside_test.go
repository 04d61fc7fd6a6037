package kubernetes

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

func TestIsOutside(t *testing.T) {
	nodes := []Node{{Name: "n1", Addr: netip.MustParseAddr("192.0.2.1"), PodCIDR: "10.244.1.0/24"},
		{Name: "n2", Addr: netip.MustParseAddr("192.0.2.2"),
			External: []netip.Addr{netip.MustParseAddr("203.0.113.2")}, PodCIDR: "none"}}
	for addr, want := range map[string]string{
		"192.0.2.100/24": "",
		"192.0.2.1/24":   "this machine is node n1",
		"203.0.113.2/32": "this machine is node n2",
		"10.244.1.7/24":  "this machine is in a pod on node n1",
		"10.244.2.7/24":  "",
	} {
		err := isOutside([]link.Device{{Name: "lo"},
			{Name: "eth0", Addrs: []netip.Prefix{netip.MustParsePrefix(addr)}}}, nodes)
		var u *machine.UnsupportedError
		if (err == nil) != (want == "") || err != nil &&
			(!errors.As(err, &u) || !strings.HasPrefix(u.Missing, want) || u.Remedy == "") {
			t.Errorf("%s: %v, want %q", addr, err, want)
		}
	}
}

func TestRefuseOutside(t *testing.T) {
	for _, tt := range []struct {
		nodes        string
		mode         mode.Name
		from         mode.Placement
		to           mode.Target
		unprivileged bool
		want         string
	}{
		{"", mode.NodePort, mode.FromRemote, mode.ToAddress, false, ""},
		{"", mode.NodePort, mode.FromRemote, mode.ToAddress, true, ""},
		{"", mode.Host, mode.FromRemote, mode.ToAddress, false, ""},
		{"", mode.Host, mode.FromRemote, mode.ToAddress, true,
			"mode host needs hostNetwork or hostPort, which --unprivileged rules out"},
		{"", mode.NodePort, mode.FromRemoteContainer, mode.ToAddress, false,
			"with --outside the client is this machine, not a pod"},
		{"", mode.Pod, mode.FromRemote, mode.ToContainer, false,
			"the address of pod exists only in the cluster and cannot be reached from outside"},
		{"", mode.ClusterIP, mode.FromRemote, mode.ToContainer, false,
			"the address of clusterip exists only in the cluster and cannot be reached " +
				"from outside"},
		{"a", mode.NodePortLocal, mode.FromRemote, mode.ToAddress, false, ""},
		{"a b", mode.NodePort, mode.FromRemote, mode.ToAddress, false, ""},
		{"a b", mode.Host, mode.FromRemote, mode.ToAddress, false, ""},
		{"a b", mode.NodePortLocal, mode.FromRemote, mode.ToAddress, false,
			"with externalTrafficPolicy: Local, node b has no endpoint: the service's pod " +
				"is on node a"},
		{"a b", mode.HostPort, mode.FromRemote, mode.ToAddress, false,
			"node b has no such host port: the pod is on node a"},
	} {
		k := &Kubernetes{Pods: cluster.Pods{Nodes: strings.Fields(tt.nodes), Outside: true,
			Unprivileged: tt.unprivileged}}
		err := k.refuse(path.Spec{Mode: tt.mode, From: tt.from, To: tt.to})
		var u *machine.UnsupportedError
		if (err == nil) != (tt.want == "") ||
			err != nil && (!errors.As(err, &u) || u.Missing != tt.want ||
				u.Remedy == "") {
			t.Errorf("%s from %s with %q: %v, want %q", tt.mode, tt.from, tt.nodes, err, tt.want)
		}
	}
	for _, m := range mode.UsualOfKubernetes(true, true) {
		if err := (&Kubernetes{Pods: cluster.Pods{Outside: true, Unprivileged: true}}).refuse(path.Spec{Mode: mode.Name(m), From: mode.FromRemote, To: mode.ToAddress}); err != nil {
			t.Errorf("%s is usual, and %v", m, err)
		}
	}
}
