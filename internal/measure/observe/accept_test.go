package observe

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// crowded opens connections to a server at once, which accepts them when a queue of its namespace has
// overflowed, unless its backlog suffices. stop ends them.
type crowded struct {
	*machine
	at       string
	overflow bool
	accept   chan struct{}
}

func newCrowded(t *testing.T, backlog int, overflow bool) *crowded {
	t.Helper()
	c := &crowded{newMachine(t), "127.0.0.1:7001", overflow, make(chan struct{})}
	var l net.Listener
	err := c.Do(func() (err error) {
		if l, err = net.Listen("tcp", c.at); err != nil {
			return err
		}
		raw, err := l.(*net.TCPListener).SyscallConn()
		if err != nil {
			return err
		}
		errControl := raw.Control(func(fd uintptr) { err = unix.Listen(int(fd), backlog) })
		return errors.Join(err, errControl)
	})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-c.accept:
		case <-t.Context().Done():
		}
		testnet.Accept(l, lines(0, false))
	}()
	t.Cleanup(func() {
		l.Close()
		<-over
	})
	return c
}

// comes makes a request over each of many connections that are opened at once.
func (c *crowded) comes(t *testing.T) error {
	errs := make([]error, 16)
	var asked sync.WaitGroup
	for i := range errs {
		asked.Go(func() {
			conn, err := c.dials()
			if err == nil {
				_, err = io.WriteString(conn, "request\n")
			}
			if err == nil {
				_, err = bufio.NewReader(conn).ReadString('\n')
				err = errors.Join(err, conn.Close())
			}
			errs[i] = err
		})
	}
	if c.overflow {
		testwait.Until(t, patience, "a full queue", func() (full bool) {
			err := netns.Visit(c.pid, func() error {
				n, err := sock.Overflows()
				full = n > 0
				return err
			})
			return err != nil || full
		})
	}
	close(c.accept)
	asked.Wait()
	return errors.Join(errs...)
}

// dials opens a connection. Unlike dial it lets others do so meanwhile.
func (c *crowded) dials() (conn net.Conn, err error) {
	errVisit := netns.Visit(c.pid, func() error {
		conn, err = net.Dial("tcp", c.at)
		return err
	})
	return conn, errVisit
}

const few = 4 // toll itself opens some connections, which nobody accepts

// queued compares a queue with what was planted.
func queued(t *testing.T, got []sample.AcceptQueue, overflow bool) {
	t.Helper()
	switch {
	case overflow != (len(got) == 1):
		t.Errorf("%+v", got)
	case overflow && (got[0].Dropped < 1 || got[0].Backlog != few || got[0].Most < 1 ||
		got[0].Port != 7001 || !got[0].Apart):
		t.Errorf("%+v", got[0])
	}
}

// TestFullAcceptQueue lets more connections come than wait until they are accepted, or fewer.
func TestFullAcceptQueue(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	for name, tt := range map[string]struct {
		backlog  int
		overflow bool
	}{"full": {few, true}, "long": {64, false}} {
		t.Run(name+", attached", func(t *testing.T) {
			c := newCrowded(t, tt.backlog, tt.overflow)
			s, err := attach(t.Context(), c.pid, probing(c.dials))
			if err != nil {
				t.Fatal(err)
			}
			ctx, end := context.WithCancel(t.Context())
			defer end()
			var got *sample.Served
			watched := make(chan error, 1)
			go func() {
				var err error
				got, err = s.watch(ctx, time.Hour)
				watched <- errors.Join(err, s.Close())
			}()
			err = c.comes(t)
			end()
			if err := errors.Join(err, <-watched); err != nil {
				t.Fatal(err)
			}
			var all []sample.AcceptQueue
			if got.Queue != nil {
				all = append(all, *got.Queue)
			}
			queued(t, all, tt.overflow)
		})
		t.Run(name+", route", func(t *testing.T) {
			c := newCrowded(t, tt.backlog, tt.overflow)
			way, err := Find(t.Context(), c.pid, probing(c.dials))
			if err != nil {
				t.Fatal(err)
			}
			defer way.Close()
			way.Slots = 1
			got, err := way.Follow(1, func() ([]tokens.Exchange, error) { return nil, c.comes(t) })
			if err != nil {
				t.Fatal(err)
			}
			queued(t, got.Queues, tt.overflow)
			if again := way.queues(); len(again) > 0 {
				t.Errorf("it was full once, and counts again: %+v", again)
			}
		})
	}
}
