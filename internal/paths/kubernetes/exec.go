package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/rest"
	wstransport "k8s.io/client-go/transport/websocket"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

// execProtocol is a protocol with which an exec stream is silent during windows. client-go's own
// executor sends a ping every 5 s, and with its protocol, v5, the API server sends pings to the
// kubelet. With v4, the API server only relays bytes.
const execProtocol = "v4.channel.k8s.io"

// The first byte of each message is its channel.
const (
	stdin = iota
	stdout
	stderr
	status
)

const (
	execLimit = 30 * time.Second
	// writeLimit limits the time that a write may block.
	writeLimit = 60 * time.Second
	piece      = 32 << 10
	// mostTaken limits the size of a message, in bytes. The kubelet's messages have about 10 kB.
	mostTaken = 4 << 20
)

type stream struct {
	io.Reader // the command's output
	write     func([]byte) (int, error)
	close     func() error
	said      *local.Tail

	mu   sync.Mutex // guards the fields that follow
	end  error
	told bool // the server reported how the command ended
	gone bool // the stream has ended
}

func (s *stream) Write(b []byte) (int, error) { return s.write(b) }
func (s *stream) Close() error                { return s.close() }

// ended returns the command's error, or nil if it succeeded or its end is unknown.
func (s *stream) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

func (s *stream) endWith(err error, told bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.end, s.told = err, told
	}
}

func (s *stream) left() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
}

// over returns why the stream has ended, or nil if it has not. It returns a *path.CutError if the
// server did not report the end of the command, so the connection must have broken.
func (s *stream) over(pod string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.gone:
		return nil
	case s.told:
		return fmt.Errorf("its exec stream ended: %w", cmp.Or(s.end, errors.New("the agent exited")))
	}
	return &path.CutError{Err: fmt.Errorf("the exec stream to pod %s broke: %w", pod,
		cmp.Or(s.end, errCut))}
}

// exec runs a command in a pod. ctx limits only the start: the stream lasts until it is closed.
func (c *Client) exec(ctx context.Context, pod string, command ...string) (*stream, error) {
	to := c.rest.Post().Namespace(c.Namespace).Resource(pods).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: containerName, Command: command, Stdin: true, Stdout: true, Stderr: true},
			parameters).URL().String()
	s, err := c.execWebSocket(ctx, to)
	if no := refusal(err); no != nil {
		err = no
	} else if httpstream.IsHTTPSProxyError(err) || httpstream.IsUpgradeFailure(err) {
		// Usually a proxy between here and the API server is the cause.
		return nil, &machine.UnsupportedError{
			Missing: fmt.Sprintf(
				"no exec stream to the API server at %s could be opened over WebSocket: %s",
				said(c.Server), answer(err)),
			Remedy: "a proxy in between must forward WebSockets, or NO_PROXY must name the API server"}
	}
	return s, c.explain(ctx, "get", "pods/exec", err)
}

// answer returns the text of the response that refused an upgrade. It does not use the Status that
// client-go makes of it: client-go parses any JSON or YAML as one, even a line of HTML with a
// colon, and drops the rest.
func answer(err error) string {
	if f := (*httpstream.UpgradeFailureError)(nil); errors.As(err, &f) {
		err = f.Cause
	}
	return cmp.Or(said(err.Error()), "the answer is not from an API server")
}

// refusal returns the API server's refusal, or nil if the answer is not from an API server.
func refusal(err error) *apierrors.StatusError {
	if f := (*httpstream.UpgradeFailureError)(nil); errors.As(err, &f) {
		err = f.Cause
	}
	var e *apierrors.StatusError
	if !errors.As(err, &e) || e.ErrStatus.Status != metav1.StatusFailure ||
		e.ErrStatus.Reason == "" || e.ErrStatus.Code == 0 {
		return nil
	}
	return e
}

func (c *Client) execWebSocket(ctx context.Context, to string) (*stream, error) {
	upgrade, holder, err := wstransport.RoundTripperFor(rest.CopyConfig(c.config))
	if err != nil {
		return nil, err
	}
	limit, cancel := context.WithTimeout(ctx, execLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(limit, http.MethodGet, to, nil)
	if err != nil {
		return nil, err
	}
	conn, err := wstransport.Negotiate(upgrade, holder, req, execProtocol)
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(mostTaken)
	printed, out := io.Pipe()
	s := &stream{Reader: printed, said: &local.Tail{}}
	var mu sync.Mutex // one message at a time
	s.write = func(b []byte) (n int, err error) {
		mu.Lock()
		defer mu.Unlock()
		for len(b) > 0 {
			part := b[:min(len(b), piece)]
			if err := conn.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
				return n, err
			}
			if err := conn.WriteMessage(websocket.BinaryMessage, append([]byte{stdin}, part...)); err != nil {
				return n, broken(err)
			}
			n, b = n+len(part), b[len(part):]
		}
		return n, nil
	}
	s.close = sync.OnceValue(func() error {
		_ = printed.Close()
		return conn.Close()
	})
	go func() {
		err := s.receive(conn, out)
		s.left()
		_ = out.CloseWithError(err)
	}()
	return s, nil
}

func (s *stream) receive(conn *websocket.Conn, out io.Writer) error {
	for {
		_, message, err := conn.ReadMessage()
		switch {
		case websocket.IsCloseError(err, websocket.CloseNormalClosure):
			return io.EOF
		case err != nil:
			s.endWith(broken(err), false)
			return io.EOF
		case len(message) == 0:
			continue
		}
		switch channel, rest := message[0], message[1:]; channel {
		case stdout:
			if _, err := out.Write(rest); err != nil {
				return err // the reader was closed
			}
		case stderr:
			_, _ = s.said.Write(rest)
		case status:
			s.endWith(s.parse(rest), true)
		}
	}
}

func (s *stream) parse(text []byte) error {
	var how metav1.Status
	if err := json.Unmarshal(text, &how); err != nil {
		return fmt.Errorf("the command ended: %s", said(string(text)))
	}
	if how.Status == metav1.StatusSuccess {
		return nil
	}
	return s.ending(how.Message)
}

func (s *stream) ending(message string) error {
	if last := said(s.said.String()); last != "" {
		return fmt.Errorf("%s: %s", said(message), last)
	}
	return errors.New(said(message))
}
