package endpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

// listen calls handle with each connection, and returns the address.
func listen(t *testing.T, network, at string, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { testnet.Accept(l, handle) })
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// web serves GET with a body after a pause.
func web(pause time.Duration, body string) func(net.Conn) {
	return func(c net.Conn) {
		for br := bufio.NewReader(c); ; {
			r, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			time.Sleep(pause)
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nServer: %s\r\nContent-Length: %d\r\n\r\n%s", r.URL.Path,
				len(body), body)
		}
	}
}

// limited serves n requests on each connection, and says so or not.
func limited(n int, told bool, pause time.Duration) func(net.Conn) {
	return func(c net.Conn) {
		br := bufio.NewReader(c)
		for k := range n {
			if _, err := http.ReadRequest(br); err != nil {
				return
			}
			time.Sleep(pause)
			end := ""
			if told && k == n-1 {
				end = "Connection: close\r\n"
			}
			fmt.Fprintf(c, "HTTP/1.1 404 No\r\n%sContent-Length: 1\r\n\r\nx", end)
		}
	}
}

// TestRequestsOnManyConnections asks servers that end a connection after some requests.
func TestRequestsOnManyConnections(t *testing.T) {
	for _, tt := range []struct {
		each int
		told bool
	}{{5, true}, {5, false}} {
		at := listen(t, "tcp", "127.0.0.1:0", limited(tt.each, tt.told, 0))
		testwait.Unhindered(t, time.Minute, func(u testing.TB) {
			onMany(u, at, tt.each, tt.told)
		})
	}
}

// onMany makes requests to a server that ends each connection after a number of them. All of its
// replies are errors.
func onMany(t testing.TB, at string, each int, told bool) {
	t.Helper()
	s, err := speakerOf(Address{URL: "http://" + at}, "")
	if err != nil {
		t.Fatal(err)
	}
	r, v := followed{speaker: s, from: vantage.Local()}, &sample.Visit{}
	all, err := r.ask(t.Context(), sample.Load{Warmup: 0.05, Window: 0.2}, v)
	if err != nil {
		t.Fatalf("told %t: %v", told, err)
	}
	if n := r.replies.Errors["404 Not Found"]; n != len(all) {
		t.Errorf("told %t: %d of %d replies are errors", told, n, len(all))
	}
	ports := map[uint16]int{}
	for _, x := range all {
		ports[x.Local]++
	}
	for port, n := range ports {
		if n > each {
			t.Errorf("told %t: %d requests from port %d", told, n, port)
		}
	}
	if v.Client.Trips != int64(len(all)) || len(all) <= each || v.Client.Connections < len(all)/each {
		t.Errorf("told %t: %d requests, %+v", told, len(all), v.Client)
	}
	if n := r.replies.Unanswered; told && n > 0 || !told && (n < len(ports)-1 || n > len(ports)) {
		t.Errorf("told %t: %d requests on %d connections had no reply", told, n, len(ports))
	}
}

// TestRequestsOfAServerThatDrains asks a server that ends each later connection after one request.
func TestRequestsOfAServerThatDrains(t *testing.T) {
	var connections atomic.Int64
	at := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		n := 1
		if connections.Add(1) == 1 {
			n = 3
		}
		limited(n, true, 0)(c)
	})
	s, err := speakerOf(Address{URL: "http://" + at}, "")
	if err != nil {
		t.Fatal(err)
	}
	r := followed{speaker: s, from: vantage.Local()}
	if _, err := r.ask(t.Context(), sample.Load{Window: 0.2}, nil); err != nil {
		t.Error(err)
	}
}

