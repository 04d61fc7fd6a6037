package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

func plain(words string) bool {
	return len(words) < 4000 && strings.IndexFunc(words, func(r rune) bool {
		return !unicode.IsPrint(r)
	}) < 0
}

func TestRefusals(t *testing.T) {
	const (
		unprivileged = "--unprivileged, with which toll reads only the pods' own counters; "
		policy       = "this is a policy of the cluster (admission webhook, quota, limits): " +
			"--namespace with another one, or ask the administrator"
	)
	denied := func(message string) func(http.ResponseWriter, asking) {
		return func(w http.ResponseWriter, a asking) {
			e := apierrors.NewForbidden(schema.GroupResource{Resource: a.kind}, a.name, nil)
			e.ErrStatus.Message = message
			reply(w, e)
		}
	}
	for _, tt := range []struct {
		name       string
		answer     func(w http.ResponseWriter, a asking)
		want, hint string
	}{
		{"token", func(w http.ResponseWriter, _ asking) {
			reply(w, apierrors.NewUnauthorized("Unauthorized"))
		}, "the API server at https://127.0.0.1:PORT does not accept your credentials " +
			"(401): they are wrong, or have expired (Unauthorized)",
			"log in again; kubectl auth whoami must answer"},
		{"rbac", func(w http.ResponseWriter, a asking) {
			reply(w, forbidden(a))
		}, "you may not create pods in namespace measured (403): pods is forbidden: User " +
			`"u" cannot create resource "pods" in API group "" in the namespace "measured"`,
			"toll kubernetes manifest prints a role with the permissions that toll needs"},
		{"pod-security",
			denied(
				`pods "p" is forbidden: violates PodSecurity "restricted:latest": host ` +
					`namespaces (hostNetwork=true)`),
			`the namespace measured forbids the pod (Pod Security): pods "p" is ` +
				`forbidden: violates PodSecurity "restricted:latest": host namespaces ` +
				"(hostNetwork=true)", unprivileged +
				"or permit it: kubectl label namespace measured " +
				"pod-security.kubernetes.io/enforce=privileged"},
		{"quota",
			denied(
				`pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, ` +
					`limited: pods=0`), `the namespace measured has no quota left: pods "p" is ` +
				`forbidden: ` +
				"exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0",
			"--namespace with another one; kubectl describe quota"},
		{"webhook",
			denied(`admission webhook "policy.example.com" denied the request: no images but ours`),
			`the cluster refuses to create pods: admission webhook "policy.example.com" ` +
				"denied the request: no images but ours", policy},
		{"autopilot", denied(`admission webhook "warden-validating.common-webhooks.networking.gke.io" ` +
			`denied the request: [denied by autogke-disallow-hostnamespaces]: enabling hostNetwork is ` +
			`not allowed in Autopilot`), "the cluster refuses to create pods: admission webhook " +
			`"warden-validating.common-webhooks.networking.gke.io" denied the request: ` +
			"[denied by autogke-disallow-hostnamespaces]: enabling hostNetwork is not " +
			"allowed in Autopilot",
			unprivileged + policy},
		{"openshift", denied(`pods "p" is forbidden: unable to validate against any security context ` +
			`constraint: [provider restricted-v2: .spec.securityContext.hostNetwork: Invalid value: ` +
			`true: Host network is not allowed to be used]`),
			`the cluster refuses to create pods: pods "p" is forbidden: unable to ` +
				"validate against any security context constraint: [provider restricted-v2: " +
				".spec.securityContext.hostNetwork: Invalid value: true: Host network is not " +
				"allowed to be used]",
			unprivileged + policy},
		{"invalid", func(w http.ResponseWriter, a asking) {
			reply(w, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil))
		}, `the cluster refuses to create pods: Pod "p" is invalid`, policy},
		{"no-namespace", func(w http.ResponseWriter, _ asking) {
			reply(w, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"},
				fakeNamespace))
		}, `the cluster has no namespace measured (namespaces "measured" not found)`,
			"--namespace with an existing one: kubectl get namespaces"},
		{"internal", func(w http.ResponseWriter, _ asking) {
			reply(w, apierrors.NewInternalError(errors.New("etcd is gone")))
		}, "create pods: Internal error occurred: etcd is gone", ""},
		{"not-json", func(w http.ResponseWriter, _ asking) {
			fmt.Fprint(w, "<html>Log in to the proxy</html>")
		}, "what answers at https://127.0.0.1:PORT is not a Kubernetes API server " +
			"(serializer for text/html; charset=utf-8 doesn't exist)",
			"kubectl cluster-info; a proxy may have answered instead: HTTPS_PROXY, " +
				"NO_PROXY"},
		{"a-proxy's-502", func(w http.ResponseWriter, _ asking) {
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<html>\x1b[2J bad gateway</html>")
		}, `create pods: an error on the server ("<html>\x1b[2J bad gateway</html>") has ` +
			"prevented the request from succeeding (post pods)", ""},
		{"control-characters",
			denied(
				"pods \"p\" is forbidden: \x1b]0;owned\x07 admission webhook " +
					"\u202edenied\r\n the request"),
			`the cluster refuses to create pods: pods "p" is forbidden: ` +
				"\\x1b]0;owned\\a admission webhook \\u202edenied the request",
			policy},
		{"long", denied("pods \"p\" is forbidden: " + strings.Repeat("no, ", 1<<20)),
			`the cluster refuses to create pods: pods "p" is forbidden: ` +
				strings.Repeat("no, ", 144) + "n", policy},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t, "a")
			s.instead = func(w http.ResponseWriter, _ *http.Request, a asking) bool {
				tt.answer(w, a)
				return true
			}
			err := s.connect().create(t.Context(), pods, &corev1.Pod{}, &corev1.Pod{})
			if err == nil {
				t.Fatal("no error")
			}
			if got := testgolden.Stable(err.Error()); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if hint.Of(err) != tt.hint {
				t.Errorf("hint %q, want %q", hint.Of(err), tt.hint)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	resolver := regexp.MustCompile(` on \S+:53:`)
	s := newAPIServer(t, "a")
	closed := newAPIServer(t)
	gone := closed.access()
	closed.Close()
	_, err := net.DefaultResolver.LookupHost(t.Context(), "nowhere.invalid")
	unresolved, ok := errors.AsType[*net.DNSError](err)
	if !ok {
		t.Fatal(err)
	}
	unresolved.Server = "" // which no message has
	for name, tt := range map[string]struct {
		access cluster.Access
		want   string
	}{
		"nobody-listens": {gone, "the API server at https://127.0.0.1:PORT cannot be reached " +
			"(dial tcp " +
			"127.0.0.1:PORT: connect: connection refused)"},
		"no-such-name": {kubeconfig(t, "https://nowhere.invalid:6443", nil, "t"),
			"the name of the API server in https://nowhere.invalid:6443 does not resolve " +
				"here (dial tcp: " + unresolved.Error() + ")"},
		"not-trusted": {kubeconfig(t, s.URL, nil, "t"),
			"the certificate of the API server at https://127.0.0.1:PORT is not trusted " +
				"(tls: failed to verify certificate: x509: certificate signed by unknown " +
				"authority)"},
		"wrong-token": {kubeconfig(t, s.URL, caOf(s), "t"),
			"the API server at https://127.0.0.1:PORT does not accept your credentials " +
				"(401): they are wrong, or have expired (the server has asked for the client to " +
				"provide credentials)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := connect(t.Context(), tt.access)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.version(t.Context())
			got := resolver.ReplaceAllString(testgolden.Stable(fmt.Sprint(err)), ":")
			if !errors.Is(err, machine.ErrUnsupported) || got != tt.want || hint.Of(err) == "" {
				t.Errorf("hint: %s: %q, want %q", hint.Of(err), got, tt.want)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	s := newAPIServer(t, "a")
	s.instead = func(_ http.ResponseWriter, r *http.Request, _ asking) bool {
		<-r.Context().Done()
		return true
	}
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(stop) })
	if _, err := s.connect().nodes(ctx); !errors.Is(err, stop) {
		t.Errorf("%v, want the cause of the context", err)
	}
}

func TestEndlessAnswer(t *testing.T) {
	s := newAPIServer(t, "a")
	taken := make(chan int, 1)
	s.instead = func(w http.ResponseWriter, _ *http.Request, _ asking) bool {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind": "NodeList", "apiVersion": "v1", "items": [`)
		piece, n := []byte(strings.Repeat(`{"metadata": {"name": "n"}},`, 1<<10)), 0
		for err := error(nil); err == nil; n += len(piece) {
			_, err = w.Write(piece)
		}
		taken <- n
		return true
	}
	c := s.connect()
	const most = 1 << 20
	c.rest.Client.Transport = &limited{c.rest.Client.Transport, most} // maxAnswer takes seconds
	_, err := c.nodes(t.Context())
	if got, want := testgolden.Stable(fmt.Sprint(err)),
		"what answers at https://127.0.0.1:PORT is not a Kubernetes API server (the "+
			"answer is too long)"; !errors.Is(err,
		machine.ErrUnsupported) || got != want {
		t.Errorf("%q, want %q", got, want)
	}
	const buffered = 16 << 20
	if n := <-taken; n > most+buffered {
		t.Errorf("%d MiB were taken", n>>20)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	c := newAPIServer(t).connect()
	asks := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.config.WrapTransport(asks).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if b, is := answer.Body.(*bounded); !is || b.left != maxAnswer {
		t.Errorf("a body of %T", answer.Body)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
