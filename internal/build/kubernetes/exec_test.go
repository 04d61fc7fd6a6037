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

	"github.com/bridgetoll/bridgetoll/internal/build/path/local"
)

// What goes into a command and comes out of it is the same bytes, however many at once; how it ended is known.
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
	end := stream.ended()
	if end == nil || !strings.Contains(end.Error(), "exit code 3") || !strings.Contains(end.Error(), "after 3145728 bytes") || !plain(end.Error()) {
		t.Errorf("it ended by %q", end)
	}
}

// A stream that the server breaks off, or that says what no protocol has, ends.
func TestExecBroken(t *testing.T) {
	for name, say := range map[string]func(c *websocket.Conn){
		"closed":     func(c *websocket.Conn) { c.Close() },
		"text":       func(c *websocket.Conn) { _ = c.WriteMessage(websocket.TextMessage, []byte("\x01x")) },
		"empty":      func(c *websocket.Conn) { _ = c.WriteMessage(websocket.BinaryMessage, nil) },
		"no-channel": func(c *websocket.Conn) { _ = c.WriteMessage(websocket.BinaryMessage, []byte{200, 1, 2}) },
		"odd-status": func(c *websocket.Conn) { _ = c.WriteMessage(websocket.BinaryMessage, []byte("\x03{\x1b[2J")) },
		"close-code": func(c *websocket.Conn) { _ = c.WriteMessage(websocket.CloseMessage, []byte{0}) },
		"a-huge-one": func(c *websocket.Conn) { _ = c.WriteMessage(websocket.BinaryMessage, make([]byte, 64<<20)) },
		"never-ending": func(c *websocket.Conn) {
			for c.WriteMessage(websocket.BinaryMessage, append([]byte{stderr}, make([]byte, 1<<20)...)) == nil {
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
			if _, err := io.Copy(io.Discard, bufio.NewReader(stream)); err != nil && !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("it is read to %v", err)
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

// A server that does not let a command start says why.
func TestExecRefused(t *testing.T) {
	s := newAPIServer(t)
	s.instead = func(w http.ResponseWriter, _ *http.Request, a asking) bool {
		reply(w, forbidden(a))
		return true
	}
	_, err := s.connect().exec(t.Context(), "p", "x")
	if err == nil || !strings.Contains(err.Error(), "pods/exec") || !plain(err.Error()) || !strings.Contains(hint(err), "toll kubernetes manifest") {
		t.Errorf("%v; hint: %s", err, hint(err))
	}
}

func newTestStream() *stream { return &stream{said: &local.Tail{}} }
