package agent

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

type child struct {
	*path.Process
	conn *tls.Conn
}

// start connects to the hub, then starts the process. If the connection fails, it starts nothing.
func (s *server) start(o startRequest) (pid int, err error) {
	if !slices.Contains(s.config.Starts, o.Args[0]) {
		return 0, fmt.Errorf("an agent may not start %q", clean(o.Args[0]))
	}
	conn, err := s.dial(context.Background(), s.hub, opening{Token: o.Token})
	if err != nil {
		return 0, fmt.Errorf("connect the process: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.children[o.Number] != nil {
		_ = conn.Close()
		return 0, errors.New("the agent is exiting, or the process number is in use")
	}
	p, err := local.StartSelf(s.here, s.config.Name,
		path.Command{Args: o.Args, Env: o.Env, Apart: o.Apart})
	if err != nil {
		_ = conn.Close()
		if o.Apart {
			err = needs(capAdmin, err)
		}
		return 0, err
	}
	c := &child{p, conn.Conn}
	s.children[o.Number] = c
	s.tasks.Go(func() { s.attend(o.Number, c, conn.in) })
	return p.PID, nil
}

func (s *server) attend(number uint64, c *child, in *bufio.Reader) {
	heard, said := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(heard)
		_, _ = io.Copy(c.In, in)
		_ = c.In.Close()
	}()
	go func() {
		defer close(said)
		s.relay(c)
	}()
	note := exitNote{Number: number}
	if err := c.Wait(); err != nil {
		note.Error = err.Error()
	}
	within(said) // a process that it left behind may keep the output open
	c.Out.Close()
	s.mu.Lock()
	delete(s.children, number)
	s.mu.Unlock()
	select {
	case <-heard: // the input has ended: close the output before the note is sent
		_ = c.conn.Close()
	default:
	}
	_ = s.line.send(answer{Exit: &note})
	within(heard)
	_ = c.conn.Close()
}

func within(done <-chan struct{}) {
	select {
	case <-done:
	case <-time.After(lastWords):
	}
}

func (s *server) relay(c *child) {
	const chunk = 32 << 10
	buf := make([]byte, chunk)
	for {
		n, err := c.Out.Read(buf)
		if n > 0 {
			s.word()
			if err := c.conn.SetWriteDeadline(time.Now().Add(s.silence)); err != nil {
				return
			}
			if _, err := c.conn.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			_ = c.conn.CloseWrite()
			return
		}
	}
}

func (s *server) kill(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.children[number]; c != nil {
		_ = c.Kill()
		_ = c.conn.Close()
	}
}

func (s *server) killAll() {
	s.mu.Lock()
	s.over = true
	for _, c := range s.children {
		_ = c.Kill()
		_ = c.conn.Close()
	}
	s.mu.Unlock()
	gone := make(chan struct{})
	go func() { s.tasks.Wait(); close(gone) }()
	within(gone)
}