// hints sends n informational responses before each reply, whose number is the server's name.
func hints(n int) func(net.Conn) {
	return func(c net.Conn) {
		br := bufio.NewReader(c)
		for replies := 1; ; replies++ {
			if _, err := http.ReadRequest(br); err != nil {
				return
			}
			for i := range n {
				fmt.Fprintf(c, "HTTP/1.1 %s\r\nLink: x\r\n\r\n",
					[]string{"103 Early Hints", "102 Processing"}[i%2])
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nServer: %d\r\nContent-Length: 1\r\n\r\nx", replies)
		}
	}
}

// TestDialogueHints reads the reply to each request behind informational responses.
func TestDialogueHints(t *testing.T) {
	s, err := speakerOf(Address{URL: "http://" + listen(t, "tcp", "127.0.0.1:0", hints(2))}, "")
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	for n := range 3 {
		err := d.ask(t.Context())
		if want := strconv.Itoa(n + 1); err != nil || d.status != http.StatusOK || d.server != want {
			t.Errorf("reply %d of %s, want 200 of %s: %v", d.status, d.server, want, err)
		}
	}
}

// redis answers PING, after AUTH if there is a password.
func redis(password string) func(net.Conn) {
	return func(c net.Conn) {
		may := password == ""
		for br := bufio.NewReader(c); ; {
			n := 0
			if _, err := fmt.Fscanf(br, "*%d\r\n", &n); err != nil {
				_, _ = io.WriteString(c, "-ERR Protocol error\r\n")
				return
			}
			var words []string
			for range n {
				_, _ = br.ReadString('\n')
				line, err := br.ReadString('\n')
				if err != nil {
					return
				}
				words = append(words, strings.TrimSpace(line))
			}
			switch {
			case words[0] == "AUTH":
				may = words[len(words)-1] == password
				_, _ = io.WriteString(c, map[bool]string{true: "+OK\r\n", false: "-WRONGPASS no\r\n"}[may])
			case !may:
				_, _ = io.WriteString(c, "-NOAUTH Authentication required.\r\n")
			default:
				_, _ = io.WriteString(c, "+PONG\r\n")
			}
		}
	}
}

func TestDialogues(t *testing.T) {
	pages := listen(t, "tcp", "127.0.0.1:0", web(0, "page"))
	cache := listen(t, "tcp", "127.0.0.1:0", redis(""))
	locked := listen(t, "tcp", "127.0.0.1:0", redis("open"))
	// It refuses connections before it has read anything, as Redis in protected mode does.
	protected := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.WriteString(c, "-DENIED "+strings.Repeat("x", 1000)+"\r\n")
	})
	closing := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(c))
		_, _ = io.WriteString(c, "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx")
	})
	mute := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
	})
	other := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { // a server of HTTP/2
		_, _ = io.WriteString(c, "\x00\x00\x00\x04\x00\x00\x00\x00\x00\n")
		_, _ = io.Copy(io.Discard, c)
	})
	hinting := listen(t, "tcp", "127.0.0.1:0", hints(1000))
	resets := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		_ = c.(*net.TCPConn).SetLinger(0)
	})
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	sealed := secure.Listener.Addr().String()
	six := ""
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		l.Close()
		six = "http://" + listen(t, "tcp", "[::1]:0", web(0, "page")) + "/"
	}
	others := "let a client make the requests if the server speaks another protocol: " +
		remedy.AsRoot("toll trace HOST:PORT --client 'COMMAND {host} {port}'")
	for i, tt := range []struct {
		url, password string
		words         string
		err, hint     string
	}{
		{url: "http://" + pages + "/health?a=b", words: "GET /health?a=b"},
		{url: "http://" + pages, words: "GET /"},
		{url: pages, words: "GET /"},
		{url: cache, words: "PING"},
		{url: "redis://" + cache, words: "PING"},
		{url: "redis://" + locked, password: "open", words: "PING"},
		{url: six, words: "GET /"},
		{url: "redis://" + locked, err: `PING was answered "-NOAUTH Authentication required."`},
		{url: "redis://" + locked, password: "x", err: `AUTH was answered "-WRONGPASS no"`},
		{url: locked, password: "x", err: `AUTH was answered "-WRONGPASS no"`},
		{url: "redis://" + protected,
			err: `PING was answered "-DENIED ` + strings.Repeat("x", mostQuoted-8) + `…"`},
		{url: "redis://" + pages, err: "the server ended the connection instead of a reply"},
		{url: "http://" + closing,
			err: "the server ends the connection after each reply, and requests are traced on one"},
		{url: "http://" + hinting, err: "no reply, but 100 informational responses"},
		{url: mute,
			err: "no reply: connection reset by peer (it answers neither PING nor GET /: give a URL)"},
		{url: "http://me@" + pages, err: "a user in the URL: toll sends no credentials over HTTP"},
		{url: "redis://:hunter2@" + cache,
			err: "a password in the URL: every user of the machine can read it, so use --secret-env"},
		{url: "ftp://" + pages,
			err: "toll makes no requests to ftp:// (only to http, https, redis, postgres, mysql, sqlserver and dns)"},
		{url: "https://" + cache, err: "the server does not answer such requests: it speaks Redis or POP3",
			hint: "give its URL: " + remedy.AsRoot("toll trace redis://"+cache)},
		{url: "https://" + sealed,
			err: "the server's certificate: x509: certificate signed by unknown authority",
			hint: "let SSL_CERT_FILE name the file of its CA, or of the certificate itself if that is " +
				"its own CA (" + remedy.AsRoot("SSL_CERT_FILE=CA.pem toll …") + "); or let a client make the requests: " +
				"toll trace HOST:PORT --client 'curl -kso /dev/null https://{addr}/'"},
		{url: "http://" + other,
			err:  `no reply of HTTP: malformed HTTP response "\x00\x00\x00\x04\x00\x00\x00\x00\x00"`,
			hint: others},
		{url: "redis://" + resets, err: "no reply: connection reset by peer", hint: others},
		{url: "http://" + resets, err: "no reply: connection reset by peer", hint: others},
	} {
		if tt.url == "" {
			continue
		}
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			s, err := speakerOf(Address{URL: tt.url}, tt.password)
			if err == nil {
				var d *dialogue
				if d, err = s.open(t.Context()); err == nil {
					defer d.close()
					for range 3 {
						if err == nil {
							err = d.ask(t.Context())
						}
					}
				}
			}
			switch {
			case tt.err == "" && (err != nil || s.words() != tt.words):
				t.Errorf("%v", err)
			case tt.err != "" && (err == nil || err.Error() != tt.err):
				t.Errorf("%v, want %q", err, tt.err)
			case tt.hint != "" && hint.Of(err) != tt.hint:
				t.Errorf("%v: hint %q", err, hint.Of(err))
			}
		})
	}
}

