package kubernetes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

func TestExec(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	s.exec = func(pod string, command []string, in io.Reader, out, errOut io.Writer) error {
		if pod != "p" || strings.Join(command, " ") != "cat and more" {
			t.Errorf("%s: %q", pod, command)
		}
		n, err := io.CopyN(out, in, 3<<20)
		fmt.Fprintf(errOut, "after %d bytes: \x1b[31mred\n", n)
		return errors.Join(err, errors.New("command terminated with exit code 3"))
	}
	stream, err := s.connect().exec(t.Context(), "p", "cat", "and more")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	sent := strings.Repeat("0123456789abcde\x00", 3<<16)
	go func() { _, _ = io.WriteString(stream, sent) }()
	got, err := io.ReadAll(stream)
	if err != nil || string(got) != sent {
		t.Errorf("%d of %d bytes came back: %v", len(got), len(sent), err)
	}
	if over := stream.over("p"); over == nil ||
		!strings.HasPrefix(
			over.Error(), "its exec stream ended: command terminated with exit code 3") ||
		errors.As(over, new(*path.CutError)) {
		t.Errorf("over: %v", over)
	}
	end := stream.ended()
	if end == nil || !strings.Contains(end.Error(), "exit code 3") ||
		!strings.Contains(end.Error(), "after 3145728 bytes") || !plain(end.Error()) {
		t.Errorf("it ended by %q", end)
	}
}

func TestExecBroken(t *testing.T) {
	for name, say := range map[string]func(c *websocket.Conn){
		"closed": func(c *websocket.Conn) { c.Close() },
		"text": func(c *websocket.Conn) {
			_ = c.WriteMessage(websocket.TextMessage, []byte("\x01x"))
		},
		"empty": func(c *websocket.Conn) { _ = c.WriteMessage(websocket.BinaryMessage, nil) },
		"no-channel": func(c *websocket.Conn) {
			_ = c.WriteMessage(websocket.BinaryMessage, []byte{200, 1, 2})
		},
		"odd-status": func(c *websocket.Conn) {
			_ = c.WriteMessage(websocket.BinaryMessage, []byte("\x03{\x1b[2J"))
		},
		"close-code": func(c *websocket.Conn) {
			_ = c.WriteMessage(websocket.CloseMessage, []byte{0})
		},
		"a-huge-one": func(c *websocket.Conn) {
			_ = c.WriteMessage(websocket.BinaryMessage, make([]byte, 64<<20))
		},
		"never-ending": func(c *websocket.Conn) {
			for c.WriteMessage(websocket.BinaryMessage,
				append([]byte{stderr}, make([]byte, 1<<20)...)) == nil {
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			s.instead = func(w http.ResponseWriter, r *http.Request, a asking) bool {
				upgrade := websocket.Upgrader{Subprotocols: []string{execProtocol}}
				c, err := upgrade.Upgrade(w, r, nil)
				if err != nil {
					t.Error(err)
					return true
				}
				defer c.Close()
				say(c)
				return true
			}
			stream, err := s.connect().exec(t.Context(), "p", "x")
			if err != nil {
				t.Fatal(err)
			}
			if name == "never-ending" {
				if err := stream.Close(); err != nil {
					t.Error(err)
				}
			}
			if _, err := io.Copy(io.Discard, bufio.NewReader(stream)); err != nil &&
				!errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("it is read to %v", err)
			}
			over := stream.over("p")
			if cut := errors.As(over, new(*path.CutError)); name != "never-ending" &&
				(over == nil || !plain(over.Error()) || cut == (name == "odd-status")) {
				t.Errorf("over: %q", over)
			}
			if err := stream.ended(); err != nil && !plain(err.Error()) {
				t.Errorf("not fit to be shown: %q", err)
			}
			if err := stream.Close(); err != nil && name != "never-ending" {
				t.Logf("closed: %v", err)
			}
			if len(stream.said.String()) > 1<<20 {
				t.Errorf("%d bytes of what it said are kept", len(stream.said.String()))
			}
		})
	}
}

func TestExecRefused(t *testing.T) {
	s := newAPIServer(t)
	s.instead = func(w http.ResponseWriter, _ *http.Request, a asking) bool {
		reply(w, forbidden(a))
		return true
	}
	_, err := s.connect().exec(t.Context(), "p", "x")
	if err == nil || !strings.Contains(err.Error(), "pods/exec") || !plain(err.Error()) ||
		!strings.Contains(hint(err), "toll kubernetes manifest") {
		t.Errorf("%v; hint: %s", err, hint(err))
	}
}

func (s *apiserver) spdyExec(w http.ResponseWriter, r *http.Request, pod string) {
	if _, err := httpstream.Handshake(r, w, []string{execProtocol}); err != nil {
		s.t.Error(err)
		return
	}
	const streams = 4
	came := make(chan httpstream.Stream, streams)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(
		w, r, func(x httpstream.Stream, _ <-chan struct{}) error {
			came <- x
			return nil
		})
	if conn == nil {
		return
	}
	defer conn.Close()
	by := map[string]httpstream.Stream{}
	for len(by) < streams {
		x := <-came
		by[x.Headers().Get(corev1.StreamType)] = x
	}
	end := metav1.Status{Status: metav1.StatusSuccess}
	if err := s.exec(pod, r.URL.Query()["command"], by[corev1.StreamTypeStdin], by[corev1.StreamTypeStdout], by[corev1.StreamTypeStderr]); err != nil {
		end = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
	}
	_ = json.NewEncoder(by[corev1.StreamTypeError]).Encode(end)
	for _, x := range by {
		_ = x.Close()
	}
}

