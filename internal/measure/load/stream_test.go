package load

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

func TestStream(t *testing.T) {
	for _, tt := range []struct {
		name string
		spec sample.Load
		cpus int
	}{
		{"one-session", sample.Load{Kind: "stream",
			Options: sample.StreamOptions{Tokens: 4, Pace: 200}}, 0},
		{"many-sessions", sample.Load{Kind: "stream", Streams: 70,
			Options: sample.StreamOptions{Tokens: 5, Pace: 250}}, 0},
		{"one-token", sample.Load{Kind: "stream",
			Options: sample.StreamOptions{Tokens: 1, Pace: 100}}, 0},
		{"nagle", sample.Load{Kind: "stream", Streams: 2,
			Options: sample.StreamOptions{Tokens: 6, Pace: 300}, Nodelay: "off"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inTime(t, func(u testing.TB) {
				client, server := both(u, tt.spec)
				s := withDefaults(tt.spec)
				period := int64(period(s))
				tokens := client.Counts[workload.CountTokens]
				if tokens == 0 ||
					client.Latency.TotalCount() != tokens+client.Counts[workload.CountOverdue] ||
					client.Times[workload.TimeLate].TotalCount() != tokens {
					u.Errorf("%d tokens, %d delays, %d overdue", tokens,
						client.Latency.TotalCount(), client.Counts[workload.CountOverdue])
				}
				if most := int64(s.Streams) * (int64(window)/period + 2); tokens > most {
					u.Errorf("%d tokens in the window, at most %d were due", tokens, most)
				}
				if client.Connections != s.Streams || server.Connections != s.Streams {
					u.Errorf("%d and %d connections", client.Connections, server.Connections)
				}
				if server.TotalRecv != client.TotalSent || client.TotalRecv > server.TotalSent ||
					client.TotalRecv == 0 {
					u.Errorf("sent %d, received %d; back %d, %d", client.TotalSent,
						server.TotalRecv, server.TotalSent, client.TotalRecv)
				}
				if n := client.Times[workload.TimeOverrun].TotalCount(); n == 0 ||
					n != client.Trips {
					u.Errorf("%d responses, %d were timed", client.Trips, n)
				}
				if workload.StreamOf(s).Tokens == 1 &&
					client.Times[workload.TimeGap].TotalCount() > 0 {
					u.Error("gaps between responses")
				}
				if client.Counts[workload.CountGlued] > tokens ||
					server.Counts[workload.CountBlocked] != 0 {
					u.Errorf("counts %v, %v", client.Counts, server.Counts)
				}
				for name, h := range client.Times {
					if h.Max() > int64(10*time.Second) {
						u.Errorf("%s of %s", name, time.Duration(h.Max()))
					}
				}
			})
		})
	}
}

func TestStreamLoops(t *testing.T) {
	inTime(t, func(u testing.TB) {
		for _, tt := range []struct {
			sessions int
			cpus     []int
			want     int
		}{{1, nil, 1}, {1000, nil, 1}, {1000, []int{0}, 1}, {1000, []int{0, 0}, 2},
			{251, []int{0, 0, 0}, 2}, {250, []int{0, 0}, 1}} {
			o := options(sample.Load{Kind: "stream", Streams: tt.sessions})
			o.CPUs = tt.cpus
			if got := o.Threads(); got != tt.want {
				u.Errorf("%d sessions, CPUs %v: %d threads, want %d", tt.sessions, tt.cpus, got,
					tt.want)
			}
		}
		o := options(sample.Load{Kind: "stream", Streams: 260,
			Options: sample.StreamOptions{Tokens: 3, Pace: 20}})
		o.CPUs = []int{0, 0}
		srv, cli := opened(u, testnet.TCP(u), o, direct)
		stagger := time.Duration(workload.Stagger(260, 20) * 1e9)
		got, _, err := run(srv, cli, soon(stagger, 300*time.Millisecond))
		if err != nil {
			u.Fatal(err)
		}
		if got.Connections != 260 || got.Trips < 260 {
			u.Errorf("%d connections made %d responses in twice the time of one", got.Connections,
				got.Trips)
		}
	})
}

