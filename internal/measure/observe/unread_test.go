package observe

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// labelled is a connection over which a model or gateway says that it compresses its responses.
type labelled struct{ net.Conn }

func (c labelled) Write(b []byte) (int, error) {
	if string(b) != streamHead {
		return c.Conn.Write(b)
	}
	_, err := io.WriteString(c.Conn, strings.TrimSuffix(streamHead, "\r\n")+
		"Content-Encoding: br\r\n\r\n")
	return len(b), err
}

// unread fails unless no token was followed because of what the hop at a port does.
func unread(t *testing.T, k *talk, port uint16, does string) {
	t.Helper()
	for range 2 {
		e, _ := k.visit(t, 2, 1)
		why, ok := e.Clear()
		if want := fmt.Sprintf(" at port %d %s, which toll cannot read", port, does); ok ||
			!strings.HasSuffix(why, want) {
			t.Errorf("%q, want %q: %+v", why, want, e)
		}
	}
}

// The server or relay that compresses its responses as toll cannot read them is named.
func TestUnreadCoding(t *testing.T) {
	const n, does = 12, "compresses its responses with br"
	for name, by := range map[string]uint16{"server": 7001, "relay": 7002} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			coded := func(port uint16, serve func(net.Conn)) func(net.Conn) {
				if port != by {
					return serve
				}
				return func(c net.Conn) { serve(labelled{c}) }
			}
			m.serve(t, "127.0.0.1:7001", coded(7001, model(&truth{}, steady(2*ms), false)))
			a := &gateway{machine: m, to: "127.0.0.1:7001", log: &truth{}, write: passOn}
			m.serve(t, "127.0.0.1:7002", coded(7002, a.serve))
			b := &gateway{machine: m, to: "127.0.0.1:7002", log: &truth{}, write: passOn}
			m.serve(t, "127.0.0.1:7003", b.serve)
			unread(t, follow(t, m, "http://127.0.0.1:7003", n), by, does)
		})
	}
}

// A gateway may ask its server over HTTP/2, several requests on one connection. Headers are not
// read: if the content has another coding than gzip, there is no verdict.
func TestHTTP2(t *testing.T) {
	const n = 12
	for _, coding := range []string{"", "gzip", "lines", "hex"} {
		t.Run("coding "+coding, func(t *testing.T) {
			m := newMachine(t)
			var server truth
			protocols := serveHTTP2(t, m, n, coding, &server)
			client := &http.Client{Transport: &http.Transport{Protocols: protocols,
				DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
					c, _, err := m.dial(ctx, network, addr)
					return c, err
				}}}
			t.Cleanup(client.CloseIdleConnections)
			g := &gateway{log: &truth{}, write: slowly}
			m.serve(t, "127.0.0.1:7002", func(c net.Conn) {
				prompts(c, func(p prompt) error {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
						"http://127.0.0.1:7001", strings.NewReader(string(p.body)))
					if err != nil {
						return err
					}
					r.Header.Set("X-Request-Id", p.id)
					got, err := client.Do(r)
					if err != nil {
						return err
					}
					defer got.Body.Close()
					var body io.Reader = got.Body
					if coding == "hex" {
						body = hex.NewDecoder(body)
					}
					return g.relay(c, p, body)
				})
			})
			k := follow(t, m, "http://127.0.0.1:7002", n)
			if coding == "hex" {
				unread(t, k, 7001, "may answer over HTTP/2 with something else than events, lines of JSON or "+
					"their gzip")
				return
			}
			testwait.Unhindered(t, patience, func(u testing.TB) {
				e, all := k.visit(u, 3, 2)
				if whole(u, e, 6*n); e.BySeed != 6 || e.Hops[0].Unread != "" {
					u.Errorf("%+v", e)
				}
				like(u, e, divided(u, all, &server, g.log), 5)
			})
		})
	}
}

