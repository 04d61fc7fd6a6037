package observe

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func passOn(text string, pass func(...string) error) error { return pass(text) }

// gatewayAt serves a gateway in front of a server at port 7001, and follows a client of it.
func gatewayAt(t *testing.T, m *machine, n int, g *gateway) *talk {
	t.Helper()
	g.machine, g.to, g.log = m, "127.0.0.1:7001", &truth{}
	if g.write == nil {
		g.write = passOn
	}
	if g.kept != nil {
		t.Cleanup(func() { g.kept.Close() })
	}
	m.serve(t, "127.0.0.1:7002", g.serve)
	return follow(t, m, "http://127.0.0.1:7002", n)
}

// whole fails unless all tokens of a visit were followed from a server over a gateway to the client.
func whole(u testing.TB, e *sample.Evidence, n int) {
	u.Helper()
	if why, ok := e.Clear(); !ok || e.Tokens != n || e.Matched != n || len(e.Hops) != 2 ||
		e.Hops[0].Port != 7001 || e.Others != 0 {
		u.Fatalf("%s: %+v", why, e)
	}
}

// A gateway may make other requests over the connection on which it asks the server: a reply to HEAD
// has a length, but no body.
func TestKeptConnectionOfOtherRequests(t *testing.T) {
	const n = 12
	m := newMachine(t)
	var server truth
	m.serve(t, "127.0.0.1:7001", model(&server, steady(5*ms), false))
	g := &gateway{kept: &upstream{}, first: func(_ prompt, up *upstream) error {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if _, err := fmt.Fprintf(up, "%s /health HTTP/1.1\r\nHost: x\r\n\r\n", method); err != nil {
				return err
			}
			r, err := http.ReadResponse(up.br, &http.Request{Method: method})
			if err == nil {
				_, err = io.Copy(io.Discard, r.Body)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}}
	k := gatewayAt(t, m, n, g)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, all := k.visit(u, 1, 3)
		whole(u, e, 3*n)
		like(u, e, divided(u, all, &server, g.log), 5)
	})
}

// A gateway may ask another service first whether a request is allowed, with the request's ID: that
// service is not on the tokens' way.
func TestAuthorization(t *testing.T) {
	const n = 12
	m := newMachine(t)
	var server truth
	m.serve(t, "127.0.0.1:7001", model(&server, steady(5*ms), false))
	m.serve(t, "127.0.0.1:7005", func(c net.Conn) {
		prompts(c, func(prompt) error { return nil })
	})
	for name, later := range map[string]bool{"before": false, "afterwards": true} {
		t.Run(name, func(t *testing.T) {
			service := &upstream{}
			authorize := func(p prompt, _ *upstream) (err error) {
				service.mu.Lock()
				defer service.mu.Unlock()
				if service.Conn == nil {
					if service.Conn, _, err = m.dial(context.Background(), "tcp", "127.0.0.1:7005"); err != nil {
						return err
					}
					service.br = bufio.NewReader(service)
				}
				_, err = fmt.Fprintf(service, "GET /auth HTTP/1.1\r\nHost: x\r\nX-Request-Id: %s\r\n\r\n", p.id)
				if err != nil {
					return err
				}
				r, err := http.ReadResponse(service.br, nil)
				if err == nil {
					_, err = io.Copy(io.Discard, r.Body)
				}
				return err
			}
			g := &gateway{}
			if later {
				g.asked = authorize
			} else {
				g.first = authorize
			}
			k := gatewayAt(t, m, n, g)
			defer func() { _ = service.Close() }()
			if hops := len(k.watch.routes["r"].hops); hops != 3 {
				t.Fatalf("%d hops", hops)
			}
			testwait.Unhindered(t, patience, func(u testing.TB) {
				e, all := k.visit(u, 2, 2)
				whole(u, e, 4*n)
				like(u, e, divided(u, all, &server, g.log), 5)
				e, _ = k.visit(u, 1, 1)
				if whole(u, e, n); k.watch.writes != nil && !e.Writes {
					u.Error("the server's writes were not seen")
				}
			})
		})
	}
}

