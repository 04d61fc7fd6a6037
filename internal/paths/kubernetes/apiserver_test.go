package kubernetes

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
)

// apiserver is a fake cluster of one namespace. Requests beyond Rules fail the test.
type apiserver struct {
	*httptest.Server
	t *testing.T

	// instead may answer a request; it may be nil.
	instead func(w http.ResponseWriter, r *http.Request, a asking) bool
	// place stands for the scheduler and the kubelet. Nil: the pod runs, with an address.
	place func(p *corev1.Pod)
	exec  func(pod string, command []string, in io.Reader, out, errOut io.Writer) error

	mu       sync.Mutex // guards following
	nodes    []corev1.Node
	pods     map[string]*corev1.Pod
	services map[string]*corev1.Service
	asked    []asking
	made     int
	streams  sync.WaitGroup
}

type asking struct{ verb, kind, name string }

const (
	fakeNamespace = "measured"
	fakeToken     = "s3cret"
)

func newAPIServer(t *testing.T, names ...string) *apiserver {
	t.Helper()
	s := &apiserver{t: t, pods: map[string]*corev1.Pod{}, services: map[string]*corev1.Service{}}
	for i, n := range names {
		s.nodes = append(s.nodes, corev1.Node{
			TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: n,
				Labels: map[string]string{"kubernetes.io/hostname": n}},
			Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{
					{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				Addresses: []corev1.NodeAddress{{
					Type: corev1.NodeInternalIP, Address: fmt.Sprintf("192.0.2.%d", i+1)}},
				NodeInfo: corev1.NodeSystemInfo{
					OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: "v1.34.4"},
			}})
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		s.streams.Wait()
	})
	return s
}

func (s *apiserver) access() cluster.Access {
	return kubeconfig(s.t, s.URL, caOf(s), fakeToken)
}

