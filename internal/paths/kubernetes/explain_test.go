package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"runtime"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func TestExplain(t *testing.T) {
	c := &Client{Server: "https://192.0.2.1:6443", Namespace: "perf"}
	gr := schema.GroupResource{Resource: pods}
	forbidden := func(text string) error {
		return apierrors.NewForbidden(gr, "x", errors.New(text))
	}
	dial := func(err error) error { return &url.Error{Op: "Get", URL: c.Server, Err: err} }
	for _, tt := range []struct {
		name, verb      string
		err             error
		missing, remedy string
	}{
		{"expired", "list", apierrors.NewUnauthorized("Unauthorized"), "the API server at " +
			"https://192.0.2.1:6443 does not accept your credentials (401): they are wrong, " +
			"or have expired (Unauthorized)", "log in again; kubectl auth whoami must answer"},
		{"rbac", "create",
			forbidden(
				`User "u" cannot create resource "pods" in API group "" in the namespace "perf"`),
			`you may not create pods in namespace perf (403): pods "x" is forbidden: User "u" ` +
				`cannot create resource "pods" in API group "" in the namespace "perf"`,
			"toll kubernetes manifest prints a role with the permissions that toll needs"},
		{"pod-security", "create", forbidden(
			`violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`),
			`the namespace perf forbids the pod (Pod Security): pods "x" is forbidden: violates ` +
				`PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`,
			"--unprivileged, with which toll reads only the pods' own counters; or permit " +
				"it: kubectl label namespace perf pod-security.kubernetes.io/enforce=privileged"},
		{"quota", "create", forbidden("exceeded quota: small, requested: pods=1, used: pods=2"),
			`the namespace perf has no quota left: pods "x" is forbidden: exceeded quota: ` +
				`small, requested: pods=1, used: pods=2`,
			"--namespace with another one; kubectl describe quota"},
		{"webhook", "create",
			forbidden("admission webhook \"policy\" denied the request: \x1b[31mno"),
			`the cluster refuses to create pods: pods "x" is forbidden: admission webhook ` +
				`"policy" denied the request: \x1b[31mno`, "this is a policy of the cluster " +
				"(admission webhook, quota, limits): --namespace with another one, or ask the " +
				"administrator"},
		{"refused", "list", dial(syscall.ECONNREFUSED), "the API server at " +
			"https://192.0.2.1:6443 cannot be reached (connection refused)",
			"kubectl cluster-info; is the cluster up and reachable from here (VPN, proxy)? " +
				"--context chooses another one"},
		{"silent", "list", dial(context.DeadlineExceeded), "the API server at " +
			"https://192.0.2.1:6443 does not answer (context deadline exceeded)",
			"kubectl cluster-info; is the cluster up and reachable from here (VPN, proxy)? " +
				"--context chooses another one"},
		{"certificate", "list", dial(errors.New(
			"tls: failed to verify certificate: x509: unknown authority")), "the certificate " +
			"of the API server at https://192.0.2.1:6443 is not trusted (tls: failed to " +
			"verify certificate: x509: unknown authority)",
			"the cluster's certificate-authority in the kubeconfig; kubectl cluster-info must " +
				"work"},
		{"certificate-typed", "list", dial(&tls.CertificateVerificationError{
			Err: x509.UnknownAuthorityError{}}), "the certificate of the API server at " +
			"https://192.0.2.1:6443 is not trusted (tls: failed to verify certificate: " +
			"x509: certificate signed by unknown authority)", "the cluster's " +
			"certificate-authority in the kubeconfig; kubectl cluster-info must work"},
		{"named-tls", "list", &url.Error{Op: "Get", URL: "https://tls:6443",
			Err: syscall.ECONNREFUSED}, "the API server at https://192.0.2.1:6443 cannot be " +
			"reached (connection refused)", "kubectl cluster-info; is the cluster up and " +
			"reachable from here (VPN, proxy)? --context chooses another one"},
		{"plug-in", "list", dial(errors.New("getting credentials: exec: executable aws not " +
			"found")),
			"the kubeconfig's credential plug-in fails (getting credentials: exec: executable " +
				"aws not found)", "log in again as your cluster's provider says; kubectl get " +
				"nodes must work"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := c.explain(t.Context(), tt.verb, pods, tt.err)
			var u *machine.UnsupportedError
			if !errors.As(err, &u) || err.Error() != tt.missing ||
				u.Remedy != tt.remedy {
				t.Errorf("error %v, hint %+v", err, u)
			}
		})
	}
	if err := c.explain(t.Context(), "get", pods, apierrors.NewNotFound(gr, "x")); !apierrors.IsNotFound(err) {
		t.Errorf("that there is none: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopped by signal")
	cancel(why)
	if err := c.explain(ctx, "get", pods, dial(context.Canceled)); !errors.Is(err, why) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestFailedPods(t *testing.T) {
	r := &run{backend: &Kubernetes{}, image: "127.0.0.1:1/bridgetoll:abc",
		client: &Client{Namespace: "perf"}}
	n := Node{Name: "n1", Arch: "arm64"}
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending,
			ContainerStatuses: []corev1.ContainerStatus{
				{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
					Reason: reason, Message: message}}}}}
	}
	ended := func(reason string, code int32) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodFailed,
			ContainerStatuses: []corev1.ContainerStatus{
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					Reason: reason, ExitCode: code}}}}}
	}
	for _, tt := range []struct {
		name         string
		status       corev1.PodStatus
		says, remedy string
	}{
		{"runs", corev1.PodStatus{Phase: corev1.PodRunning}, "", ""},
		{"creating", waiting("ContainerCreating", ""), "", ""},
		{"no-image", waiting("ErrImagePull", "connection refused"),
			"node n1 does not have toll's image 127.0.0.1:1/bridgetoll:abc (ErrImagePull)",
			"kubectl-toll image | ssh n1 ctr -n k8s.io images import -; or --image with its " +
				"name in a registry"},
		{"other-machine", waiting("RunContainerError", "exec /toll: exec format error"),
			"node n1 is arm64, and the image 127.0.0.1:1/bridgetoll:abc is not " +
				"for it", "--image with a multi-architecture image in a registry; or --nodes " +
				"with nodes of one architecture"},
		{"image-for-others", waiting("ErrImagePull",
			"failed to pull: no match for platform in manifest: not found"),
			"node n1 is arm64, and the image 127.0.0.1:1/bridgetoll:abc is not " +
				"for it", "--image with a multi-architecture image in a registry; or --nodes " +
				"with nodes of one architecture"},
		{"ended-at-once", corev1.PodStatus{Phase: corev1.PodFailed,
			ContainerStatuses: []corev1.ContainerStatus{
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					Reason: "StartError", Message: "exec /toll: exec format error"}}}}},
			"node n1 is arm64, and the image 127.0.0.1:1/bridgetoll:abc is not " +
				"for it", "--image with a multi-architecture image in a registry; or --nodes " +
				"with nodes of one architecture"},
		{"unschedulable", corev1.PodStatus{Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
				Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				Message: "0/2 nodes are available: Insufficient memory"}}},
			"node n1 does not take the pod: 0/2 nodes are available: Insufficient " +
				"memory", "kubectl describe node n1"},
		{"evicted", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted",
			Message: "The node was low on resource: memory"}, "node n1: the pod toll-x ended: " +
			"Evicted The node was low on resource: memory", ""},
		{"killed", ended("OOMKilled", 137), "node n1: the pod toll-x ended: OOMKilled (exit " +
			"code 137)", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := r.failed(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "toll-x"},
				Status: tt.status}, n)
			if (err == nil) != (tt.says == "") ||
				err != nil && err.Error() != tt.says {
				t.Errorf("error %v, want %q", err, tt.says)
			}
			var u *machine.UnsupportedError
			if tt.remedy != "" && (!errors.As(err, &u) || u.Remedy != tt.remedy) {
				t.Errorf("hint %+v, want %q", u, tt.remedy)
			}
		})
	}
	r.backend.Image = "example.org/toll"
	if err := r.failed(&corev1.Pod{Status: waiting("ImagePullBackOff", "denied")}, n); err == nil ||
		fmt.Sprint(err) != "node n1 cannot get the image 127.0.0.1:1/bridgetoll:abc "+
			"(ImagePullBackOff): denied" {
		t.Errorf("of a registry: %v", err)
	}
}