// A gateway makes a request again if the server closes the connection: what was lost by that is its
// own.
func TestRequestMadeAgain(t *testing.T) {
	const n, late = 12, 50 * ms
	m := newMachine(t)
	answer := model(&truth{}, steady(5*ms), false)
	var asked atomic.Int64
	m.serve(t, "127.0.0.1:7001", func(c net.Conn) {
		if asked.Add(1)%2 == 0 {
			answer(c)
			return
		}
		prompts(c, func(prompt) error {
			time.Sleep(late)
			_ = c.(*net.TCPConn).SetLinger(0) // it resets the connection
			return io.EOF
		})
	})
	g := &gateway{again: true}
	k := gatewayAt(t, m, n, g)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, _ := k.visit(u, 1, 1)
		whole(u, e, n)
		if r := part(e, sample.EvidenceRelay); r.First < late.Seconds() ||
			part(e, sample.EvidenceServer).First > late.Seconds() {
			u.Errorf("the gateway has %v s of the first token", r.First)
		}
	})
}

// A gateway that writes tokens in another order, or adds text, as one does that asks another server
// for the rest of a response, allows no verdict.
func TestTextOfGateway(t *testing.T) {
	const n = 12
	for name, g := range map[string]*gateway{
		"another order": {write: func() func(string, func(...string) error) error {
			var held string
			return func(text string, pass func(...string) error) error {
				switch {
				case strings.HasPrefix(text, "t3 "):
					held = text
					return nil
				case held != "":
					defer func() { held = "" }()
					return pass(text, held)
				}
				return pass(text)
			}
		}()},
		"more text": {write: passOn, end: func(pass func(...string) error) error {
			return pass("and", " more")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.serve(t, "127.0.0.1:7001", model(&truth{}, steady(2*ms), false))
			e, _ := gatewayAt(t, m, n, g).visit(t, 1, 2)
			if why, ok := e.Clear(); ok || !strings.HasPrefix(why, "only ") {
				t.Errorf("%q: %+v", why, e)
			}
		})
	}
}

// A gateway may write each token as two events.
func TestSplitTokens(t *testing.T) {
	const n = 12
	m := newMachine(t)
	m.serve(t, "127.0.0.1:7001", model(&truth{}, steady(5*ms), false))
	k := gatewayAt(t, m, n, &gateway{write: func(text string, pass func(...string) error) error {
		if err := pass(text[:1]); err != nil {
			return err
		}
		time.Sleep(10 * ms)
		return pass(text[1:])
	}})
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, _ := k.visit(u, 1, 2)
		whole(u, e, 2*n)
		if relay := part(e, sample.EvidenceRelay); relay.Last < 0.060 || relay.First < 0.010 {
			u.Errorf("the gateway has %+v", relay)
		}
	})
}

// A server that resets each connection after its response loses nothing that was seen.
func TestResetAfterResponse(t *testing.T) {
	const n = 12
	m := newMachine(t)
	var server truth
	answer := model(&server, steady(5*ms), false)
	m.serve(t, "127.0.0.1:7001", func(c net.Conn) {
		b := bufio.NewReader(c)
		one := &once{Conn: c, Reader: b}
		answer(one)
		_ = c.(*net.TCPConn).SetLinger(0)
	})
	k := follow(t, m, "http://127.0.0.1:7001", n)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, all := k.visit(u, 2, 1)
		if why, ok := e.Clear(); !ok || e.Matched != 2*n || e.ByID != 2 {
			u.Fatalf("%s: %+v", why, e)
		}
		like(u, e, divided(u, all, &server), 5)
	})
}

// once is a connection of one request.
type once struct {
	net.Conn
	*bufio.Reader
	wrote bool
}

func (o *once) Write(b []byte) (int, error) {
	o.wrote = true
	return o.Conn.Write(b)
}

func (o *once) Read(b []byte) (int, error) {
	if o.wrote {
		return 0, io.EOF
	}
	return o.Reader.Read(b)
}

// A client may use its port again for each request.
func TestPortUsedAgain(t *testing.T) {
	const n = 12
	m := newMachine(t)
	var server truth
	answer := model(&server, steady(5*ms), false)
	m.serve(t, "127.0.0.1:7001", func(c net.Conn) {
		answer(&once{Conn: c, Reader: bufio.NewReader(c)})
	})
	k := followBy(t, m, "http://127.0.0.1:7001", n, func(ctx context.Context, network, addr string) (
		c net.Conn, took vantage.Took, err error) {
		took.Began = time.Now()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50_000},
			Control: func(_, _ string, raw syscall.RawConn) error {
				return raw.Control(func(fd uintptr) {
					_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
				})
			}}
		testwait.Met(patience, func() bool { // the one before may not be closed yet
			errDo := m.Do(func() error {
				c, err = d.DialContext(ctx, network, addr)
				return err
			})
			return errDo == nil
		})
		return c, took, err
	})
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, all := k.visit(u, 1, 4)
		ports := map[uint16]bool{}
		for _, r := range all {
			ports[r.Local.Port()] = true
		}
		if why, ok := e.Clear(); !ok || e.Matched != 4*n || len(ports) != 1 {
			u.Fatalf("%s: %v, %+v", why, ports, e)
		}
		like(u, e, divided(u, all, &server), 5)
	})
}