// A refusal by the API server itself is not repeated.
func TestExecFallsBack(t *testing.T) {
	t.Parallel()
	badGateway := func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, "\x1b[2Jno upgrades here")
	}
	says := func(code int, kind, body string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	notFound := says(http.StatusNotFound, "text/plain", "404 page not found")
	noEntry := says(http.StatusForbidden, "text/html",
		"<html>\n<body>\n<b>Forbidden</b>: Unauthorized, cannot get resource \"pods/exec\": not found</body>\n</html>")
	likeYAML := says(http.StatusForbidden, "text/html", "<b>forbidden</b>: no")
	answers := func(e *apierrors.StatusError) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) { reply(w, e) }
	}
	dialling := apierrors.NewInternalError(errors.New("error dialing backend"))
	for _, tt := range []struct {
		name      string
		websocket func(w http.ResponseWriter)
		spdy      func(w http.ResponseWriter)
		want      []string
		hint      string
		verbs     string
	}{
		{"a-proxy", badGateway, nil, nil, "", "get create"},
		{"no-upgrade", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
		}, nil, nil, "", "get create"},
		{"nothing-gets-through", badGateway, badGateway,
			[]string{"neither over WebSocket", "502", "nor over SPDY", "no upgrades here"},
			"NO_PROXY", "get create"},
		{"may-not-create", badGateway, func(w http.ResponseWriter) {
			reply(w, forbidden(asking{"create", "pods/exec", "p"}))
		},
			[]string{"you may not create pods/exec"}, "toll kubernetes manifest", "get create"},
		{"proxy's-404", notFound, nil, nil, "", "get create"},
		{"proxy's-404-twice", notFound, notFound,
			[]string{"neither over WebSocket", "404 page not found",
				"nor over SPDY (unable to upgrade connection: 404 page not found)"}, "NO_PROXY",
			"get create"},
		{"proxy's-403", noEntry, nil, nil, "", "get create"},
		{"proxy's-403-twice", noEntry, noEntry,
			[]string{"neither over WebSocket", "403 Forbidden", "nor over SPDY",
				"<b>Forbidden</b>"}, "NO_PROXY", "get create"},
		{"proxy's-403-on-a-line", likeYAML, likeYAML,
			[]string{
				"neither over WebSocket (the answer is not from an API server) nor over SPDY (the answer is not from an API server)"}, "NO_PROXY", "get create"},
		{"proxy's-401", says(http.StatusUnauthorized, "text/plain", "Unauthorized"), nil, nil, "",
			"get create"},
		{"proxy's-json", says(http.StatusForbidden, "application/json", `{"message": "forbidden"}`),
			says(http.StatusForbidden, "application/json", `{"message": "no"}`),
			[]string{"neither over WebSocket (forbidden)", "nor over SPDY (no)"}, "NO_PROXY",
			"get create"},
		{"proxy-then-no-pod", notFound, answers(
			apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p")),
			[]string{`pods "p" not found`, "WebSocket had failed with", "404 page not found"}, "",
			"get create"},
		{"no-pod", answers(apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p")), nil,
			[]string{`pods "p" not found`}, "", "get"},
		{"another's-404", answers(apierrors.NewNotFound(
			schema.GroupResource{Resource: "upgrades"}, "p")), nil, nil, "", "get create"},
		{"not-known", answers(apierrors.NewUnauthorized("Unauthorized")), nil,
			[]string{"401", "credentials"}, "log in", "get"},
		{"kubelet-down", answers(dialling), answers(dialling),
			[]string{"create pods/exec: Internal error occurred: error dialing backend"}, "",
			"get create"},
		{"may-not-get", func(w http.ResponseWriter) {
			reply(w, forbidden(asking{"get", "pods/exec", "p"}))
		}, nil,
			[]string{"pods/exec"}, "toll kubernetes manifest", "get"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			s.exec = func(pod string, command []string, in io.Reader, out, errOut io.Writer) error {
				n, err := io.CopyN(out, in, 1<<20)
				fmt.Fprintf(errOut, "%s, %q: after %d bytes", pod, command, n)
				return errors.Join(err, errors.New("exit code 3"))
			}
			s.instead = func(w http.ResponseWriter, r *http.Request, a asking) bool {
				s.mu.Lock()
				s.asked = append(s.asked, a)
				s.mu.Unlock()
				switch {
				case a.verb == "get":
					tt.websocket(w)
				case tt.spdy != nil:
					tt.spdy(w)
				default:
					s.streams.Add(1)
					defer s.streams.Done()
					s.spdyExec(w, r, a.name)
				}
				return true
			}
			stream, err := s.connect().exec(t.Context(), "p", "cat", "and more")
			if got := strings.Join(s.verbs("pods/exec"), " "); got != tt.verbs {
				t.Errorf("it was asked to %s, want %s", got, tt.verbs)
			}
			if tt.want != nil {
				for _, w := range append(tt.want, "") {
					if err == nil || !strings.Contains(err.Error(), w) || !plain(err.Error()) ||
						!strings.Contains(hint(err), tt.hint) {
						t.Errorf("%q; hint: %s; want %q", err, hint(err), w)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sent := strings.Repeat("0123456789abcde\x00", 1<<16)
			go func() { _, _ = io.WriteString(stream, sent) }()
			got, err := io.ReadAll(stream)
			if err != nil || string(got) != sent {
				t.Errorf("%d of %d bytes came back: %v", len(got), len(sent), err)
			}
			if over := stream.over("p"); over == nil {
				t.Error("it goes on")
			}
			if end := stream.ended(); end == nil || !strings.Contains(end.Error(), "exit code 3") ||
				!strings.Contains(end.Error(), "after 1048576 bytes") {
				t.Errorf("it ended by %v", end)
			}
			if err := stream.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func newTestStream() *stream { return &stream{said: &local.Tail{}} }
