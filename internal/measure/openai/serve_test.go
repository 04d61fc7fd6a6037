package openai

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// testTimeout is not reached even on a slow machine.
const testTimeout = 20 * time.Second

func endpoint(t testing.TB, url string, o Options) *Endpoint {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = testTimeout
	}
	e, err := New(url, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func session(t testing.TB, e *Endpoint) *Session {
	s := e.Open()
	t.Cleanup(s.Close)
	return s
}

// talk is a server's side of a connection: it gets each request and writes its response; the
// connection ends when it returns false.
type talk func(c net.Conn, n int, r *http.Request) bool

func (f talk) serve(c net.Conn) {
	defer c.Close()
	br := bufio.NewReader(c)
	for n := 0; ; n++ {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if !f(c, n, r) {
			return
		}
	}
}

func listen(t testing.TB, serve func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			all.Go(func() { serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return "http://" + l.Addr().String()
}

func answering(t testing.TB, raw string) string {
	return listen(t, talk(func(c net.Conn, _ int, _ *http.Request) bool {
		io.WriteString(c, raw)
		return false
	}).serve)
}

// piped makes an endpoint answer in these pieces, each in a read of its own.
func piped(e *Endpoint, pieces ...string) {
	e.dial = func(context.Context, string) (net.Conn, error) {
		client, server := net.Pipe()
		go talk(func(c net.Conn, _ int, _ *http.Request) bool {
			for _, p := range pieces {
				if _, err := io.WriteString(c, p); err != nil {
					return false
				}
			}
			return false
		}).serve(server)
		return client, nil
	}
}

const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

// inChunks puts each text and the end into chunks of their own.
func inChunks(texts ...string) string {
	var b strings.Builder
	for _, s := range texts {
		b.WriteString(inChunk(s))
	}
	return b.String() + "0\r\n\r\n"
}

func inChunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func says(word string) string {
	return fmt.Sprintf(
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":null}]}\n\n",
		word)
}

const (
	stops = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	done  = "data: [DONE]\n\n"
)

func good() string { return head + inChunks(says("a"), says("b"), says("c"), stops, done) }

func serveHTTP(t testing.TB, f http.HandlerFunc) string {
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL
}