// reading is a connection that calls read with what was read.
type reading struct {
	net.Conn
	read func([]byte)
}

func (r *reading) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.read(b[:n])
	return n, err
}

// After a server was killed in the middle of a response, and started again, its tokens are seen.
func TestServerKilled(t *testing.T) {
	const n = 24
	m := newMachine(t)
	pid := startServer(t, m, "127.0.0.1:7001")
	var kills atomic.Bool
	k := followBy(t, m, "http://127.0.0.1:7001", n, func(ctx context.Context, network, addr string) (
		net.Conn, vantage.Took, error) {
		c, took, err := m.dial(ctx, network, addr)
		return &reading{Conn: c, read: func(b []byte) {
			if bytes.Contains(b, []byte("content")) && kills.CompareAndSwap(true, false) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}}, took, err
	})
	v, err := k.watch.Begin(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	kills.Store(true)
	s := k.endpoint.Open()
	defer s.Close()
	if r, err := s.Ask(t.Context()); err == nil {
		t.Fatalf("a response of a server that was killed: %+v", r)
	}
	e, err := v.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if why, ok := e.Clear(); ok || why == "" {
		t.Errorf("%q: %+v", why, e)
	}
	startServer(t, m, "127.0.0.1:7001")
	e, _ = k.visit(t, 2, 2)
	if why, ok := e.Clear(); !ok || e.Matched != 4*n || e.Others != 0 {
		t.Errorf("%s: %+v", why, e)
	}
}

// After a relay was started again, tokens are followed through it.
func TestRelayStartedAgain(t *testing.T) {
	const n = 12
	client, other := joined(t)
	other.serve(t, "127.0.0.1:7001", model(&truth{}, steady(5*ms), false))
	var k *talk
	outer := t
	for _, name := range []string{"first", "again"} {
		t.Run(name, func(t *testing.T) {
			dockerProxy(t, other, "tcp", "10.9.0.2", 7002, "127.0.0.1", 7001)
			if k == nil {
				k = follow(outer, client, "http://10.9.0.2:7002", n)
			}
			e, _ := k.visit(t, 2, 2)
			if why, ok := e.Clear(); !ok || e.Matched != 4*n || len(e.Hops) != 2 {
				t.Errorf("%s: %+v", why, e)
			}
		})
	}
}

// Hops that answer at the same time, as a mirror of requests does, are not taken for relays of each
// other's tokens.
func TestMirror(t *testing.T) {
	const n = 8
	for name, tt := range map[string]struct{ later, routed bool }{
		"before": {}, "afterwards": {later: true}, "behind a router": {later: true, routed: true}} {
		t.Run(name, func(t *testing.T) {
			servers, m, at := (*machine)(nil), (*machine)(nil), "127.0.0.1"
			if tt.routed { // the router sees the gateway's packets leave it, too
				servers, _, m = routed(t)
				at = "10.9.0.1"
			} else {
				m = newMachine(t)
				servers = m
			}
			// Meanwhile the senders are looked for.
			startServer(t, servers, fmt.Sprintf("%s:7001 %d", at, 150*ms))
			startServer(t, servers, fmt.Sprintf("%s:7005 %d", at, 120*ms))
			mirror := func(p prompt, _ *upstream) error {
				c, _, err := m.dial(context.Background(), "tcp", at+":7005")
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nX-Request-Id: %s\r\n"+
					"Content-Length: %d\r\n\r\n%s", p.id, len(p.body), p.body)
				go func() {
					defer c.Close()
					if r, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
						_, _ = io.Copy(io.Discard, r.Body)
					}
				}()
				return err
			}
			g := &gateway{machine: m, to: at + ":7001", log: &truth{}, write: passOn, first: mirror}
			if tt.later {
				g.first, g.asked = nil, mirror
			}
			m.serve(t, "127.0.0.1:7002", g.serve)
			testwait.Unhindered(t, patience, func(u testing.TB) {
				e, _ := follow(u, m, "http://127.0.0.1:7002", n).visit(u, 1, 2)
				why, ok := e.Clear()
				if ok || !strings.Contains(why, " at port 7002 asks ") ||
					!strings.Contains(why, " at port 7001") || !strings.Contains(why, " at port 7005") ||
					!strings.HasSuffix(why, " about each request") {
					u.Errorf("%q: %+v", why, e)
				}
			})
		})
	}
}
