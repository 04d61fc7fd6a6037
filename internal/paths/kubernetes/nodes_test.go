package kubernetes

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
)

func worker(name string, change ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{
			corev1.LabelTopologyZone: "zone-1", "topology.rook.io/rack": "r7"}}}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: name},
		{Type: corev1.NodeInternalIP, Address: "fd00::1"},
		{Type: corev1.NodeInternalIP, Address: "192.0.2.7"}}
	for _, f := range change {
		f(&n)
	}
	return n
}

func TestNodeOf(t *testing.T) {
	n := nodeOf(worker("a", func(n *corev1.Node) {
		n.Status.Addresses = append(n.Status.Addresses,
			corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "fd00::2"},
			corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "203.0.113.7"})
	}))
	if want := []netip.Addr{netip.MustParseAddr("203.0.113.7")}; !slices.Equal(n.External, want) {
		t.Errorf("external %v, want %v", n.External, want)
	}
	if n.Why != "" || n.Addr != netip.MustParseAddr("192.0.2.7") {
		t.Errorf("got %+v", n)
	}
	for why, change := range map[string]func(*corev1.Node){
		"is not ready": func(n *corev1.Node) {
			n.Status.Conditions[0].Status = corev1.ConditionUnknown
		},
		"is cordoned":  func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"runs windows": func(n *corev1.Node) { n.Status.NodeInfo.OperatingSystem = "windows" },
		"has the taint dedicated=db:NoSchedule": func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "soft",
				Effect: corev1.TaintEffectPreferNoSchedule},
				{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}
		},
		"has no internal IPv4 address": func(n *corev1.Node) {
			n.Status.Addresses = n.Status.Addresses[:2]
		},
	} {
		if got := nodeOf(worker("a", change)).Why; got != why {
			t.Errorf("got %q, want %q", got, why)
		}
	}
}

func TestChoose(t *testing.T) {
	all := []Node{{Name: "a"}, {Name: "b", Why: "is cordoned"}, {Name: "c"}}
	for _, tt := range []struct {
		all    []Node
		wanted []string
		want   string
		err    string
	}{
		{all, nil, "a c", ""},
		{all, []string{"c", "a"}, "c a", ""},
		{all, []string{"c", "x\x1b[m"}, "", `the cluster has no node "x\\x1b[m"`},
		{all, []string{"b"}, "", "node b is cordoned"},
		{all, []string{"a", "a"}, "", "node a is named twice"},
		{all[1:2], nil, "", "no node of the cluster takes pods (b is cordoned)"},
		{nil, nil, "", "no node of the cluster takes pods (it has none)"},
	} {
		got, err := choose(tt.all, tt.wanted)
		var names []string
		for _, n := range got {
			names = append(names, n.Name)
		}
		if strings.Join(names, " ") != tt.want || (err == nil) != (tt.err == "") {
			t.Errorf("%v: got %v, %v", tt.wanted, names, err)
		}
		if tt.err != "" && (!errors.Is(err, machine.ErrUnsupported) ||
			err.Error() != tt.err) {
			t.Errorf("%v: error %q, want %q", tt.wanted, err, tt.err)
		}
	}
}

func TestPluginOf(t *testing.T) {
	device := func(name, kind string) agent.Interface {
		d := agent.Interface{}
		d.Name, d.Kind = name, kind
		return d
	}
	for _, tt := range []struct {
		note    string
		devices []agent.Interface
		want    string
	}{
		{"", []agent.Interface{device("eth0", "")}, ""},
		{"", []agent.Interface{device("cilium_host", "veth"), device("lxc1", "veth")}, "Cilium"},
		{"", []agent.Interface{device("cali12345", "veth")}, "Calico"},
		{"flannel.alpha.coreos.com/backend-type", []agent.Interface{device("cni0", "bridge")},
			"Flannel"},
		{"", []agent.Interface{device("cni0", "bridge")}, "one with the bridge cni0"},
	} {
		n := Node{Annotations: map[string]string{tt.note: "x"}}
		if got := pluginOf(n, tt.devices); got != tt.want {
			t.Errorf("%q, %v: %q, want %q", tt.note, tt.devices, got, tt.want)
		}
	}
}

func TestPodsAreOfTheLeastPrivilege(t *testing.T) {
	r := &run{id: "abc", owner: "mark", image: "image"}
	for _, kind := range []role{onNode, serving, calling, published} {
		p := r.pod("toll-abc-x-1", kind, Node{Name: "a"}, 0)
		s, c := p.Spec, p.Spec.Containers[0]
		if p.Labels[runLabel] != "abc" || p.Annotations[ownerAnnotation] != "mark" ||
			s.RestartPolicy != corev1.RestartPolicyNever ||
			s.ActiveDeadlineSeconds == nil || *s.AutomountServiceAccountToken ||
			len(s.Tolerations) > 0 || len(s.Volumes) > 0 || s.HostPID {
			t.Errorf("%s: %+v", kind, p)
		}
		if at := s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0]; s.NodeName != "" || at.Values[0] != "a" {
			t.Errorf("%s: it is put on %q past the scheduler, or wherever that likes: %+v", kind,
				s.NodeName, at)
		}
		sc := c.SecurityContext
		if sc.Privileged != nil || *sc.AllowPrivilegeEscalation ||
			!slices.Contains(sc.Capabilities.Drop, "ALL") || !*sc.ReadOnlyRootFilesystem {
			t.Errorf("%s: %+v", kind, sc)
		}
		onHost := kind == onNode
		if s.HostNetwork != onHost || (len(sc.Capabilities.Add) > 0) != onHost ||
			(sc.RunAsNonRoot != nil) == onHost {
			t.Errorf("%s: host network %t, %+v", kind, s.HostNetwork, sc)
		}
		for _, word := range append(c.Command, c.Args...) {
			if strings.Contains(word, "PRIVATE") {
				t.Errorf("%s: a key in %q", kind, word)
			}
		}
	}
	if ports := r.pod("x", published, Node{}, 23456).Spec.Containers[0].Ports; len(ports) != 2 ||
		ports[0].HostPort != 23456 || ports[0].Protocol == ports[1].Protocol {
		t.Errorf("host ports %+v", ports)
	}
}
