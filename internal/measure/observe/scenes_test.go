package observe

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// A docker-proxy takes little of a response.
func TestDockerProxy(t *testing.T) {
	const n = 24
	client, other := joined(t)
	var server truth
	other.serve(t, "127.0.0.1:7001", model(&server, bursty, false))
	dockerProxy(t, other, "tcp", "10.9.0.2", 7002, "127.0.0.1", 7001)
	k := follow(t, client, "http://10.9.0.2:7002", n)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, all := k.visit(u, 2, 2)
		if why, ok := e.Clear(); !ok || e.Matched != 4*n || len(e.Hops) != 2 ||
			e.Hops[1].Process != "docker-proxy" {
			u.Fatalf("%s: %+v", why, e)
		}
		like(u, e, divided(u, all, &server), 5)
	})
}

// The queue of a router between server and client, which others fill, is the wire's.
func TestFullRouter(t *testing.T) {
	const n = 12
	client, router, other := routed(t)
	var server truth
	other.serve(t, "10.9.1.2:7001", model(&server, steady(40*ms), false))
	client.serve(t, "10.9.0.1:7003", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	err := router.Do(func() error { return link.SetShape("c", link.Shape{Rate: 20e6}) })
	if err != nil {
		t.Fatal(err)
	}
	k := follow(t, client, "http://10.9.1.2:7001", n)
	defer router.fill(t, "10.9.0.1:7003")()
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, all := k.visit(u, 1, 2)
		if why, ok := e.Clear(); !ok || e.Matched != 2*n || len(e.Hops) != 1 {
			u.Fatalf("%s: %+v", why, e)
		}
		like(u, e, divided(u, all, &server), 5)
		wire := part(e, sample.EvidenceWire)
		if rest := part(e, sample.EvidenceTCP).Last + part(e, sample.EvidenceQueue).Last +
			part(e, sample.EvidenceClient).Last; wire.Last < 5e-3 || rest > wire.Last/4 {
			u.Errorf("the wire has %v s, others %v", wire.Last, rest)
		}
	})
}

// seldom reads no sooner than a time after its last read.
type seldom struct {
	net.Conn
	rest time.Duration
	last time.Time
}

func (c *seldom) Read(b []byte) (int, error) {
	time.Sleep(time.Until(c.last.Add(c.rest)))
	n, err := c.Conn.Read(b)
	c.last = time.Now()
	return n, err
}

// A client that reads seldom has the time that tokens wait for it.
func TestSlowClient(t *testing.T) {
	const n = 24
	m := newMachine(t)
	var server truth
	m.serve(t, "127.0.0.1:7001", model(&server, steady(10*ms), false))
	k := followBy(t, m, "http://127.0.0.1:7001", n, func(ctx context.Context, network, addr string) (
		net.Conn, vantage.Took, error) {
		c, took, err := m.dial(ctx, network, addr)
		return &seldom{Conn: c, rest: 60 * ms}, took, err
	})
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, all := k.visit(u, 1, 2)
		if why, ok := e.Clear(); !ok || e.Matched != 2*n {
			u.Fatalf("%s: %+v", why, e)
		}
		like(u, e, divided(u, all, &server), 5)
		if c := part(e, sample.EvidenceClient); c.P50 < 10e-3 || part(e, sample.EvidenceWire).P50 > c.P50/4 {
			u.Errorf("%+v", e.Parts)
		}
	})
}
