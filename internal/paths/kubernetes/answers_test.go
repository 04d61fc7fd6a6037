package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

func plain(words string) bool {
	return len(words) < 4000 && strings.IndexFunc(words, func(r rune) bool {
		return !unicode.IsPrint(r)
	}) < 0
}

func TestRefusals(t *testing.T) {
	denied := func(message string) func(http.ResponseWriter, asking) {
		return func(w http.ResponseWriter, a asking) {
			e := apierrors.NewForbidden(schema.GroupResource{Resource: a.kind}, a.name, nil)
			e.ErrStatus.Message = message
			reply(w, e)
		}
	}
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter, a asking)
		want   []string // in the error
		hint   string   // in the hint
	}{
		{"token", func(w http.ResponseWriter, _ asking) {
			reply(w, apierrors.NewUnauthorized("Unauthorized"))
		}, []string{"401", "credentials"}, "log in"},
		{"rbac", func(w http.ResponseWriter, a asking) {
			reply(w, forbidden(a))
		}, []string{"403", "create pods", "namespace measured"}, "toll kubernetes manifest"},
		{"pod-security",
			denied(
				`pods "p" is forbidden: violates PodSecurity "restricted:latest": host ` +
					`namespaces (hostNetwork=true)`),
			[]string{"Pod Security", "hostNetwork=true"}, "--unprivileged"},
		{"quota",
			denied(
				`pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, ` +
					`limited: pods=0`), []string{"quota", "limited: pods=0"}, "--namespace"},
		{"webhook",
			denied(`admission webhook "policy.example.com" denied the request: no images but ours`),
			[]string{"policy.example.com", "no images but ours"}, "policy"},
		{"autopilot", denied(`admission webhook "warden-validating.common-webhooks.networking.gke.io" ` +
			`denied the request: [denied by autogke-disallow-hostnamespaces]: enabling hostNetwork is ` +
			`not allowed in Autopilot`), []string{"enabling hostNetwork is not"},
			"--unprivileged, with which toll reads"},
		{"openshift", denied(`pods "p" is forbidden: unable to validate against any security context ` +
			`constraint: [provider restricted-v2: .spec.securityContext.hostNetwork: Invalid value: ` +
			`true: Host network is not allowed to be used]`), []string{"security context constraint"},
			"--unprivileged, with which toll reads"},
		{"invalid", func(w http.ResponseWriter, a asking) {
			reply(w, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil))
		}, []string{"create pods", "invalid"}, "policy"},
		{"no-namespace", func(w http.ResponseWriter, _ asking) {
			reply(w, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"},
				fakeNamespace))
		}, []string{"the cluster has no namespace measured"}, "kubectl get namespaces"},
		{"internal", func(w http.ResponseWriter, _ asking) {
			reply(w, apierrors.NewInternalError(errors.New("etcd is gone")))
		}, []string{"etcd is gone"}, ""},
		{"not-json", func(w http.ResponseWriter, _ asking) {
			fmt.Fprint(w, "<html>Log in to the proxy</html>")
		}, []string{"not a Kubernetes API server", "text/html"}, "proxy"},
		{"a-proxy's-502", func(w http.ResponseWriter, _ asking) {
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<html>\x1b[2J bad gateway</html>")
		}, []string{"create pods"}, ""},
		{"control-characters",
			denied(
				"pods \"p\" is forbidden: \x1b]0;owned\x07 admission webhook " +
					"\u202edenied\r\n the request"), []string{`\x1b]0;owned\a`, `\u202e`},
			"policy"},
		{"long", denied("pods \"p\" is forbidden: " + strings.Repeat("no, ", 1<<20)),
			[]string{"no, no"}, "policy"},
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
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("the error does not say %q: %s", w, err)
				}
			}
			if !strings.Contains(hint.Of(err), tt.hint) {
				t.Errorf("the hint does not say %q: %s", tt.hint, hint.Of(err))
			}
			if !plain(err.Error()) || !plain(hint.Of(err)) {
				t.Errorf("not fit to be shown: %q, %q", err, hint.Of(err))
			}
			if strings.Contains(err.Error(), fakeToken) {
				t.Errorf("the token is shown: %s", err)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	s := newAPIServer(t, "a")
	closed := newAPIServer(t)
	gone := closed.access()
	closed.Close()
	for name, tt := range map[string]struct {
		access cluster.Access
		want   string
	}{
		"nobody-listens": {gone, "cannot be reached"},
		"no-such-name": {kubeconfig(t, "https://nowhere.invalid:6443", nil, "t"),
			"nowhere.invalid"},
		"not-trusted": {kubeconfig(t, s.URL, nil, "t"), "is not trusted"},
		"wrong-token": {kubeconfig(t, s.URL, caOf(s), "t"), "401"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := connect(t.Context(), tt.access)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.version(t.Context())
			if !errors.Is(err, machine.ErrUnsupported) || !strings.Contains(err.Error(), tt.want) ||
				hint.Of(err) == "" || !plain(err.Error()) {
				t.Errorf("%v; hint: %s; want %q", err, hint.Of(err), tt.want)
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
	if !errors.Is(err, machine.ErrUnsupported) || !strings.Contains(err.Error(), errTooLong.Error()) {
		t.Errorf("%v", err)
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
