package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// startLimit limits the wait for the connection of a started process.
const startLimit = 5 * time.Second

// Start starts toll at the agent, as a worker or a keeper of programs.
func (a *Agent) Start(c path.Command) (*path.Process, error) {
	fail := func(err error) (*path.Process, error) {
		return nil, fmt.Errorf("start in %s: %w", a.hello.Name, err)
	}
	s, err := a.hub.expect()
	if err != nil {
		return fail(err)
	}
	defer s.forget()
	p := &remote{agent: a, number: a.number(), done: make(chan struct{})}
	a.mu.Lock()
	if err = a.err; err == nil {
		a.procs[p.number] = p
	}
	a.mu.Unlock()
	if err != nil {
		return nil, err
	}
	ans, err := a.ask(context.Background(),
		request{Start: &startRequest{p.number, s.token, c.Args, c.Env, c.Apart}}, 0)
	if err != nil {
		a.release(p)
		return nil, err
	}
	select {
	case came := <-s.came:
		p.hold(came)
	case <-a.lost:
		return nil, a.Err()
	case <-time.After(startLimit):
		_ = p.kill()
		a.release(p)
		return fail(fmt.Errorf("its input and output were not connected within %s", startLimit))
	}
	return &path.Process{PID: ans.PID, In: input{p.stream}, Out: p.stream, Wait: p.wait,
		Kill: p.kill}, nil
}

func (a *Agent) release(p *remote) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.procs, p.number)
}

func (a *Agent) ended(n exitNote) {
	a.mu.Lock()
	p := a.procs[n.Number]
	delete(a.procs, n.Number)
	a.mu.Unlock()
	switch {
	case p == nil:
	case n.Error == "":
		p.end(nil)
	default:
		p.end(errors.New(n.Error))
	}
}

type remote struct {
	agent  *Agent
	number uint64
	done   chan struct{}

	mu     sync.Mutex
	over   bool
	err    error
	stream *stream
	gone   bool // further streams are refused
}

func (p *remote) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.over, p.err = true, err
		close(p.done)
	}
}

// hold sets the process's stream, and closes it if the agent is already lost.
func (p *remote) hold(s *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stream = s
	if p.gone {
		_ = s.Close()
	}
}

func (p *remote) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	if p.stream != nil {
		_ = p.stream.Close()
	}
}

func (p *remote) wait() error {
	<-p.done
	return p.err
}

// kill kills the process. It returns nil if the agent is lost, because its processes die with it.
func (p *remote) kill() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	_, err := p.agent.ask(context.Background(), request{Kill: p.number}, 0)
	if p.agent.Err() != nil {
		return nil //nolint:nilerr // it died with the agent
	}
	if err == nil {
		time.AfterFunc(p.agent.hub.silence, func() {
			p.end(fmt.Errorf("%s did not report its exit status", p.agent.hello.Name))
			p.agent.release(p)
		})
	}
	return err
}

type stream struct {
	conn interface {
		net.Conn
		CloseWrite() error
	}
	in  *bufio.Reader
	raw net.Conn
	hub *Hub
}

func (s *stream) Read(b []byte) (int, error) { return s.in.Read(b) }

func (s *stream) Close() error {
	s.hub.drop(s.raw)
	return nil
}

// input is the process's standard input. Closing it leaves the output open.
type input struct{ s *stream }

func (i input) Write(b []byte) (int, error) {
	if err := i.s.conn.SetWriteDeadline(time.Now().Add(i.s.hub.silence)); err != nil {
		return 0, err
	}
	return i.s.conn.Write(b)
}

func (i input) Close() error { return i.s.conn.CloseWrite() }
