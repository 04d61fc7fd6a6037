package observe

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

// machine is a network namespace with a process, so that it is found.
type machine struct {
	*netns.NS
	pid int
}

func newMachine(t testing.TB) *machine {
	t.Helper()
	m := &machine{NS: netnstest.New(t)}
	sleep := exec.Command("sleep", "3600")
	if err := m.Start(sleep); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sleep.Process.Kill()
		_ = sleep.Wait()
	})
	if err := m.Do(func() error { return link.Up("lo") }); err != nil {
		t.Fatal(err)
	}
	m.pid = sleep.Process.Pid
	return m
}

// listen listens at an address that others may have, too.
func listen(at string) (net.Listener, error) {
	l := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		errControl := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, errControl)
	}}
	return l.Listen(context.Background(), "tcp", at)
}

// serve calls handle with each connection to an address of the machine.
func (m *machine) serve(t testing.TB, at string, handle func(net.Conn)) {
	t.Helper()
	var l net.Listener
	err := m.Do(func() (err error) {
		l, err = listen(at)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { testnet.Accept(l, handle) })
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
}

func (m *machine) dial(_ context.Context, network, addr string) (c net.Conn, took vantage.Took,
	err error) {
	took.Began = time.Now()
	err = m.Do(func() error { c, err = net.Dial(network, addr); return err })
	return c, took, err
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, vantage.Took, error)

// truth is what a server or relay noted of each request: when it was about to write each token, in
// ns, by the request's seed.
type truth struct {
	mu sync.Mutex
	at map[int64][]int64
}

func (l *truth) note(seed int64, at []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		l.at = map[int64][]int64{}
	}
	l.at[seed] = at
}

func (l *truth) of(seed int64) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at[seed]
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" +
	"Transfer-Encoding: chunked\r\n\r\n"

func chunkOf(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func event(text string) string {
	return fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", text)
}

const ending = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n" +
	"data: [DONE]\n\n"

// prompt is a request as a server reads it.
type prompt struct {
	Seed   int64 `json:"seed"`
	Tokens int   `json:"max_tokens"`
	id     string
	body   []byte
}

// other returns the reply to a request of another kind.
func other(method string) string {
	const head, body = "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n", 40
	if method == http.MethodHead {
		return head
	}
	return head + strings.Repeat("x", body)
}

// prompts calls answer with each prompt of a connection until that fails.
func prompts(c net.Conn, answer func(prompt) error) {
	br := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		if r.Method != http.MethodPost {
			if _, err := io.WriteString(c, other(r.Method)); err != nil {
				return
			}
			continue
		}
		p := prompt{id: r.Header.Get("X-Request-Id")}
		if p.body, err = io.ReadAll(r.Body); err != nil || json.Unmarshal(p.body, &p) != nil {
			return
		}
		if answer(p) != nil {
			return
		}
	}
}

// model returns a server that writes each token after its pause. together means in one write, after
// all pauses.
func model(log *truth, pause func(i int) time.Duration, together bool) func(net.Conn) {
	return fat(log, pause, together, "")
}

// fat returns a model that writes a comment before each event.
func fat(log *truth, pause func(i int) time.Duration, together bool,
	padding string) func(net.Conn) {
	return func(c net.Conn) {
		prompts(c, func(p prompt) error {
			var at []int64
			var kept strings.Builder
			if _, err := io.WriteString(c, streamHead); err != nil {
				return err
			}
			for i := range p.Tokens {
				time.Sleep(pause(i))
				text := chunkOf(padding + event(fmt.Sprintf("t%d ", i)))
				at = append(at, time.Now().UnixNano())
				if together {
					kept.WriteString(text)
				} else if _, err := io.WriteString(c, text); err != nil {
					return err
				}
			}
			for i := range at {
				if together {
					at[i] = time.Now().UnixNano()
				}
			}
			log.note(p.Seed, at)
			_, err := io.WriteString(c, kept.String()+chunkOf(ending)+"0\r\n\r\n")
			return err
		})
	}
}

// zipping returns a model that compresses its responses.
func zipping(log *truth, pause func(i int) time.Duration) func(net.Conn) {
	return func(c net.Conn) {
		prompts(c, func(p prompt) error {
			_, err := io.WriteString(c, strings.TrimSuffix(streamHead, "\r\n")+
				"Content-Encoding: gzip\r\n\r\n")
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			var at []int64
			send := func(text string) { // it notes when, because the compressor takes its time
				packed.Reset()
				_, _ = io.WriteString(z, text)
				_ = z.Flush()
				at = append(at, time.Now().UnixNano())
				if err == nil {
					_, err = io.WriteString(c, chunkOf(packed.String()))
				}
			}
			for i := range p.Tokens {
				time.Sleep(pause(i))
				send(event(fmt.Sprintf("t%d ", i)))
			}
			log.note(p.Seed, at)
			send(ending)
			if err == nil {
				_, err = io.WriteString(c, "0\r\n\r\n")
			}
			return err
		})
	}
}

// gateway is a relay that writes heads, chunks and JSON of its own.
type gateway struct {
	machine *machine
	to      string
	log     *truth
	// write is called with each token when it came, and how to pass tokens on.
	write func(text string, pass func(texts ...string) error) error
	end   func(pass func(texts ...string) error) error // nil: nothing is left at the end
	noID  bool                                         // it does not pass on the request's ID
	blind bool                                         // nor its seed
	// seedless means that it passes on the ID without the seed.
	seedless bool
	// first is called before each request, with the connection to the server; nil: nothing is done.
	first func(p prompt, up *upstream) error
	asked func(p prompt, up *upstream) error // the same after each request
	// answered is called after each response; nil: nothing is done.
	answered func(p prompt) error
	again    bool // it makes a request once more if the server did not answer

	// kept is a connection to the server for all requests, one at a time; nil: each client's
	// connection has one of its own.
	kept *upstream
}