// A path's delay lengthens the time to the first token and the response by twice as much, and the
// gaps not at all.
func TestStreamOverADelay(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const delay = 20 * time.Millisecond
		spec := sample.Load{Kind: "stream", Options: sample.StreamOptions{Tokens: 5, Pace: 100}}
		got := overDelay(u, spec, delay)
		const slack = 15 * time.Millisecond // of a busy machine
		for _, x := range []struct {
			what        string
			got         int64
			least, most time.Duration
		}{
			{"least delay", got.Latency.Min(), delay, delay + slack},
			{"median delay", got.Latency.ValueAtQuantile(50), delay, delay + slack},
			{"first token", got.Times[workload.TimeFirst].ValueAtQuantile(50), 2 * delay,
				2*delay + slack},
			{"response beyond its schedule", got.Times[workload.TimeOverrun].ValueAtQuantile(50),
				2 * delay, 2*delay + slack},
			{"gap", got.Times[workload.TimeGap].ValueAtQuantile(50), 0,
				10*time.Millisecond + slack},
			{"transit", got.Times[workload.TimeTransit].Min(), delay, delay + slack},
			{"own lateness", got.Times[workload.TimeLate].ValueAtQuantile(50), 0, slack},
		} {
			if d := time.Duration(x.got); float64(d) < 0.999*float64(x.least) || d > x.most {
				u.Errorf("%s %s, want %s to %s", x.what, d, x.least, x.most)
			}
		}
		if got.Counts[workload.CountOverdue] != 0 {
			u.Error("what was under way at the window's end was not waited for")
		}
	})
}

func TestStreamThatStalls(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const tokens = 10
		addr := testnet.Serve(u, func(c net.Conn) {
			b := make([]byte, 4<<10)
			if _, err := c.Read(b); err != nil {
				return
			}
			now := clock.Now()
			_, _ = c.Write(responseHead)
			f := tokenFrames()[0]
			stamp(f.b[f.due:], now)
			stamp(f.b[f.sent:], now)
			_, _ = c.Write(f.b)
			_, _ = c.Read(b)
		})
		cli, err := Dial(addr, options(sample.Load{
			Kind: "stream", Options: sample.StreamOptions{Tokens: tokens, Pace: 500}}))
		if err != nil {
			u.Fatal(err)
		}
		defer cli.Close()
		got, err := cli.Run(windows(0, 200*time.Millisecond)(clock.Now()))
		if err != nil {
			u.Fatal(err)
		}
		if got.Counts[workload.CountTokens] != 1 || got.Counts[workload.CountOverdue] != tokens-1 {
			u.Errorf("counts %v", got.Counts)
		}
		if d := time.Duration(got.Latency.Max()); d < latePatience {
			u.Errorf("a stall of over %s counts as %s", latePatience, d)
		}
	})
}