// partsOf adds up a trace's segments by part, however it is divided.
func partsOf(v *sample.Trace) map[sample.Part]float64 {
	out := map[sample.Part]float64{}
	for _, g := range v.Segments {
		whole, _, _ := strings.Cut(string(g.Part), string(sample.InPart))
		out[sample.Part(whole)] += g.MidMean
	}
	return out
}

// planted is what a route's server and relay add to a request.
type planted struct {
	hops           int
	serves, relays time.Duration
	large          bool // reply
}

// TestRequestsTraced plants delays in a server and in a relay, which other clients use, too, and a
// large reply.
func TestRequestsTraced(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	const pause = 4 * time.Millisecond
	direct := listen(t, "tcp", "127.0.0.1:0", web(pause, ""))
	relayed := listen(t, "tcp", "127.0.0.1:0", testnet.Relay(direct, pause))
	large := listen(t, "tcp", "127.0.0.1:0", web(0, strings.Repeat("x", 1<<20)))
	limited := listen(t, "tcp", "127.0.0.1:0",
		testnet.Relay(listen(t, "tcp", "127.0.0.1:0", limited(7, true, pause)), pause))
	const others = 10
	beside(t, "http://"+relayed, others)
	testwait.Unhindered(t, time.Minute, func(u testing.TB) {
		follows(u, []Address{{Name: "direct", URL: "http://" + direct},
			{Name: "relayed", URL: "http://" + relayed}, {Name: "large", URL: "http://" + large},
			{Name: "limited", URL: "http://" + limited}},
			map[string]planted{"direct": {hops: 1, serves: pause},
				"relayed": {hops: 2, serves: pause, relays: pause}, "large": {hops: 1, large: true},
				"limited": {hops: 2, serves: pause, relays: pause}})
	})
}

// follows traces the routes.
func follows(t testing.TB, at []Address, of map[string]planted) {
	t.Helper()
	q, err := newRequests(at, "")
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if err := q.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, a := range at {
		if hops := q.Paths()[i].Hops; len(hops) != of[a.Name].hops {
			t.Fatalf("%s: hops %q", a.Name, hops)
		}
		traced(t, q, a.Name, sample.Traced, of[a.Name])
	}
	traced(t, q, "relayed", sample.TracedThrice, of["relayed"])
	v := &sample.Visit{}
	err = q.Visit(t.Context(), sample.Cell{Route: "direct"}, sample.Load{Window: 0.1}, v)
	if err != nil || v.Latency == nil || len(v.Slices.Medians) == 0 ||
		v.Slices.Medians[0] < of["direct"].serves.Seconds() {
		t.Errorf("%+v: %v", v, err)
	}
}