func TestWhyPodsLeave(t *testing.T) {
	now := metav1.Now()
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: "toll-x", Namespace: fakeNamespace}}
		change(p)
		return p
	}
	for want, p := range map[string]*corev1.Pod{
		"its pod toll-x was deleted, by a user or because the node is being drained": nil,
		"its pod toll-x is being removed: evicted, EvictionByEvictionAPI: by the eviction " +
			"API": pod(
			func(p *corev1.Pod) {
				p.DeletionTimestamp = &now
				p.Status.Conditions = []corev1.PodCondition{
					{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
						Reason: "EvictionByEvictionAPI", Message: "by the eviction API"}}
			}),
		"its pod toll-x was ended: Evicted The node was low on resource: memory": pod(func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted",
				"The node was low on resource: memory"
		}),
		"its pod toll-x was ended: OOMKilled (exit code 137)": pod(func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.ContainerStatuses = []corev1.ContainerStatus{
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					Reason: "OOMKilled", ExitCode: 137}}}}
		}),
	} {
		s := newAPIServer(t, "n1")
		if p != nil {
			s.pods[p.Name] = p
		}
		r := &run{client: s.connect()}
		b := &body{pod: pod(func(*corev1.Pod) {})}
		for _, err := range []error{errors.New("stream ended"),
			&path.CutError{Err: errors.New("stream ended")}} {
			if got, gone := r.whyLeft(b, err); !gone || got.Error() != want+" (stream ended)" {
				t.Errorf("gone: %v: %q, want %q", gone, got, want)
			}
		}
	}
}