// slowly passes each token on later.
func slowly(text string, pass func(...string) error) error {
	time.Sleep(20 * ms)
	return pass(text)
}

// inThrees passes tokens on when there are three.
func inThrees() func(text string, pass func(...string) error) error {
	var held []string
	return func(text string, pass func(...string) error) error {
		if text == "t0 " {
			held = nil
		}
		if held = append(held, text); len(held) < 3 {
			return nil
		}
		err := pass(held...)
		held = nil
		return err
	}
}

type upstream struct {
	mu sync.Mutex
	net.Conn
	br *bufio.Reader
}

func (g *gateway) serve(c net.Conn) {
	up := g.kept
	if up == nil {
		up = &upstream{}
		defer func() {
			if up.Conn != nil {
				up.Close()
			}
		}()
	}
	prompts(c, func(p prompt) (err error) {
		up.mu.Lock()
		defer up.mu.Unlock()
		r, err := g.ask(up, p)
		if err != nil && g.again {
			_ = up.Close()
			up.Conn = nil
			r, err = g.ask(up, p)
		}
		if err != nil {
			return err
		}
		return g.relay(c, p, r.Body)
	})
}

// ask makes a request to the server.
func (g *gateway) ask(up *upstream, p prompt) (r *http.Response, err error) {
	if up.Conn == nil {
		if up.Conn, _, err = g.machine.dial(context.Background(), "tcp", g.to); err != nil {
			return nil, err
		}
		up.br = bufio.NewReader(up)
	}
	if g.first != nil {
		if err := g.first(p, up); err != nil {
			return nil, err
		}
	}
	if g.noID || g.blind {
		p.id = "other"
	}
	body := p.body
	if g.blind || g.seedless {
		body = fmt.Appendf(nil, "{\"seed\":%d,\"max_tokens\":%d}", p.Seed-1e9, p.Tokens)
	}
	_, err = fmt.Fprintf(up, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"+
		"X-Request-Id: %s\r\nContent-Length: %d\r\n\r\n%s", p.id, len(body), body)
	if err == nil && g.asked != nil {
		err = g.asked(p, up)
	}
	if err != nil {
		return nil, err
	}
	return http.ReadResponse(up.br, nil)
}

func (g *gateway) relay(c net.Conn, p prompt, body io.Reader) error {
	var at []int64
	pass := func(texts ...string) error {
		for range texts {
			at = append(at, time.Now().UnixNano())
		}
		_, err := io.WriteString(c, chunkOf(fmt.Sprintf(
			"data: {\"id\":\"g\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n",
			strings.Join(texts, ""))))
		return err
	}
	if _, err := io.WriteString(c, streamHead); err != nil {
		return err
	}
	came := make(chan string, p.Tokens) // tokens are read on while earlier ones are held
	go func() {
		defer close(came)
		lines := bufio.NewScanner(body)
		for lines.Scan() {
			var ev struct {
				Choices []struct{ Delta struct{ Content string } }
				Message struct{ Content string } // of Ollama
			}
			_ = json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &ev)
			text := ev.Message.Content
			if len(ev.Choices) > 0 {
				text = ev.Choices[0].Delta.Content
			}
			if text != "" {
				came <- text
			}
		}
	}()
	var failed error
	for text := range came {
		if failed == nil {
			failed = g.write(text, pass)
		}
	}
	if failed == nil && g.end != nil {
		failed = g.end(pass)
	}
	if failed != nil {
		return failed
	}
	g.log.note(p.Seed, at)
	_, err := io.WriteString(c, chunkOf(ending)+"0\r\n\r\n")
	if err == nil && g.answered != nil {
		err = g.answered(p)
	}
	return err
}

// talk is a client's requests over a route.
type talk struct {
	watch    *Watch
	endpoint *openai.Endpoint
}

// follow returns a client on a machine that follows its requests to a URL.
func follow(t testing.TB, m *machine, url string, tokens int) *talk {
	t.Helper()
	return followBy(t, m, url, tokens, m.dial)
}

// followBy does what follow does, with connections that dial opens.
func followBy(t testing.TB, m *machine, url string, tokens int, dial dialer) *talk {
	t.Helper()
	w, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	e, err := openai.New(url, openai.Options{Model: "m", MaxTokens: tokens, Dial: dial,
		Mark: w.Marker("r"), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	unseen, err := w.Follow(t.Context(), "r", m.pid, func() (openai.Facts, error) {
		return e.Probe(t.Context())
	})
	if err := errors.Join(unseen, err, w.Start()); err != nil {
		t.Fatal(err)
	}
	return &talk{w, e}
}

// followWrites calls follow and makes a first visit. It skips a test where servers' writes cannot
// be seen.
func followWrites(t *testing.T, m *machine, url string, tokens int) *talk {
	t.Helper()
	k := follow(t, m, url, tokens)
	k.visit(t, 1, 1)
	if k.watch.writes == nil {
		pathtest.SkipOrFail(t, "the writes of servers cannot be seen here")
	}
	return k
}