// A gateway that asks its server over TLS counts as the server, and says so.
func TestAsksOverTLS(t *testing.T) {
	const n = 12
	m := newMachine(t)
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	config := &tls.Config{Certificates: s.TLS.Certificates}
	answer := model(&truth{}, steady(40*ms), false)
	m.serve(t, "127.0.0.1:7443", func(c net.Conn) { answer(tls.Server(c, config)) })
	m.serve(t, "127.0.0.1:7001", answer)
	for name, asks := range map[string]string{"TLS": "127.0.0.1:7443",
		"TLS, closed after it": "127.0.0.1:7443", "no TLS": ""} {
		t.Run(name, func(t *testing.T) {
			up := &upstream{}
			connect := func() {
				c, _, err := m.dial(t.Context(), "tcp", cmp.Or(asks, "127.0.0.1:7001"))
				if err != nil {
					t.Error(err)
					return
				}
				if asks != "" {
					c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
				}
				up.Conn, up.br = c, bufio.NewReader(c)
			}
			connect()
			g := &gateway{kept: up}
			if name == "TLS, closed after it" {
				g.first = func(prompt, *upstream) error {
					time.Sleep(50 * ms) // it asks later than the client is looked for
					connect()
					return nil
				}
				g.answered = func(prompt) error { return up.Close() }
			}
			k := gatewayAt(t, m, n, g)
			testwait.Unhindered(t, patience, func(u testing.TB) { // its socket is found while it is open
				e, _ := k.visit(u, 1, 1)
				if why, ok := e.Clear(); !ok || e.Hops[0].Asks != asks ||
					len(e.Hops) > 1 != (asks == "") {
					u.Errorf("%s: %+v", why, e)
				}
				k = follow(u, m, "http://127.0.0.1:7002", n)
			})
		})
	}
}

// serveHTTP2 serves a model of n tokens at port 7001 of a machine over HTTP/2 only. It returns the
// protocols for clients.
func serveHTTP2(t *testing.T, m *machine, n int, coding string, log *truth) *http.Protocols {
	t.Helper()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	var l net.Listener
	err := m.Do(func() (err error) {
		l, err = listen("127.0.0.1:7001")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	answer := func(w http.ResponseWriter, r *http.Request) {
		var p prompt
		_ = json.NewDecoder(r.Body).Decode(&p)
		var to io.Writer = w
		flush := func() { w.(http.Flusher).Flush() }
		switch coding {
		case "gzip":
			w.Header().Set("Content-Encoding", coding)
			z := gzip.NewWriter(w)
			defer z.Close()
			to, flush = z, func() { _ = z.Flush(); w.(http.Flusher).Flush() }
		case "hex":
			to = hex.NewEncoder(w)
		}
		one, last := event, ending
		if coding == "lines" { // of JSON
			one = func(s string) string { return fmt.Sprintf("{\"message\":{\"content\":%q}}\n", s) }
			last = "{\"done\":true}\n"
		}
		var at []int64
		for i := range n {
			time.Sleep(5 * ms)
			at = append(at, time.Now().UnixNano())
			_, _ = io.WriteString(to, one(fmt.Sprintf("t%d ", i)))
			flush()
		}
		log.note(p.Seed, at)
		_, _ = io.WriteString(to, last)
		flush()
	}
	server := &http.Server{Protocols: &protocols, ReadHeaderTimeout: patience,
		Handler: http.HandlerFunc(answer)}
	var over sync.WaitGroup
	over.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = server.Close()
		over.Wait()
	})
	return &protocols
}

