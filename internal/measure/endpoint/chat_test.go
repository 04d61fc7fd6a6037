package endpoint

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

type model struct {
	*httptest.Server
	requests atomic.Int64
	conns    atomic.Int64
}

// serves starts a fake model's server. answer writes the n-th response, from 0.
func serves(t testing.TB, answer func(w stream, n int64)) *model {
	t.Helper()
	m := &model{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":[{"id":"m-1"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Server", "scripted/1")
		answer(stream{w, r}, m.requests.Add(1)-1)
	})
	m.Server = httptest.NewUnstartedServer(mux)
	m.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			m.conns.Add(1)
		}
	}
	m.Start()
	t.Cleanup(func() {
		m.CloseClientConnections()
		m.Close()
	})
	return m
}

type stream struct {
	http.ResponseWriter
	r *http.Request
}

func (s stream) says(tokens ...string) bool {
	var b strings.Builder
	for _, t := range tokens {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", t)
	}
	io.WriteString(s, b.String())
	return http.NewResponseController(s.ResponseWriter).Flush() == nil
}

func (s stream) waits(d time.Duration) bool {
	select {
	case <-s.r.Context().Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (s stream) ends() { io.WriteString(s, "data: [DONE]\n\n") }

func short(s stream, _ int64) {
	s.says("a")
	s.says("b")
	s.ends()
}

func TestVisitBatch(t *testing.T) {
	l := sample.Load{Kind: workload.Batch, Streams: 2,
		Options: sample.ChatOptions{Requests: 2, Tokens: 8}}
	for usage, tokens := range map[string]float64{`,"usage":{"completion_tokens":6}`: 6, "": 0} {
		m := serves(t, func(s stream, _ int64) {
			s.Header().Set("Content-Type", "application/json")
			io.WriteString(
				s, `{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]`+usage+`}`)
		})
		c := chat(t, openai.Options{Model: "m"}, m.URL)
		v, err := visited(t, context.Background(), c, l)
		if err != nil || v.Client.Trips != 4 || v.Client.Connections != 2 || len(v.Times) != 0 {
			t.Fatalf("%+v, %v", v, err)
		}
		f := workload.FiguresOf(v, l, sample.Shape{}).Values
		if f[workload.Words] != tokens || f[workload.ResponseTime] <= 0 ||
			(f[workload.WordRate] > 0) != (tokens > 0) || f[workload.ConnectTime] <= 0 {
			t.Errorf("%v", f)
		}
	}
	m := serves(t, short)
	c := chat(t, openai.Options{Model: "m"}, m.URL)
	if err := c.Check(context.Background()); err != nil {
		t.Error(err)
	}
	if n := m.requests.Load(); n != 1 && n != 2 { // the second one if the captures lost packets
		t.Errorf("%d requests", n)
	}
	c.Whole = true
	wants(t, c.Check(context.Background()),
		"a, a response in one piece: ask http://127.0.0.1:PORT/v1/chat/completions: the "+
			"server streams its response, although it was asked not to")
}

// Tokens and their rate are the server's count, streamed or not. Shares of events are of events.
func TestTokensAreTheServersCount(t *testing.T) {
	const tokens, usage = 12, `"usage":{"completion_tokens":12}`
	m := serves(t, func(s stream, n int64) {
		if n == 0 {
			s.says("a b c")
			s.says("d e f", "g h i")
			io.WriteString(s, "data: \n\ndata: {\"choices\":[],"+usage+"}\n\n")
			s.ends()
			return
		}
		io.WriteString(s, `{"choices":[{"message":{"content":"hello"}}],`+usage+`}`)
	})
	c := chat(t, openai.Options{Model: "m"}, m.URL)
	for _, kind := range []string{workload.Chat, workload.Batch} {
		l := sample.Load{Kind: kind, Options: sample.ChatOptions{Tokens: 64}}
		v, err := visited(t, t.Context(), c, l)
		if err != nil {
			t.Fatal(err)
		}
		f := workload.FiguresOf(v, l, sample.Shape{}).Values
		if want := tokens / f[workload.ResponseTime]; f[workload.Words] != tokens ||
			f[workload.WordRate] < want*0.999 || f[workload.WordRate] > want*1.001 {
			t.Errorf("%s: %v tokens, %v per second, want %v", kind, f[workload.Words],
				f[workload.WordRate], want)
		}
		if kind == workload.Chat && (v.Client.Counts[workload.CountEvents] != 3 ||
			f[workload.Glued] < 2./3 || f[workload.Glued] > 1 ||
			f[workload.OtherEvents] != 1 || v.OtherEvent != "data:") {
			t.Errorf("%v, %v, %q", v.Client.Counts, f, v.OtherEvent)
		}
	}
}

// With NoStream nothing asks for a stream.
func TestNoStream(t *testing.T) {
	var streamed, asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ask struct{ Stream bool }
		if json.NewDecoder(r.Body).Decode(&ask); ask.Stream {
			streamed.Add(1)
			http.Error(w, "streaming is not supported", http.StatusBadRequest)
			return
		}
		asked.Add(1)
		io.WriteString(w, `{"choices":[{"message":{"content":"hello"}}]}`)
	}))
	defer s.Close()
	a, err := New(Client{Chat: &openai.Options{Model: "m", Timeout: patience}, NoStream: true},
		[]Address{{Name: "a", URL: s.URL}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Check(t.Context()); err != nil || a.Paths()[0].Facts["model"] != "m" ||
		a.Paths()[0].Dial == "" {
		t.Errorf("%v, %+v", err, a.Paths())
	}
	var v sample.Visit
	err = a.Visit(t.Context(), sample.Cell{Route: "a"}, sample.Load{Kind: workload.Batch}, &v)
	if err != nil || asked.Load() != 2 || streamed.Load() != 0 {
		t.Errorf("%v, asked %d times and %d times for a stream", err, asked.Load(),
			streamed.Load())
	}
}

// What the server refuses, and how its responses come, are facts of the route.
func TestChatCheckFacts(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if strings.Contains(string(b), `"seed"`) {
			http.Error(w, "unknown field seed", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/plain")
		z := gzip.NewWriter(w)
		defer z.Close()
		fmt.Fprint(z, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n")
	}))
	defer s.Close()
	c := chat(t, openai.Options{Model: "m", Compressed: true}, s.URL)
	if err := c.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for fact, want := range map[string]string{sample.FactRequest: "without seed",
		sample.FactEncoding: "gzip", sample.FactType: "text/plain"} {
		if got := c.Paths()[0].Facts[fact]; got != want {
			t.Errorf("%s: %q, want %q", fact, got, want)
		}
	}
}

func TestVisitServerStrain(t *testing.T) {
	m := serves(t, short)
	c := chat(t, openai.Options{Model: "m"}, m.URL)
	stopped := int64(100)
	c.Locate = func(_ context.Context, remote string, from *vantage.Vantage) Server {
		if remote != m.Listener.Addr().String() || from.PID() != 0 {
			t.Errorf("asked for %s", remote)
		}
		return Server{Container: "shop", Strain: func() map[string]int64 {
			stopped += 7
			return map[string]int64{workload.CountStops: stopped,
				workload.CountOverflows: stopped / 100}
		}, Ports: func() (used, all int) { return 30, 40 }}
	}
	if err := c.Check(context.Background()); err != nil ||
		c.Paths()[0].Facts["container"] != "shop" {
		t.Errorf("%v, %+v", err, c.Paths())
	}
	l := sample.Load{Kind: workload.Chat, Options: sample.ChatOptions{Requests: 1, Tokens: 8}}
	v, err := visited(t, context.Background(), c, l)
	values := workload.FiguresOf(v, l, sample.Shape{}).Values
	if overflows, ok := values[workload.ServerOverflows]; err != nil ||
		values[workload.ServerStops] != 7 || !ok || overflows != 0 ||
		values[workload.ProxyPortUse] != 0.75 {
		t.Errorf("%+v, %+v, %v", v.Server, values, err)
	}
	if _, ok := values[workload.DelayedACKs]; !ok {
		t.Errorf("the client's kernel was not asked: %+v", v.Client.Counts)
	}
}

// TestVisitGPU has a server that stalls, and a GPU of this process that nvidia-smi knows.
func TestVisitGPU(t *testing.T) {
	dir := t.TempDir()
	script := fmt.Sprintf(`#!/bin/sh
case $1 in --query-compute-apps=*) echo "%d, GPU-1"; exit;; esac
while :; do echo "$(date '+%%Y/%%m/%%d %%H:%%M:%%S.%%3N'), GPU-1, 40"; sleep 0.1; done
`, os.Getpid())
	if err := os.WriteFile(dir+"/nvidia-smi", []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	const stall = 2 * time.Second
	m := serves(t, func(s stream, n int64) {
		s.says("a")
		s.waits(10 * time.Millisecond)
		s.says("b")
		s.waits(10 * time.Millisecond)
		s.says("c")
		if n > 1 { // not for the check
			s.waits(stall)
		}
		s.says("d")
		s.ends()
	})
	c := chat(t, openai.Options{Model: "m"}, m.URL, m.URL)
	c.Locate = func(context.Context, string, *vantage.Vantage) Server {
		return Server{PID: os.Getpid()}
	}
	l := sample.Load{Kind: workload.Chat, Options: sample.ChatOptions{Requests: 1, Tokens: 8}}
	testwait.Unhindered(t, patience, func(u testing.TB) {
		if err := c.Check(context.Background()); err != nil {
			u.Fatal(err)
		}
		if len(c.gpus) != 1 {
			u.Errorf("%d readers of the GPU of one process", len(c.gpus))
		}
		v, err := visited(u, context.Background(), c, l)
		if err != nil {
			u.Fatal(err)
		}
		if g := v.GPU; g == nil || g.By != sample.GPUByNvidiaSMI || g.Slow.Gaps != 1 ||
			math.Abs(g.Slow.Share()-0.4) > 1e-9 || g.Slow.Time < stall.Seconds()*0.9 {
			u.Errorf("%+v", g)
		}
	})
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// chat returns a Chat with endpoints that are called a, b, ….
func chat(t testing.TB, o openai.Options, urls ...string) *Chat {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = patience
	}
	var at []Address
	for i, u := range urls {
		at = append(at, Address{Name: string(rune('a' + i)), URL: u})
	}
	c, err := newChat(at, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func visited(t testing.TB, ctx context.Context, c *Chat, l sample.Load) (sample.Visit, error) {
	t.Helper()
	var v sample.Visit
	began := time.Now()
	err := c.Visit(ctx, sample.Cell{Route: "a"}, l, &v)
	if took := time.Since(began); took > patience {
		t.Errorf("the visit took %s", took)
	}
	return v, err
}

// wants fails the test unless the error, without this run's ports, has the given text.
func wants(t *testing.T, err error, want string) {
	t.Helper()
	if got := testgolden.Stable(fmt.Sprint(err)); got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func TestNewChatNamesTheRoute(t *testing.T) {
	_, err := newChat([]Address{{Name: "good", URL: "http://h"}, {Name: "bad", URL: "ftp://h"}},
		openai.Options{}, nil)
	wants(t, err, "bad: the URL must begin with http:// or https://")
	_, err = newChat([]Address{{Name: "bad", URL: "http://app:hunter22@h"}}, openai.Options{}, nil)
	wants(t, err, "bad: the URL holds a user or a password, which every user of this machine "+
		"could "+
		"see in the list of processes; give a key through the environment")
}

func TestChatCheck(t *testing.T) {
	one, two := serves(t, short), serves(t, short)
	c := chat(t, openai.Options{}, one.URL, two.URL+"/v1/")
	if err := c.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names := c.Names(); len(names) != 2 || names[0] != "a" || names[1] != "b" {
		t.Errorf("names %v", names)
	}
	for i, p := range c.Paths() {
		m := []*model{one, two}[i]
		facts := map[string]string{"address family": "IPv4", "url": m.URL + "/v1/chat/completions",
			"model": "m-1", "http": "HTTP/1.1", "server": "scripted/1", "keeps connections": "yes"}
		if p.Route != c.Names()[i] || p.From != sample.FromHere || p.On != sample.OnEndpoint ||
			p.Dial != m.Listener.Addr().String() ||
			p.Hops == nil || len(p.Hops) != 0 || p.Built <= 0 ||
			fmt.Sprint(p.Facts) != fmt.Sprint(facts) {
			t.Errorf("%+v, want facts %v", p, facts)
		}
	}
}

func TestChatCheckNamesTheRoute(t *testing.T) {
	good := serves(t, short)
	for _, tt := range []struct {
		name, url, want string
	}{
		{"refused", "http://" + testnet.TCP(t).String(),
			"b: list the models of http://127.0.0.1:PORT/v1/chat/completions: dial tcp " +
				"127.0.0.1:PORT: connect: connection refused"},
		{"unauthorized", serves(t, func(s stream, _ int64) {
			http.Error(s, "who are you", http.StatusUnauthorized)
		}).URL, "b: ask http://127.0.0.1:PORT/v1/chat/completions: the server answered 401 " +
			"Unauthorized: who are you"},
		{"no-token", serves(t, func(s stream, _ int64) {
			s.ends()
		}).URL, "b: ask http://127.0.0.1:PORT/v1/chat/completions: the server answered without a " +
			"token"},
		{"not-a-model", httptestServer(t, "<html>").URL,
			"b: ask http://127.0.0.1:PORT/v1/chat/completions: the server does not stream: " +
				"it answered text/html and not text/event-stream: <html>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wants(t, chat(t, openai.Options{}, good.URL, tt.url).Check(t.Context()), tt.want)
		})
	}
}

func httptestServer(t *testing.T, page string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, page)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestChatVisit(t *testing.T) {
	testwait.Unhindered(t, patience, func(u testing.TB) {
		const first, pause = 50 * time.Millisecond, 300 * time.Millisecond
		m := serves(u, func(s stream, _ int64) {
			s.waits(first)
			s.says("one")
			s.waits(pause)
			s.says("two", "three") // in one piece
			s.ends()
		})
		c := chat(t, openai.Options{}, m.URL)
		v, err := visited(u, t.Context(), c, sample.Load{
			Options: sample.ChatOptions{Stall: pause.Seconds() / 2}})
		if err != nil {
			u.Fatal(err)
		}
		counts := v.Client.Counts
		if v.Client.Trips != 1 || v.Client.Connections != 1 || counts["tokens"] != 3 ||
			counts["glued"] < 2 || counts["stalls"] < 1 {
			u.Errorf("%+v", v.Client)
		}
		h := map[string]int64{"first_token": 1, "gap": 2}
		for name, n := range h {
			e := v.Times[name]
			if e == nil {
				u.Fatalf("no times of %s", name)
			}
			d, err := e.Decode()
			if err != nil || d.TotalCount() != n {
				u.Errorf("%s: %d values, want %d (%v)", name, d.TotalCount(), n, err)
			}
			h[name] = d.Max()
		}
		// The reader of a gap's first token may have been kept waiting.
		if got := time.Duration(h["first_token"]); got < first*99/100 {
			u.Errorf("first token after %s", got)
		}
		if got := time.Duration(h["gap"]); got < pause/2 {
			u.Errorf("longest gap %s", got)
		}
		least := (first + pause).Seconds()
		if v.Values["response"] < least || v.Client.Window < least || v.Values["connect"] <= 0 ||
			v.Values["token_rate"] <= 0 || v.Values["token_rate"] > 3/least {
			u.Errorf("window %v, values %v", v.Client.Window, v.Values)
		}
		if v.Client.TCP.RTT <= 0 || v.Latency != nil || v.Witness.OK {
			u.Errorf("RTT %v, latency %v, witness %+v", v.Client.TCP.RTT, v.Latency, v.Witness)
		}

		v, err = visited(u, t.Context(), c, sample.Load{
			Options: sample.ChatOptions{Stall: patience.Seconds()}})
		if err != nil || v.Client.Counts["stalls"] != 0 {
			u.Errorf("stalls of a shorter gap: %v (%v)", v.Client.Counts, err)
		}
	})
}

func TestChatOneToken(t *testing.T) {
	m := serves(t, func(s stream, _ int64) {
		s.says("yes")
		s.ends()
	})
	v, err := visited(t, t.Context(), chat(t, openai.Options{}, m.URL), sample.Load{})
	if err != nil {
		t.Fatal(err)
	}
	if v.Values["token_rate"] <= 0 || v.Times["gap"] != nil ||
		v.Times["first_token"] == nil || v.Client.Counts["tokens"] != 1 {
		t.Errorf("%+v", v)
	}
}

func TestChatSessionsAndRequests(t *testing.T) {
	for _, tt := range []struct {
		name  string
		close bool // by the server, after each response
		conns int
	}{{"kept", false, 3}, {"closed", true, 12}} {
		t.Run(tt.name, func(t *testing.T) {
			m := serves(t, func(s stream, n int64) {
				if tt.close {
					s.Header().Set("Connection", "close")
				}
				short(s, n)
			})
			v, err := visited(t, t.Context(), chat(t, openai.Options{}, m.URL),
				sample.Load{Streams: 3, Options: sample.ChatOptions{Requests: 4}})
			if err != nil {
				t.Fatal(err)
			}
			if v.Client.Trips != 12 || m.requests.Load() != 12 || v.Client.Counts["tokens"] != 24 {
				t.Errorf("%d responses, %d requests, %v", v.Client.Trips, m.requests.Load(),
					v.Client.Counts)
			}
			if _, ok := v.Values[workload.ValueKeptExcess]; ok == tt.close {
				t.Errorf("values %v", v.Values)
			}
			if v.Client.Connections != tt.conns || m.conns.Load() != int64(tt.conns) {
				t.Errorf("%d connections, the server saw %d, want %d", v.Client.Connections,
					m.conns.Load(), tt.conns)
			}
		})
	}
}

func TestKeptExcess(t *testing.T) {
	for name, tt := range map[string]struct {
		opened, kept waits
		want         float64
	}{
		"the first token waits": {waits{first: []float64{0.0108}, gap: []float64{0.0102}},
			waits{first: []float64{0.0416, 0.0418, 0.0108}, gap: []float64{0.0103}}, 0.0308},
		"a gap waits": {waits{first: []float64{0.0105}, gap: []float64{0.0103}},
			waits{first: []float64{0.0103}, gap: []float64{0.0424}}, 0.0321},
		"a whole response": {waits{whole: []float64{0.010}}, waits{whole: []float64{0.051}}, 0.041},
		"nothing waits":    {waits{first: []float64{0.0105}}, waits{first: []float64{0.0103}}, 0},
	} {
		got, ok := (&talk{opened: tt.opened, kept: tt.kept}).excess()
		if !ok || math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %g (%v), want %g", name, got, ok, tt.want)
		}
	}
}

func TestChatFailureStopsTheOthers(t *testing.T) {
	m := serves(t, func(s stream, n int64) {
		if n == 3 {
			http.Error(s, "out of memory", http.StatusInternalServerError)
			return
		}
		for s.says("a") && s.waits(10*time.Millisecond) {
		}
	})
	v, err := visited(t, t.Context(), chat(t, openai.Options{}, m.URL), sample.Load{Streams: 4})
	wants(t, err, "ask http://127.0.0.1:PORT/v1/chat/completions: the server answered 500 "+
		"Internal "+
		"Server Error: out of memory")
	if v.Values != nil || v.Times != nil {
		t.Errorf("a failed visit has %+v", v)
	}
}

func TestChatCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopped by hand")
	m := serves(t, func(s stream, _ int64) {
		s.says("a")
		cancel(why)
		s.waits(patience)
	})
	_, err := visited(t, ctx, chat(t, openai.Options{}, m.URL), sample.Load{Streams: 2})
	if !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
	if err := chat(t, openai.Options{}, m.URL).Check(ctx); !errors.Is(err, why) {
		t.Errorf("check: %v", err)
	}
}

func TestChatWithoutToken(t *testing.T) {
	m := serves(t, func(s stream, _ int64) { s.ends() })
	_, err := visited(t, t.Context(), chat(t, openai.Options{}, m.URL), sample.Load{})
	wants(t, err, "the response has no token")
}

func TestChatBrokenOff(t *testing.T) {
	m := serves(t, func(s stream, _ int64) {
		s.says("a")
		panic(http.ErrAbortHandler)
	})
	_, err := visited(t, t.Context(), chat(t, openai.Options{}, m.URL), sample.Load{})
	wants(t, err, "ask http://127.0.0.1:PORT/v1/chat/completions: the server closed the "+
		"connection "+
		"after 1 token, before the end of its response")
}

func TestChatEndless(t *testing.T) {
	m := serves(t, func(s stream, _ int64) {
		for s.says("a") && s.waits(5*time.Millisecond) {
		}
	})
	c := chat(t, openai.Options{Timeout: patience}, m.URL)
	c.limit = 200 * time.Millisecond
	_, err := visited(t, t.Context(), c, sample.Load{Streams: 2})
	wants(t, err, "ask http://127.0.0.1:PORT/v1/chat/completions: the response did not end "+
		"within 200ms")
	began := time.Now()
	wants(t, c.Check(t.Context()), "a: ask http://127.0.0.1:PORT/v1/chat/completions: the "+
		"response did not end within "+
		"200ms")
	if took := time.Since(began); took > patience {
		t.Errorf("the check took %s", took)
	}
	if c := chat(t, openai.Options{Timeout: time.Second}, m.URL); c.limit != 10*time.Second {
		t.Errorf("a response may take %s", c.limit)
	}
}

func TestChatPathsWithoutKey(t *testing.T) {
	const key, param = "sk-hunter22", "param-hunter22"
	var got atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", r.Header.Get("Authorization")+" "+r.URL.RawQuery)
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"data":[{"id":"m %s %s"}]}`, key, param)
			return
		}
		got.Store(r.Header.Get("Authorization") + " " + r.URL.RawQuery)
		w.Header().Set("Content-Type", "text/event-stream")
		short(stream{w, r}, 0)
	}))
	defer s.Close()
	c := chat(t, openai.Options{Key: key}, s.URL+"/?token="+url.QueryEscape(param))
	if err := c.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "Bearer " + key + " token=" + param; got.Load() != want {
		t.Errorf("the server got %q, want %q", got.Load(), want)
	}
	text, err := json.Marshal(c.Paths())
	if err != nil || strings.Contains(string(text), "hunter22") ||
		testgolden.Stable(c.Paths()[0].Facts["url"]) !=
			"http://127.0.0.1:PORT/v1/chat/completions?token=***" {
		t.Errorf("%s (%v)", text, err)
	}
	if _, err := netip.ParseAddrPort(c.Paths()[0].Dial); err != nil {
		t.Error(err)
	}
}
