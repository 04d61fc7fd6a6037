package agent

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

type pipes struct {
	t    *testing.T
	says string

	mu    sync.Mutex
	boxes map[uint64]context.CancelFunc
	err   error
}

func (e *pipes) Ready(context.Context) (string, error) { return "Docker Engine 1", e.err }

func (e *pipes) Make(_ context.Context, b Box) (io.ReadWriteCloser, error) {
	here, there := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	e.mu.Lock()
	e.boxes[b.Number] = cancel
	e.mu.Unlock()
	go func() {
		defer there.Close()
		_, _ = io.WriteString(there, e.says+"\n"+b.ID+" "+Arg+"\n")
		in := bufio.NewReader(there)
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		length, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.Atoi(length)
		bundle := make([]byte, n)
		if _, err := io.ReadFull(in, bundle); err != nil {
			return
		}
		c, err := AtAgent(struct {
			io.Reader
			io.WriteCloser
		}{in, there})
		if err != nil {
			return
		}
		_ = Main(ctx, Config{Bundle: bundle, Open: c.Open, ID: b.ID, Name: name,
			Version: testVersion, Starts: []string{echoArg}})
	}()
	return here, nil
}

func (e *pipes) Remove(number uint64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if cancel := e.boxes[number]; cancel != nil {
		cancel()
	}
	delete(e.boxes, number)
	return nil
}

func (e *pipes) Close() error { return nil }

func (e *pipes) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.boxes)
}

func TestBoxes(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	h, err := Listen(netip.MustParseAddrPort("127.0.0.1:0"), key, testVersion)
	if err != nil {
		t.Fatal(err)
	}
	e := &pipes{t: t, boxes: map[uint64]context.CancelFunc{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Main(ctx, Config{Bundle: key.Bundle(), ID: "b", Name: "peer b",
			Version: testVersion, Engine: e,
			Open: func() (net.Conn, error) { return net.Dial("tcp", h.Addr().String()) }})
	}()
	defer func() {
		cancel()
		<-ended
		_ = h.Close()
	}()
	a, err := h.Wait(bounded(t), "b")
	if err != nil {
		t.Fatal(err)
	}
	if name, err := a.Boxes(bounded(t)); err != nil || name != "Docker Engine 1" {
		t.Errorf("%q, %v", name, err)
	}
	inner, remove, err := a.MakeBox(bounded(t), Box{Name: "client container on peer b"})
	if err != nil {
		t.Fatal(err)
	}
	if inner.Name() != "client container on peer b" || inner.Hello().Boot != a.Hello().Boot {
		t.Errorf("%+v", inner.Hello())
	}
	p, err := inner.Start(path.Command{Args: []string{echoArg}})
	if err != nil {
		t.Fatal(err)
	}
	const said = "through two agents\n"
	if _, err := io.WriteString(p.In, said); err != nil {
		t.Error(err)
	}
	if err := p.In.Close(); err != nil { // ends one direction only
		t.Error(err)
	}
	if got, err := io.ReadAll(p.Out); err != nil || string(got) != said {
		t.Errorf("%q, %v", got, err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if err := remove(); err != nil || e.count() != 0 || inner.Err() == nil {
		t.Errorf("%v, %d boxes, agent: %v", err, e.count(), inner.Err())
	}

	e.says = strings.Repeat("hello\n", 200)
	if _, _, err := a.MakeBox(bounded(t), Box{Name: "noise"}); err == nil ||
		err.Error() != "peer b: noise: protocol error: no agent in 100 lines" {
		t.Errorf("noise is an agent: %v", err)
	}
	testwait.Until(t, testTime, "it is removed", func() bool { return e.count() == 0 })
	e.err = &machine.UnsupportedError{Missing: "no Docker\x1b[2J", Remedy: "install it"}
	var u *machine.UnsupportedError
	if _, err := a.Boxes(bounded(t)); !errors.As(err, &u) ||
		u.Missing != `peer b: no Docker\x1b[2J` || u.Remedy != "install it" {
		t.Errorf("%v", err)
	}
}