func caOf(s *apiserver) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func kubeconfig(t *testing.T, server string, ca []byte, token string) cluster.Access {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "fake",
		"clusters": []any{map[string]any{"name": "c",
			"cluster": map[string]any{"server": server, "certificate-authority-data": ca}}},
		"users": []any{map[string]any{"name": "u", "user": map[string]any{"token": token}}},
		"contexts": []any{map[string]any{"name": "fake",
			"context": map[string]any{"cluster": "c", "user": "u", "namespace": fakeNamespace}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return cluster.Access{Kubeconfig: file}
}

func (s *apiserver) connect() *Client {
	s.t.Helper()
	c, err := connect(s.t.Context(), s.access())
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// ok is false for a path that a run does not need.
func parse(r *http.Request) (a asking, namespace string, ok bool) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	a.kind = parts[0]
	if len(parts) > 1 {
		a.name = parts[1]
	}
	if len(parts) > 2 {
		a.kind += "/" + parts[2]
	}
	switch {
	case r.Method == http.MethodPost:
		a.verb = "create"
	case r.Method == http.MethodDelete && a.name == "":
		a.verb = "deletecollection"
	case r.Method == http.MethodDelete:
		a.verb = "delete"
	case r.Method == http.MethodPatch:
		a.verb = "patch"
	case r.Method == http.MethodGet && a.name != "":
		a.verb = "get"
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		a.verb = "watch"
	case r.Method == http.MethodGet:
		a.verb = "list"
	}
	return a, namespace, strings.HasPrefix(r.URL.Path, "/api/v1/") && len(parts) <= 3
}

func allowed(a asking) bool {
	return slices.ContainsFunc(Rules(), func(r Rule) bool {
		return slices.Contains(r.Resources, a.kind) && slices.Contains(r.Verbs, a.verb)
	})
}

func (s *apiserver) serve(w http.ResponseWriter, r *http.Request) {
	a, namespace, ok := parse(r)
	if s.instead != nil && s.instead(w, r, a) {
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+fakeToken {
		reply(w, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	if r.URL.Path == "/version" {
		reply(w, map[string]string{"major": "1", "minor": "34", "gitVersion": "v1.34.4"})
		return
	}
	if !ok || (namespace != fakeNamespace) == (a.kind != nodes) {
		s.t.Errorf("asked for %s %s", r.Method, r.URL)
		reply(w, apierrors.NewNotFound(schema.GroupResource{Resource: a.kind}, a.name))
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, a)
	s.mu.Unlock()
	if !allowed(a) {
		s.t.Errorf("Rules do not allow to %s %s", a.verb, a.kind)
		reply(w, forbidden(a))
		return
	}
	if a.kind == "pods/exec" {
		s.stream(w, r, a.name)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reply(w, s.do(r, a))
}

func forbidden(a asking) *apierrors.StatusError {
	e := apierrors.NewForbidden(schema.GroupResource{Resource: a.kind}, a.name, nil)
	e.ErrStatus.Message = fmt.Sprintf(
		`%s is forbidden: User "u" cannot %s resource %q in API group "" in the namespace %q`,
		a.kind, a.verb, a.kind, fakeNamespace)
	return e
}

func (s *apiserver) do(r *http.Request, a asking) any {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	none := apierrors.NewNotFound(schema.GroupResource{Resource: a.kind}, a.name)
	switch a {
	case asking{"list", nodes, ""}:
		return corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"},
			Items: s.nodes}
	case asking{"get", nodes, a.name}:
		for _, n := range s.nodes {
			if n.Name == a.name {
				return n
			}
		}
		return none
	case asking{"create", pods, ""}:
		p := &corev1.Pod{}
		if err := json.NewDecoder(r.Body).Decode(p); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		if s.pods[p.Name] != nil {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: a.kind}, p.Name)
		}
		s.made++
		p.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
		p.Namespace, p.UID = fakeNamespace, "pod-uid"
		if s.place != nil {
			s.place(p)
		} else {
			s.run(p)
		}
		s.pods[p.Name] = p
		return p
	case asking{"list", pods, ""}:
		l := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
		for _, p := range s.pods {
			if selector.Matches(labels.Set(p.Labels)) {
				l.Items = append(l.Items, *p)
			}
		}
		return l
	case asking{"get", pods, a.name}:
		if p := s.pods[a.name]; p != nil {
			return p
		}
		return none
	case asking{"delete", pods, a.name}:
		if s.pods[a.name] == nil {
			return none
		}
		delete(s.pods, a.name)
	case asking{"create", services, ""}:
		v := &corev1.Service{}
		if err := json.NewDecoder(r.Body).Decode(v); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		s.made++
		v.TypeMeta = metav1.TypeMeta{Kind: "Service", APIVersion: "v1"}
		v.Namespace = fakeNamespace
		if v.Spec.ClusterIP == "" {
			v.Spec.ClusterIP = fmt.Sprintf("198.51.100.%d", s.made)
		}
		s.services[v.Name] = v
		return v
	case asking{"list", services, ""}:
		l := corev1.ServiceList{TypeMeta: metav1.TypeMeta{Kind: "ServiceList", APIVersion: "v1"}}
		for _, v := range s.services {
			if selector.Matches(labels.Set(v.Labels)) {
				l.Items = append(l.Items, *v)
			}
		}
		return l
	case asking{"get", services, a.name}:
		if v := s.services[a.name]; v != nil {
			return v
		}
		return none
	case asking{"delete", services, a.name}:
		if s.services[a.name] == nil {
			return none
		}
		delete(s.services, a.name)
	default:
		s.t.Errorf("this API server cannot %s %s", a.verb, a.kind)
		return apierrors.NewMethodNotSupported(schema.GroupResource{Resource: a.kind}, a.verb)
	}
	return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusSuccess}
}

func (s *apiserver) run(p *corev1.Pod) {
	for _, term := range p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		p.Spec.NodeName = term.MatchFields[0].Values[0]
	}
	at := fmt.Sprintf("203.0.113.%d", s.made)
	for _, n := range s.nodes {
		if n.Name == p.Spec.NodeName {
			p.Status.HostIP = n.Status.Addresses[0].Address
		}
	}
	if p.Spec.HostNetwork {
		at = p.Status.HostIP
	}
	now := metav1.Now()
	p.Status.Phase, p.Status.PodIP, p.Status.PodIPs, p.Status.StartTime = corev1.PodRunning, at,
		[]corev1.PodIP{{IP: at}}, &now
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: p.Spec.Containers[0].Name, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}}
}

func reply(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	if e, is := answer.(*apierrors.StatusError); is {
		status := e.Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		w.WriteHeader(int(status.Code))
		answer = status
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *apiserver) stream(w http.ResponseWriter, r *http.Request, pod string) {
	s.streams.Add(1)
	defer s.streams.Done()
	upgrade := websocket.Upgrader{Subprotocols: []string{execProtocol}}
	conn, err := upgrade.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	var mu sync.Mutex
	channel := func(n byte) io.Writer {
		return writer(func(b []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return len(b), conn.WriteMessage(websocket.BinaryMessage, append([]byte{n}, b...))
		})
	}
	in, feed := io.Pipe()
	go func() {
		for {
			_, message, err := conn.ReadMessage()
			if err != nil {
				_ = feed.CloseWithError(io.EOF)
				return
			}
			if len(message) > 1 && message[0] == stdin {
				_, _ = feed.Write(message[1:])
			}
		}
	}()
	end := metav1.Status{Status: metav1.StatusSuccess}
	if err := s.exec(pod, r.URL.Query()["command"], in, channel(stdout), channel(stderr)); err != nil {
		end = metav1.Status{Status: metav1.StatusFailure, Message: err.Error(),
			Reason: "NonZeroExitCode"}
	}
	_ = in.Close()
	text, _ := json.Marshal(end)
	_, _ = channel(status).Write(text)
	mu.Lock()
	defer mu.Unlock()
	_ = conn.WriteMessage(websocket.CloseMessage,
		websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func (s *apiserver) verbs(kind string) (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asked {
		if a.kind == kind {
			out = append(out, a.verb)
		}
	}
	return out
}