func TestWhyStreamsBreak(t *testing.T) {
	s := newAPIServer(t, "n1")
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "toll-x", Namespace: fakeNamespace}}
	p.Status.Phase = corev1.PodRunning
	s.pods[p.Name] = p
	r, b := &run{client: s.connect()}, &body{pod: p}
	broke := &path.CutError{Err: errors.New("stream broke")}
	says := func(want string) {
		t.Helper()
		why, gone := r.whyLeft(b, broke)
		if cut := (*path.CutError)(nil); gone || !errors.As(why, &cut) ||
			testgolden.Stable(why.Error()) != want {
			t.Errorf("gone: %v; %q, want %q", gone, why, want)
		}
	}
	says(
		"stream broke; the API server answers and reports the pod as Running: its node's " +
			"kubelet or the connection to it may have failed")
	s.Close()
	says("stream broke; the API server at https://127.0.0.1:PORT cannot be reached (dial tcp " +
		"127.0.0.1:PORT: connect: connection refused)")
}

// A user's image may have several architectures.
func TestNodeOfAnotherArchitecture(t *testing.T) {
	s := newAPIServer(t, "n1", "n2")
	for i := range s.nodes {
		s.nodes[i].Status.NodeInfo.Architecture = "s390x"
	}
	k := &Kubernetes{Pods: cluster.Pods{Access: s.access(), Version: testVersion},
		StateDir: t.TempDir()}
	key, err := agent.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	r := &run{backend: k, client: s.connect(), image: "127.0.0.1:1/bridgetoll:abc",
		hub: agent.NewHub(key, testVersion), bodies: map[place]*body{}}
	for _, n := range s.nodes {
		r.nodes = append(r.nodes, nodeOf(n))
	}
	if _, err := k.kept.Start(t.Context(), func(context.Context) (*run, error) {
		return r, nil
	}); err != nil {
		t.Fatal(err)
	}
	nodes, without, err := k.Cluster(t.Context())
	if err != nil || len(nodes) != 2 || len(without) != 2 {
		t.Fatalf("%v, %v, %v", nodes, without, err)
	}
	var u *machine.UnsupportedError
	if err := without["n1"]; !errors.As(err, &u) ||
		u.Missing !=
			"node n1 is s390x, and toll's own image is for "+runtime.GOARCH ||
		u.Remedy != "--image with a multi-architecture image in a registry; or --nodes "+
			"with nodes of one architecture" {
		t.Errorf("got %v", err)
	}
	if got := s.verbs(pods); len(got) > 0 {
		t.Errorf("it asked to %v pods", got)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if err := (&run{backend: &Kubernetes{Pods: cluster.Pods{Image: "example.org/toll"}}}).otherArch(Node{Arch: "s390x"}); err != nil {
		t.Errorf("an image for all: %v", err)
	}
}

func TestLabelsOfNodes(t *testing.T) {
	n := nodeOf(worker("a", func(n *corev1.Node) { n.Labels["example.org/row"] = "7\x1b[m" }))
	got := n.labelled([]string{"example.org/row", "nobody/has"})
	want := map[string]string{corev1.LabelTopologyZone: "zone-1", "topology.rook.io/rack": "r7",
		"example.org/row": `7\x1b[m`}
	if !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
