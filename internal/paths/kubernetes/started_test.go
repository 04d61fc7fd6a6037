package kubernetes

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

// madeOn has the fake cluster start a pod of a role on its first node.
func madeOn(s *apiserver, kind role) (*corev1.Pod, error) {
	r := &run{backend: &Kubernetes{StateDir: s.t.TempDir()}, client: s.connect(), id: "run",
		owner: "mark", image: "127.0.0.1:1/bridgetoll:abc"}
	n := nodeOf(s.nodes[0])
	n.Arch = ""
	p, err := r.makePod(s.t.Context(), kind, n, 0)
	return p, errors.Join(err, r.journal.close(true))
}

func TestPodsStartThroughAnOutage(t *testing.T) {
	s, failures := newAPIServer(t, "a"), 3
	s.place = func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }
	s.instead = func(w http.ResponseWriter, _ *http.Request, a asking) bool {
		switch {
		case a.kind != pods || a.verb != "get":
		case failures > 0:
			failures--
			reply(w, apierrors.NewInternalError(errors.New("etcdserver: leader changed")))
			return true
		default:
			s.mu.Lock()
			defer s.mu.Unlock()
			s.run(s.pods[a.name])
		}
		return false
	}
	if p, err := madeOn(s, serving); err != nil || p.Status.Phase != corev1.PodRunning {
		t.Errorf("%v, %v", p, err)
	}
	s = newAPIServer(t, "a")
	asked := 0
	s.instead = func(w http.ResponseWriter, _ *http.Request, a asking) bool {
		if a.kind != pods || a.verb != "get" {
			return false
		}
		asked++
		reply(w, forbidden(a))
		return true
	}
	if _, err := madeOn(s, serving); err == nil || asked != 1 {
		t.Errorf("it may not get pods: %v, asked %d times", err, asked)
	}
}

func TestInterceptedPods(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	for name, tt := range map[string]struct {
		kind role
		do   func(*corev1.Pod)
		says string // "": accepted
	}{
		"sidecar": {serving, func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "envoy"})
		}, "the cluster puts other containers into toll's pods (envoy), which may relay " +
			"their connections; --namespace with one that no service mesh takes in; or an " +
			"exception there for pods with the label io.bridgetoll/run"},
		"sidecar-among-init-containers": {calling, func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "mesh-init"},
				{Name: "istio-proxy", RestartPolicy: &always}}
		}, "the cluster puts other containers into toll's pods (istio-proxy), which may " +
			"relay their connections; --namespace with one that no service mesh takes in; or " +
			"an exception there for pods with the label io.bridgetoll/run"},
		"ambient": {serving, func(p *corev1.Pod) { p.Annotations[redirected] = "enabled" },
			"the cluster leads the connections of toll's pods through a proxy of Istio's " +
				"ambient mode; --namespace with one that no service mesh takes in; or an " +
				"exception there for pods with the label io.bridgetoll/run"},
		"ended-before": {serving, func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "warm-up"}}
		}, ""},
		"in-the-nodes-network": {onNode, func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "logs"})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t, "a")
			s.place = func(p *corev1.Pod) { s.run(p); tt.do(p) }
			_, err := madeOn(s, tt.kind)
			var u *machine.UnsupportedError
			got := ""
			if errors.As(err, &u) {
				got = u.Missing + "; " + u.Remedy
			}
			if got != tt.says {
				t.Errorf("%v: %q, want %q", err, got, tt.says)
			}
		})
	}
	p := (&run{}).pod("x", serving, Node{}, 0)
	for _, key := range []string{"sidecar.istio.io/inject", "istio.io/dataplane-mode",
		"kuma.io/sidecar-injection", "consul.hashicorp.com/connect-inject"} {
		if p.Labels[key] == "" || p.Annotations[key] != p.Labels[key] {
			t.Errorf("%s: %v, %v", key, p.Labels, p.Annotations)
		}
	}
}

// In a cluster with both families IPv6 may be the first.
func TestAddressesOfBothFamilies(t *testing.T) {
	for _, tt := range []struct{ first, all, want string }{
		{"203.0.113.1", "203.0.113.1", "203.0.113.1"},
		{"2001:db8::1", "2001:db8::1 203.0.113.1", "203.0.113.1"},
		{"203.0.113.1", "", "203.0.113.1"},
		{"2001:db8::1", "2001:db8::1", "invalid IP"},
		{"", "", "invalid IP"},
	} {
		p := &corev1.Pod{Status: corev1.PodStatus{PodIP: tt.first}}
		for a := range strings.FieldsSeq(tt.all) {
			p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: a})
		}
		if got := ipv4Of(p).String(); got != tt.want {
			t.Errorf("%s, %s: %s, want %s", tt.first, tt.all, got, tt.want)
		}
	}
	for _, kind := range []front{clusterIP, nodePort, nodePortLocal, headless} {
		v := (&run{}).serviceOf("x", kind)
		if len(v.Spec.IPFamilies) != 1 || v.Spec.IPFamilies[0] != corev1.IPv4Protocol {
			t.Errorf("%s: %v", kind, v.Spec.IPFamilies)
		}
	}
}

func TestHowNodesGetTheImage(t *testing.T) {
	r := &run{backend: &Kubernetes{}, image: "127.0.0.1:1/bridgetoll:abc"}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "toll-x"}, Status: corev1.PodStatus{
		ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}}}
	for _, tt := range []struct {
		n    Node
		want string
	}{
		{Node{Runtime: "containerd://2.1.4", Kubelet: "v1.34.4"}, "ctr -n k8s.io images import -"},
		{Node{Runtime: "cri-o://1.34.0", Kubelet: "v1.34.4"}, "podman load"},
		{Node{Runtime: "docker://28.5.2", Kubelet: "v1.34.4"}, "docker load"},
		{Node{Runtime: "containerd://2.1.4-k3s1", Kubelet: "v1.34.4+k3s1"},
			"k3s ctr images import -"},
		{Node{Runtime: "containerd://2.1.4-k3s1", Kubelet: "v1.34.4+rke2r1"},
			"/var/lib/rancher/rke2/bin/ctr -a /run/k3s/containerd/containerd.sock -n k8s.io"},
	} {
		tt.n.Name = "n1"
		if got := hint.Of(r.failed(p, tt.n)); !strings.HasPrefix(got,
			"kubectl-toll image | ssh n1 "+tt.want) {
			t.Errorf("%+v: %s", tt.n, got)
		}
	}
}