// A database and another service that a gateway asks before it asks the server, and a collector of
// logs that it tells of a request, are no hops.
func TestToldOfRequests(t *testing.T) {
	const n = 12
	told := func(m *machine, text func(p prompt) string, replies string) func(prompt) error {
		return func(p prompt) error {
			c, _, err := m.dial(context.Background(), "tcp", "127.0.0.1:7005")
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := io.WriteString(c, text(p)); err != nil {
				return err
			}
			_, err = io.ReadFull(c, make([]byte, len(replies)))
			return err
		}
	}
	redis := func(p prompt) string {
		key := "rate:" + p.id
		return fmt.Sprintf("*2\r\n$4\r\nINCR\r\n$%d\r\n%s\r\n", len(key), key)
	}
	log := func(p prompt) string {
		return fmt.Sprintf("POST /logs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(p.body),
			p.body)
	}
	const one, accepted = ":1\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
	for name, tt := range map[string]struct {
		replies string
		set     func(m *machine, g *gateway)
	}{
		"Redis": {one, func(m *machine, g *gateway) {
			ask := told(m, redis, one)
			g.first = func(p prompt, _ *upstream) error { return ask(p) }
		}},
		"a search for documents": {accepted, func(m *machine, g *gateway) {
			ask := told(m, log, accepted)
			g.first = func(p prompt, _ *upstream) error { return ask(p) }
		}},
		"a collector": {accepted, func(m *machine, g *gateway) { g.answered = told(m, log, accepted) }},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			var server truth
			// The logs have the gateway's asking in the server's time: it must be short beside that.
			m.serve(t, "127.0.0.1:7001", model(&server, steady(40*ms), false))
			m.serve(t, "127.0.0.1:7005", func(c net.Conn) {
				for b := make([]byte, 64<<10); ; {
					if _, err := c.Read(b); err != nil {
						return
					}
					_, _ = io.WriteString(c, tt.replies)
				}
			})
			g := &gateway{}
			tt.set(m, g)
			k := gatewayAt(t, m, n, g)
			testwait.Unhindered(t, patience, func(u testing.TB) {
				k.visit(u, 1, 1) // after which the server's writes are seen
				e, all := k.visit(u, 2, 2)
				whole(u, e, 4*n)
				like(u, e, divided(u, all, &server, g.log), 5)
			})
		})
	}
}

// A relay may begin connections with a header of the PROXY protocol.
func TestPROXYProtocol(t *testing.T) {
	const n = 12
	m := newMachine(t)
	var server truth
	answer := model(&server, steady(5*ms), false)
	m.serve(t, "127.0.0.1:7001", func(c net.Conn) {
		b := bufio.NewReader(c)
		if _, err := b.ReadString('\n'); err == nil {
			answer(&buffered{c, b})
		}
	})
	m.serve(t, "127.0.0.1:7002", func(c net.Conn) {
		up, _, err := m.dial(context.Background(), "tcp", "127.0.0.1:7001")
		if err != nil {
			return
		}
		defer up.Close()
		_, _ = io.WriteString(up, "PROXY TCP4 127.0.0.1 127.0.0.1 40000 7002\r\n")
		go func() {
			_, _ = io.Copy(up, c)
			_ = up.Close()
		}()
		_, _ = io.Copy(c, up)
	})
	k := follow(t, m, "http://127.0.0.1:7002", n)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, all := k.visit(u, 2, 2)
		whole(u, e, 4*n)
		like(u, e, divided(u, all, &server), 5)
	})
}

// buffered is a connection that is read through a buffer.
type buffered struct {
	net.Conn
	*bufio.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.Reader.Read(p) }

// A gateway may translate a stream of another interface: Ollama sends lines of JSON.
func TestLinesOfJSON(t *testing.T) {
	const n = 12
	m := newMachine(t)
	var server truth
	m.serve(t, "127.0.0.1:7001", func(c net.Conn) {
		prompts(c, func(p prompt) error {
			_, err := io.WriteString(c, strings.Replace(streamHead, "text/event-stream",
				"application/x-ndjson", 1))
			var at []int64
			for i := range p.Tokens {
				time.Sleep(5 * ms)
				at = append(at, time.Now().UnixNano())
				_, _ = io.WriteString(c, chunkOf(fmt.Sprintf(
					"{\"model\":\"m\",\"message\":{\"content\":\"t%d \"},\"done\":false}\n", i)))
			}
			server.note(p.Seed, at)
			_, _ = io.WriteString(c, chunkOf("{\"model\":\"m\",\"message\":{\"content\":\"\"},\"done\":true}\n")+
				"0\r\n\r\n")
			return err
		})
	})
	g := &gateway{write: slowly}
	k := gatewayAt(t, m, n, g)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, all := k.visit(u, 1, 2)
		whole(u, e, 2*n)
		like(u, e, divided(u, all, &server, g.log), 5)
	})
}