// beside makes requests over n connections, with pauses, until the test ends.
func beside(t *testing.T, url string, n int) {
	const pause = 5 * time.Millisecond
	over := make(chan struct{})
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			s, _ := speakerOf(Address{URL: url}, "")
			d, err := s.open(t.Context())
			if err != nil {
				return
			}
			defer d.close()
			for err == nil {
				err = d.ask(t.Context())
				select {
				case <-over:
					return
				case <-time.After(pause):
				}
			}
		})
	}
	t.Cleanup(func() {
		close(over)
		all.Wait()
	})
}

func traced(t testing.TB, q *Requests, route string, state sample.Tracing, of planted) {
	t.Helper()
	v := &sample.Visit{Trace: &sample.Trace{State: state}}
	if err := q.Visit(t.Context(), sample.Cell{Route: route}, sample.Load{Window: 0.2}, v); err != nil {
		t.Fatal(err)
	}
	got := v.Trace
	if got.State != state || got.Trips == 0 || float64(got.Followed) < 0.95*float64(got.Trips) {
		t.Fatalf("%s: %d of %d followed: %+v, lost %d", route, got.Followed, got.Trips, got.Broken,
			got.Lost)
	}
	sum := 0.0
	parts := partsOf(got)
	for _, x := range parts {
		sum += x
	}
	server := parts[sample.PartServer] + parts[sample.PartServer+" + "+sample.PartServerTCP+" + "+
		sample.PartServerQueue] + parts[sample.PartServer+" + "+sample.PartServerQueue]
	if math.Abs(sum-got.MidMean) > 1e-9 || server < of.serves.Seconds() ||
		parts[sample.PartRelayed] < of.relays.Seconds() ||
		of.large != (parts[sample.PartTransfer] > 0) {
		t.Errorf("%s: %v of %v", route, parts, got.MidMean)
	}
}

// TestRequestsEnd checks that a server that does not answer holds nothing up once toll is interrupted.
func TestRequestsEnd(t *testing.T) {
	silent := make(chan struct{})
	at := listen(t, "tcp", "127.0.0.1:0", func(net.Conn) { <-silent })
	defer close(silent)
	s, err := speakerOf(Address{URL: "http://" + at}, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		time.Sleep(50 * time.Millisecond)
		cancel(errOther)
	}()
	began := time.Now()
	r := followed{speaker: s, from: vantage.Local()}
	_, err = r.ask(ctx, sample.Load{Window: 1}, nil)
	if !errors.Is(err, errOther) || time.Since(began) > dialogueTimeout {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// TestCheckEnds checks the same of the first request over a route.
func TestCheckEnds(t *testing.T) {
	silent := make(chan struct{})
	at := listen(t, "tcp", "127.0.0.1:0", func(net.Conn) { <-silent })
	defer close(silent)
	q, err := newRequests([]Address{{Name: "x", URL: "http://" + at}}, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errOther) })
	if err := q.Check(ctx); !errors.Is(err, errOther) {
		t.Error(err)
	}
}

// TestEndlessReply reads a reply that comes byte by byte, as server-sent events do, without an end.
func TestEndlessReply(t *testing.T) {
	usual := dialogueTimeout
	defer func() { dialogueTimeout = usual }()
	for _, head := range []string{"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nX: "} {
		at := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
			_, err := io.WriteString(c, head)
			for err == nil {
				time.Sleep(10 * time.Millisecond)
				_, err = io.WriteString(c, "x")
			}
		})
		s, err := speakerOf(Address{URL: "http://" + at}, "")
		if err != nil {
			t.Fatal(err)
		}
		dialogueTimeout = usual
		d, err := s.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		dialogueTimeout = 200 * time.Millisecond // of the reply
		if err := d.ask(t.Context()); !errors.Is(err, errLate) {
			t.Errorf("%q: %v", head, err)
		}
		d.close()
	}
}

func TestRequestsElsewhere(t *testing.T) {
	q, err := newRequests([]Address{{Name: "x", URL: "postgres://127.0.0.1:1/x",
		From: vantage.Local()}}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Check(t.Context()); err == nil || err.Error() !=
		"x: connect to 127.0.0.1:1: connection refused" {
		t.Error(err)
	}
}
