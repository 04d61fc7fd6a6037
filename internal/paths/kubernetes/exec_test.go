package kubernetes

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
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
	if end == nil || end.Error() != "command terminated with exit code 3: after 3145728 "+
		"bytes: \\x1b[31mred" || !plain(end.Error()) {
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
	if err == nil || err.Error() != "you may not get pods/exec in namespace measured "+
		"(403): pods/exec is forbidden: User \"u\" cannot get resource \"pods/exec\" "+
		"in API group \"\" in the namespace \"measured\"" || !plain(err.Error()) ||
		hint.Of(err) != "toll kubernetes manifest prints a role with the permissions that "+
			"toll needs" {
		t.Errorf("%v; hint: %s", err, hint.Of(err))
	}
}

// Between here and the API server may be a proxy.
func TestExecByProxy(t *testing.T) {
	t.Parallel()
	says := func(code int, kind, body string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	answers := func(e *apierrors.StatusError) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) { reply(w, e) }
	}
	const (
		proxied = "no exec stream to the API server at https://127.0.0.1:PORT could be opened " +
			"over " +
			"WebSocket: "
		forward = "a proxy in between must forward WebSockets, or NO_PROXY must name the API server"
		role    = "toll kubernetes manifest prints a role with the permissions that toll needs"
	)
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter)
		want   string
		hint   string
	}{
		{"proxy's-502", says(http.StatusBadGateway, "text/plain", "\x1b[2Jno upgrades here"),
			proxied + "websocket: bad handshake (502 Bad Gateway): \\x1b[2Jno upgrades here", forward},
		{"no-upgrade", says(http.StatusBadRequest, "text/plain", ""),
			proxied + "websocket: bad handshake (400 Bad Request)", forward},
		{"proxy's-404", says(http.StatusNotFound, "text/plain", "404 page not found"),
			proxied + "websocket: bad handshake (404 Not Found): 404 page not found", forward},
		{"proxy's-403", says(http.StatusForbidden, "text/html",
			"<html>\n<body>\n<b>Forbidden</b>: Unauthorized, cannot get resource \"pods/exec\": "+
				"not found</body>\n</html>"),
			proxied + "websocket: bad handshake (403 Forbidden): <html> <body> " +
				`<b>Forbidden</b>: Unauthorized, cannot get resource "pods/exec": ` +
				"not found</body> </html>", forward},
		{"proxy's-403-on-a-line", says(http.StatusForbidden, "text/html", "<b>forbidden</b>: no"),
			proxied + "the answer is not from an API server", forward},
		{"proxy's-401", says(http.StatusUnauthorized, "text/plain", "Unauthorized"),
			proxied + "websocket: bad handshake (401 Unauthorized): Unauthorized", forward},
		{"proxy's-json", says(http.StatusForbidden, "application/json", `{"message": "no"}`),
			proxied + "no", forward},
		{"no-pod", answers(apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p")),
			`pods "p" not found`, ""},
		{"not-known", answers(apierrors.NewUnauthorized("Unauthorized")),
			"the API server at https://127.0.0.1:PORT does not accept your credentials " +
				"(401): they are wrong, or have expired (Unauthorized)",
			"log in again; kubectl auth whoami must answer"},
		{"kubelet-down", answers(apierrors.NewInternalError(errors.New("error dialing backend"))),
			"get pods/exec: Internal error occurred: error dialing backend", ""},
		{"may-not-get", answers(forbidden(asking{"get", "pods/exec", "p"})),
			"you may not get pods/exec in namespace measured (403): pods/exec is forbidden: " +
				`User "u" cannot get resource "pods/exec" in API group "" in the namespace ` +
				`"measured"`, role},
		{"may-not-create", answers(forbidden(asking{"create", "pods/exec", "p"})),
			"you may not create pods/exec in namespace measured (403): pods/exec is forbidden: " +
				`User "u" cannot create resource "pods/exec" in API group "" in the namespace ` +
				`"measured"`, role},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			s.instead = func(w http.ResponseWriter, _ *http.Request, _ asking) bool {
				tt.answer(w)
				return true
			}
			_, err := s.connect().exec(t.Context(), "p", "x")
			if got := testgolden.Stable(fmt.Sprint(err)); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if got := testgolden.Stable(hint.Of(err)); got != tt.hint {
				t.Errorf("hint %q, want %q", got, tt.hint)
			}
		})
	}
}

func newTestStream() *stream { return &stream{said: &local.Tail{}} }