func TestStreamOfOthers(t *testing.T) {
	for _, tt := range []struct{ name, answer, want string }{
		{"refused", "HTTP/1.1 404 Not Found\r\n\r\n",
			"read a response: the server answered \"HTTP/1.1 404 Not Found\""},
		{"closed", "", "the server closed a connection"},
		{"not-chunked", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
			"read a response: the response is not a chunked stream of events"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := testnet.Serve(t, func(c net.Conn) {
				_, _ = c.Read(make([]byte, 4<<10))
				_, _ = c.Write([]byte(tt.answer))
			})
			cli, err := Dial(addr, options(sample.Load{Kind: "stream"}))
			if err != nil {
				t.Fatal(err)
			}
			defer cli.Close()
			_, err = cli.Run(windows(warmup, 5*time.Second)(clock.Now()))
			if err == nil || err.Error() != tt.want {
				t.Errorf("Run = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestStreamServesHTTP(t *testing.T) {
	inTime(t, func(u testing.TB) {
		spec := sample.Load{Kind: "stream", Options: sample.StreamOptions{Tokens: 3, Pace: 500}}
		addr := testnet.TCP(u)
		Prepare(2)
		srv, err := Listen(addr, options(spec))
		if err != nil {
			u.Fatal(err)
		}
		when := windows(0, 1)(clock.Now())
		served := make(chan error, 1)
		go func() {
			_, err := srv.Run(when)
			served <- err
		}()
		client := &http.Client{Timeout: 20 * time.Second}
		for range 2 {
			req := string(tokenRequest(workload.StreamOf(spec).Tokens))
			_, body, _ := strings.Cut(req, "\r\n\r\n")
			resp, err := client.Post(fmt.Sprintf("http://%s%s", addr, streamPath),
				"application/json", strings.NewReader(body))
			if err != nil {
				u.Fatal(err)
			}
			if ct := resp.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") ||
				len(resp.TransferEncoding) != 1 {
				u.Errorf("head %v", resp.Header)
			}
			text, ends, done := "", 0, false
			for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
				data, ok := strings.CutPrefix(sc.Text(), "data: ")
				if !ok || data == doneData {
					done = done || ok
					continue
				}
				var c struct {
					ID      string
					Object  string
					Choices []struct {
						Delta struct{ Content string }
						End   string `json:"finish_reason"`
					}
					Toll struct {
						Due  string `json:"due_ns"`
						Sent string `json:"sent_ns"`
					}
				}
				if err := json.Unmarshal([]byte(data), &c); err != nil ||
					c.Object != "chat.completion.chunk" || len(c.Choices) != 1 {
					u.Fatalf("%v: %s", err, data)
				}
				if c.Choices[0].End == "stop" {
					ends++
					continue
				}
				text += c.Choices[0].Delta.Content
				if c.Toll.Sent < c.Toll.Due {
					u.Errorf("sent before it was due: %+v", c.Toll)
				}
			}
			resp.Body.Close()
			if text != strings.Join(tokenWords[:3], "") || ends != 1 || !done {
				u.Errorf("%q, %d ends, done %v", text, ends, done)
			}
		}
		client.CloseIdleConnections()
		if err := <-served; err != nil {
			u.Error(err)
		}
		if err := srv.Close(); err != nil {
			u.Error(err)
		}
	})
}

func TestCalendar(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 100
	var c calendar
	c.init(n)
	for i := range n {
		c.add(i, rng.Int64N(1000))
	}
	for moves := 0; moves < 5*n; moves++ {
		_, at, _ := c.next()
		if least := slices.Min(c.at); at != least {
			t.Fatalf("next is at %d, the first is at %d", at, least)
		}
		c.later(at + rng.Int64N(500))
	}
	for last := int64(0); ; {
		i, at, ok := c.next()
		if !ok {
			break
		}
		if at < last || at != c.at[i] {
			t.Fatalf("%d after %d", at, last)
		}
		last = at
		c.drop()
	}
}

func TestStagger(t *testing.T) {
	for _, sessions := range []int{1, 2, 10, 1000} {
		const pace, parts = 50, 10
		period := period(sample.Load{Options: sample.StreamOptions{Pace: pace}})
		var in [parts]int
		for i := range sessions {
			at := beginsAfter(i, period)
			if at < 0 || float64(at) > workload.Stagger(sessions, pace)*1e9 {
				t.Errorf("session %d of %d begins after %s, allowed are %gs", i, sessions,
					time.Duration(at), workload.Stagger(sessions, pace))
			}
			in[int(float64(at)/period*parts)%parts]++
		}
		if sessions == 1000 && (slices.Max(in[:]) > 110 || slices.Min(in[:]) < 90) {
			t.Errorf("sessions by tenths of a period: %v", in)
		}
	}
	for _, n := range []int{1, 7, 250, 1000} {
		sum := 0
		for i := range 3 {
			sum += share(n, i, 3)
		}
		if sum != n {
			t.Errorf("%d connections are shared as %d", n, sum)
		}
	}
}

func TestStreamIsRefused(t *testing.T) {
	for _, s := range []sample.Load{
		{Kind: "stream", Options: sample.StreamOptions{Tokens: -1}},
		{Kind: "stream", Options: sample.StreamOptions{Tokens: workload.MaxTokens + 1}},
		{Kind: "stream", Options: sample.StreamOptions{Pace: -1}},
		{Kind: "stream", Options: sample.StreamOptions{Pace: 0.5}},
		{Kind: "stream", Options: sample.StreamOptions{Pace: 1e6}},
	} {
		if _, err := Listen(testnet.TCP(t), options(s)); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
	o := options(sample.Load{Kind: "stream"})
	o.Crowd = true
	if _, err := Listen(testnet.TCP(t), o); err == nil {
		t.Error("a crowd was taken")
	}
	_, err := Dial(testnet.TCP(t), options(sample.Load{Kind: "stream", Streams: 100}))
	if !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a port that nobody listens on: %v", err)
	}
}

func TestStreamToASlowReader(t *testing.T) {
	inTime(t, func(u testing.TB) {
		spec := sample.Load{Kind: "stream", Options: sample.StreamOptions{
			Tokens: 20_000, Pace: 100_000}}
		addr := testnet.TCP(u)
		Prepare(2)
		srv, err := Listen(addr, options(spec))
		if err != nil {
			u.Fatal(err)
		}
		when := windows(0, 200*time.Millisecond)(clock.Now())
		type answer struct {
			Stats
			error
		}
		served := make(chan answer, 1)
		go func() {
			st, err := srv.Run(when)
			served <- answer{st, err}
		}()
		c, err := net.Dial("tcp4", addr.String())
		if err != nil {
			u.Fatal(err)
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(512 << 10)
		if _, err := c.Write(tokenRequest(workload.StreamOf(spec).Tokens)); err != nil {
			u.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond) // 7 MB are due by then, more than a socket takes
		var r streamReader
		buf := make([]byte, 64<<10)
		tokens, last := 0, int64(0)
		for done := false; !done; {
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			n, err := c.Read(buf)
			if err != nil {
				u.Fatal(err)
			}
			for b := buf[:n]; len(b) > 0; {
				used, ev, err := r.next(b)
				if err != nil {
					u.Fatal(err)
				}
				b = b[used:]
				switch ev {
				case aToken:
					if tokens++; r.due < last {
						u.Fatal("out of order")
					}
					last = r.due
				case endOfBody:
					done = true
				}
			}
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			u.Fatal(err)
		}
		got := <-served
		if tokens != workload.StreamOf(spec).Tokens || got.error != nil ||
			got.Counts[workload.CountBlocked] == 0 {
			u.Errorf("%d tokens, %+v", tokens, got)
		}
	})
}
