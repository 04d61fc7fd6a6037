package kubernetes

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
)

// agentIn starts an agent in a pod. It sends the key on the stream, because arguments are visible
// in process lists and audit logs.
func (r *run) agentIn(ctx context.Context, pod, name string) (*agent.Agent, error) {
	fail := func(err error) error { return fmt.Errorf("%s: start an agent: %w", name, err) }
	s, err := r.client.exec(ctx, pod, dockerapi.InImage, agent.Arg, "--stdio", pod)
	if err != nil {
		return nil, err
	}
	r.making.Lock()
	r.streams = append(r.streams, s)
	r.making.Unlock()
	late := time.AfterFunc(execLimit, func() { _ = s.Close() })
	defer late.Stop()
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	in := bufio.NewReader(s)
	want := pod + " agent"
	for line := ""; strings.TrimSpace(line) != want; {
		if line, err = in.ReadString('\n'); err != nil {
			return nil, errors.Join(fail(r.silent(ctx, s, err)), s.Close())
		}
	}
	bundle := r.key.Bundle()
	if _, err := fmt.Fprintf(s, "%d %s\n%s", len(bundle), name, bundle); err != nil {
		return nil, errors.Join(fail(err), s.Close())
	}
	carrier, err := agent.AtHub(struct {
		io.Reader
		io.Writer
		io.Closer
	}{in, s, s})
	if err != nil {
		return nil, errors.Join(fail(err), s.Close())
	}
	if err := r.hub.Serve(&carried{carrier, func() error {
		return s.over(fmt.Sprintf("%s (%s)", pod, name))
	}}); err != nil {
		return nil, errors.Join(fail(err), s.Close())
	}
	wait, cancel := context.WithTimeoutCause(ctx, execLimit, errSilent)
	defer cancel()
	go func() {
		select {
		case <-carrier.CloseChan():
			cancel()
		case <-wait.Done():
		}
	}()
	a, err := r.hub.Wait(wait, pod)
	if err != nil {
		if end := s.ended(); end != nil {
			err = end
		}
		return nil, errors.Join(fail(err), s.Close())
	}
	return a, nil
}

// carried adds the reason why the stream ended to the errors of a carrier's connections.
type carried struct {
	*agent.Carrier
	why func() error // returns nil while the stream continues
}

func (c *carried) Accept() (net.Conn, error) {
	conn, err := c.Carrier.Accept()
	if err != nil {
		return nil, err
	}
	return &explained{conn, c.why}, nil
}

type explained struct {
	net.Conn
	why func() error
}

func (e *explained) Read(b []byte) (int, error) {
	n, err := e.Conn.Read(b)
	return n, e.explain(err)
}

func (e *explained) Write(b []byte) (int, error) {
	n, err := e.Conn.Write(b)
	return n, e.explain(err)
}

func (e *explained) explain(err error) error {
	if err == nil {
		return nil
	}
	return cmp.Or(e.why(), err)
}

var errSilent = errors.New("the agent sent nothing")

func (r *run) silent(ctx context.Context, s *stream, err error) error {
	switch end := s.ended(); {
	case end != nil:
		return end
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.ErrClosedPipe):
		return errSilent
	}
	return err
}
