package observe

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// completing returns a gateway that asks the server for a whole response, and makes the stream
// itself.
func completing(g *gateway) func(net.Conn) {
	return func(c net.Conn) {
		up := &upstream{}
		defer func() {
			if up.Conn != nil {
				_ = up.Close()
			}
		}()
		prompts(c, func(p prompt) error {
			r, err := g.ask(up, p)
			if err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return err
			}
			if _, err := io.WriteString(c, streamHead); err != nil {
				return err
			}
			for i := range p.Tokens {
				if _, err := io.WriteString(c, chunkOf(event(fmt.Sprintf("t%d ", i)))); err != nil {
					return err
				}
			}
			_, err = io.WriteString(c, chunkOf(ending)+"0\r\n\r\n")
			return err
		})
	}
}

// plainly answers each prompt with a status and no stream.
func plainly(c net.Conn, status int) func(prompt) error {
	return func(prompt) error {
		const body = `{"choices":[{"message":{"content":"t0 t1 "}}]}`
		_, err := fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n%s", status, http.StatusText(status), len(body), body)
		return err
	}
}

// A gateway may ask the server for a whole response: it is not called the server for that, whether
// or not it passes on the seed.
func TestWholeResponseOfServer(t *testing.T) {
	const n = 12
	for name, blind := range map[string]bool{"with the seed": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.serve(t, "127.0.0.1:7001", func(c net.Conn) {
				prompts(c, plainly(c, http.StatusOK))
			})
			g := &gateway{machine: m, to: "127.0.0.1:7001", seedless: blind}
			m.serve(t, "127.0.0.1:7002", completing(g))
			k := follow(t, m, "http://127.0.0.1:7002", n)
			for range 2 {
				e, _ := k.visit(t, 1, 2)
				if why, ok := e.Clear(); ok || !strings.HasPrefix(why, "no stream was seen at the server") ||
					len(e.Hops) != 2 || e.Hops[0].Port != 7001 {
					t.Errorf("%q: %+v", why, e)
				}
			}
		})
	}
}

// A server that refused all requests of a visit, which a gateway answered in its place, is back
// once it answers them.
func TestServerIsBack(t *testing.T) {
	const n = 12
	m := newMachine(t)
	var refuses atomic.Bool
	m.serve(t, "127.0.0.1:7001", func(c net.Conn) {
		answer := model(&truth{}, steady(5*ms), false)
		if refuses.Load() {
			answer = func(c net.Conn) { prompts(c, plainly(c, http.StatusServiceUnavailable)) }
		}
		answer(c)
	})
	g := &gateway{machine: m, to: "127.0.0.1:7001", log: &truth{}, write: passOn}
	m.serve(t, "127.0.0.1:7002", func(c net.Conn) {
		if refuses.Load() {
			completing(g)(c)
			return
		}
		g.serve(c)
	})
	refuses.Store(true)
	k := follow(t, m, "http://127.0.0.1:7002", n)
	e, _ := k.visit(t, 1, 2)
	if why, ok := e.Clear(); !ok || len(e.Hops) != 1 || e.Hops[0].Port != 7002 {
		t.Errorf("%s: %+v", why, e)
	}
	refuses.Store(false)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, _ := k.visit(u, 1, 2)
		whole(u, e, 2*n)
	})
}
