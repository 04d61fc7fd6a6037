package observe

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"

	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const (
	patience = 2 * time.Minute
	ms       = time.Millisecond
)

// visit makes requests at once, each over a connection of its own.
func (k *talk) visit(t testing.TB, sessions, requests int) (*sample.Evidence, []*openai.Response) {
	t.Helper()
	return k.visitBeside(t, sessions, requests, func() error { return nil })
}

// visitBeside makes requests as visit does, while another client does something.
func (k *talk) visitBeside(t testing.TB, sessions, requests int, other func() error) (
	*sample.Evidence, []*openai.Response) {
	t.Helper()
	v, err := k.watch.Begin(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	others := make(chan error, 1)
	go func() { others <- other() }()
	type result struct {
		all []*openai.Response
		err error
	}
	results := make(chan result, sessions)
	for range sessions {
		go func() {
			s := k.endpoint.Open()
			defer s.Close()
			var x result
			for range requests {
				r, err := s.Ask(t.Context())
				if x.err = err; err != nil {
					break
				}
				v.Add(r)
				x.all = append(x.all, r)
			}
			results <- x
		}()
	}
	var all []*openai.Response
	for range sessions {
		x := <-results
		if x.err != nil {
			t.Fatal(x.err)
		}
		all = append(all, x.all...)
	}
	if err := <-others; err != nil {
		t.Fatal(err)
	}
	e, err := v.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return e, all
}

// divided returns the evidence that the servers' and relays' own logs give of responses. What is
// before the server's and behind the last relay's writing counts as the server's and the wire's.
func divided(
	t testing.TB,
	all []*openai.Response,
	server *truth,
	relays ...*truth,
) *sample.Evidence {
	sums := tokens.NewSums(len(relays))
	for _, r := range all {
		var rows []tokens.Row
		wrote := server.of(int64(r.Mark))
		if len(wrote) == 0 {
			t.Fatalf("the server has no log of %d", r.Mark)
		}
		for i, at := range wrote {
			row := tokens.Row{0, at - r.Began.UnixNano(), 0, 0}
			for _, l := range relays {
				row = append(row, l.of(int64(r.Mark))[i]-at)
				at = l.of(int64(r.Mark))[i]
			}
			read := r.Began.UnixNano() + int64(
				r.Arrivals[min(i*len(r.Arrivals)/len(wrote), len(r.Arrivals)-1)],
			)
			rows = append(rows, append(row, read-at, 0))
		}
		sums.Add(rows, 0)
	}
	e := &sample.Evidence{}
	sums.Note(e)
	return e
}

// like fails if the shares of an evidence's parts differ from the truth's by more than points.
func like(t testing.TB, got, want *sample.Evidence, points float64) {
	t.Helper()
	sum := func(e *sample.Evidence, of func(sample.EvidencePart) float64, parts ...string) (x float64) {
		for _, p := range e.Parts {
			for _, name := range parts {
				if p.Part == name {
					x += of(p)
				}
			}
		}
		return x
	}
	every := []string{sample.EvidenceRequest, sample.EvidenceServer, sample.EvidenceTCP,
		sample.EvidenceQueue, sample.EvidenceRelay, sample.EvidenceWire, sample.EvidenceClient}
	for name, of := range map[string]func(sample.EvidencePart) float64{
		"first":  func(p sample.EvidencePart) float64 { return p.First },
		"last":   func(p sample.EvidencePart) float64 { return p.Last },
		"excess": func(p sample.EvidencePart) float64 { return p.Excess },
	} {
		whole := max(sum(got, of, every...), sum(want, of, every...))
		if whole == 0 {
			continue
		}
		for _, group := range [][]string{every[:2], every[4:5], {every[2], every[3], every[5], every[6]}} {
			a, b := sum(got, of, group...), sum(want, of, group...)
			if 100*math.Abs(a-b) > points*whole {
				t.Errorf("%s, %s: %.1f ms, by the logs %.1f ms, of %.1f", name, group[0], 1e3*a,
					1e3*b, 1e3*whole)
			}
		}
	}
}

func steady(d time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return d }
}

// stalling passes each fifth token on late.
func stalling(text string, pass func(...string) error) error {
	if strings.HasSuffix(text, "4 ") || strings.HasSuffix(text, "9 ") {
		time.Sleep(40 * ms)
	}
	return pass(text)
}

// bursty pauses long before each ninth token.
func bursty(i int) time.Duration {
	if i > 0 && i%9 == 0 {
		return 60 * ms
	}
	return 4 * ms
}

func TestParts(t *testing.T) {
	const n = 24
	type scenario struct {
		pause    func(int) time.Duration
		together bool
		gateway  func(*gateway)
		merges   bool // and hides the request's ID
		zipped   bool // by the server
	}
	var held []string
	for name, tt := range map[string]scenario{
		"direct":         {pause: steady(10 * ms)},
		"bursty, direct": {pause: bursty},
		"together":       {pause: steady(10 * ms), together: true},
		"compressed":     {pause: bursty, zipped: true},
		"bursty, smoothed": {pause: bursty, gateway: func(g *gateway) {
			g.write = func(text string, pass func(...string) error) error {
				time.Sleep(11 * ms)
				return pass(text)
			}
		}},
		"held first": {pause: steady(10 * ms), gateway: func(g *gateway) {
			g.write = func(text string, pass func(...string) error) error {
				if text == "t0 " {
					time.Sleep(200 * ms)
				}
				return pass(text)
			}
		}},
		"slow relay": {pause: steady(10 * ms), gateway: func(g *gateway) {
			g.write = slowly
		}},
		"bursty, and the relay stalls": {pause: bursty, gateway: func(g *gateway) {
			g.write = stalling
		}},
		"replayed": {pause: steady(10 * ms), gateway: func(g *gateway) {
			g.write = func(text string, _ func(...string) error) error {
				if text == "t0 " {
					held = nil
				}
				held = append(held, text)
				return nil
			}
			g.end = func(pass func(...string) error) error {
				for _, text := range held {
					if err := pass(text); err != nil {
						return err
					}
				}
				return nil
			}
		}},
		"three in one": {pause: steady(10 * ms), merges: true, gateway: func(g *gateway) {
			g.noID = true
			g.write = inThrees()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			var server, relay truth
			answer := model(&server, tt.pause, tt.together)
			if tt.zipped {
				answer = zipping(&server, tt.pause)
			}
			m.serve(t, "127.0.0.1:7001", answer)
			url, logs := "http://127.0.0.1:7001", []*truth(nil)
			if tt.gateway != nil {
				g := &gateway{machine: m, to: "127.0.0.1:7001", log: &relay}
				tt.gateway(g)
				m.serve(t, "127.0.0.1:7002", g.serve)
				url, logs = "http://127.0.0.1:7002", []*truth{&relay}
			}
			k := follow(t, m, url, n)
			testwait.Unhindered(t, patience, func(u testing.TB) {
				e, all := k.visit(u, 1, 2)
				if why, ok := e.Clear(); !ok || e.Tokens != 2*n || e.Others != 0 {
					u.Fatalf("%s: %+v", why, e)
				}
				hard := testwait.Hard(u)
				if want := 2; tt.merges && e.BySeed != want || !tt.merges && e.ByID != want {
					hard.Errorf("recognized: %+v", e)
				}
				like(u, e, divided(u, all, &server, logs...), 5)
				if end := (all[0].End + all[1].End).Seconds() / 2; math.Abs(e.End-end) > 1e-9 {
					hard.Errorf("responses end after %v s, want %v", e.End, end)
				}
				if k.watch.writes != nil && !e.Writes {
					hard.Error("writes were not seen")
				}
				if b, err := json.Marshal(e); err != nil || bytes.Contains(b, []byte("t1 ")) {
					hard.Errorf("a token's text is kept: %s, %v", b, err)
				}
			})
		})
	}
}

// Tokens that wait in the server's TCP for an acknowledgement are its TCP's, and not its own. The
// first packets of a connection are acknowledged at once, later ones after 40 ms.
func TestNagle(t *testing.T) {
	const n, requests = 12, 6
	m := newMachine(t)
	var server truth
	answer := model(&server, steady(15*ms), false)
	m.serve(t, "127.0.0.1:7001", func(c net.Conn) {
		if err := c.(*net.TCPConn).SetNoDelay(false); err == nil {
			answer(c)
		}
	})
	k := followWrites(t, m, "http://127.0.0.1:7001", n)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, all := k.visit(u, 1, requests)
		like(u, e, divided(u, all, &server), 5)
		waited := map[string]sample.EvidenceWait{}
		for _, w := range e.Waits {
			waited[w.Cause] = w
		}
		w := waited[sample.WaitNagle]
		delete(waited, sample.WaitOther) // a busy machine
		if len(waited) != 1 || w.Tokens < requests || w.Sum < 0.020*requests {
			u.Errorf("%+v", e.Waits)
		}
	})
}

// A server that writes a token in one piece, too, waits for an acknowledgement if the one before is
// not acknowledged: of a response over a kept connection, the second token. Of a short response that
// is most of the time.
func TestNagleOfSecondTokens(t *testing.T) {
	const n, requests = 4, 6
	m := newMachine(t)
	var server truth
	m.serve(t, "127.0.0.1:7001", func(c net.Conn) {
		if err := c.(*net.TCPConn).SetNoDelay(false); err != nil {
			return
		}
		prompts(c, func(p prompt) (err error) {
			var at []int64
			text := streamHead
			for i := range p.Tokens {
				time.Sleep(5 * ms)
				at = append(at, time.Now().UnixNano())
				_, err = io.WriteString(c, text+chunkOf(event(fmt.Sprintf("t%d ", i))))
				text = ""
			}
			server.note(p.Seed, at)
			_, errEnd := io.WriteString(c, chunkOf(ending)+"0\r\n\r\n")
			return errors.Join(err, errEnd)
		})
	})
	k := followWrites(t, m, "http://127.0.0.1:7001", n)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, all := k.visit(u, 1, requests)
		like(u, e, divided(u, all, &server), 5)
		whole := 0.0
		for _, p := range e.Parts {
			whole += p.Last
		}
		nagle := slices.IndexFunc(e.Waits, func(w sample.EvidenceWait) bool {
			return w.Cause == sample.WaitNagle
		})
		if e.Parts[tokens.TCP].Last < whole/4 || nagle < 0 || e.Waits[nagle].Tokens < requests-1 ||
			e.Parts[tokens.TCP].Excess < e.Excess/2 {
			u.Errorf("%+v", e)
		}
	})
}

// joined returns two machines with a link between them, 10.9.0.1 and 10.9.0.2.
func joined(t testing.TB) (client, server *machine) {
	t.Helper()
	client, server = newMachine(t), newMachine(t)
	tid, err := server.TID()
	if err != nil {
		t.Fatal(err)
	}
	err = client.Do(func() error { return link.AddVeth("eth0", "eth0", tid) })
	for i, m := range []*machine{client, server} {
		if err != nil {
			break
		}
		err = m.Do(func() error {
			addr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, 0, byte(i + 1)}), 24)
			return errors.Join(link.AddAddr("eth0", addr), link.Up("eth0"))
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

// filtered loads rules into a machine.
func filtered(t testing.TB, m *machine, rules string) {
	t.Helper()
	if _, err := exec.LookPath("nft"); err != nil {
		pathtest.SkipOrFail(t, "no nft")
	}
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	var out strings.Builder
	cmd.Stderr = &out
	err := m.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
}

// A packet filter may change the addresses of a route, and drop packets behind the capture.
func TestFiltered(t *testing.T) {
	const n = 60
	for name, tt := range map[string]struct {
		rules  string
		url    string
		points float64
	}{
		"redirected": {`table ip t { chain o { type nat hook output priority -100;
			tcp dport 8080 dnat to 10.9.0.2:7001; }; }`, "http://10.9.0.9:8080", 5},
		"loss": {`table ip t { chain i { type filter hook input priority 0;
			tcp sport 7001 numgen random mod 20 == 0 drop; }; }`, "http://10.9.0.2:7001", 10},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := joined(t)
			var log truth
			server.serve(t, "10.9.0.2:7001", model(&log, steady(4*ms), false))
			filtered(t, client, tt.rules)
			k := follow(t, client, tt.url, n)
			testwait.Unhindered(t, patience, func(u testing.TB) {
				e, all := k.visit(u, 2, 2)
				if why, ok := e.Clear(); !ok || e.ByID != 4 {
					u.Fatalf("%s: %+v", why, e)
				}
				like(u, e, divided(u, all, &log), tt.points)
			})
		})
	}
}

// A server that answers with the request's ID, as many do, is not taken for a relay.
func TestRepeatedID(t *testing.T) {
	const n = 20
	m := newMachine(t)
	m.serve(t, "127.0.0.1:7001", func(c net.Conn) {
		prompts(c, func(p prompt) error {
			_, err := io.WriteString(c, strings.TrimSuffix(streamHead, "\r\n")+"X-Request-Id: "+p.id+
				"\r\n\r\n")
			for i := range p.Tokens {
				time.Sleep(2 * ms)
				_, _ = io.WriteString(c, chunkOf(event(fmt.Sprintf("t%d ", i))))
			}
			_, _ = io.WriteString(c, chunkOf(ending)+"0\r\n\r\n")
			return err
		})
	})
	m.serve(t, "127.0.0.1:7002", (&gateway{machine: m, to: "127.0.0.1:7001", log: &truth{},
		write: func(text string, pass func(...string) error) error { return pass(text) }}).serve)
	for port, hops := range map[string]int{"7001": 1, "7002": 2} {
		e, _ := follow(t, m, "http://127.0.0.1:"+port, n).visit(t, 2, 2)
		if why, ok := e.Clear(); !ok || e.ByID != e.Responses || len(e.Hops) != hops {
			t.Errorf("%s: %s: %+v", port, why, e)
		}
	}
}

// The queue of the server's device, which others fill, is not the server's.
func TestFullQueue(t *testing.T) {
	const n = 12
	client, server := joined(t)
	var log truth
	pad := ": " + strings.Repeat("x", 20_000) + "\n\n"
	server.serve(t, "10.9.0.2:7001", fat(&log, steady(40*ms), false, pad))
	client.serve(t, "10.9.0.1:7003", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	err := server.Do(func() error { return link.SetShape("eth0", link.Shape{Rate: 20e6}) })
	if err != nil {
		t.Fatal(err)
	}
	k := follow(t, client, "http://10.9.0.2:7001", n)
	defer server.fill(t, "10.9.0.1:7003")()
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, responses := k.visit(u, 1, 2)
		if k.watch.writes == nil {
			pathtest.SkipOrFail(t, "the writes of servers cannot be seen here")
		}
		like(u, e, divided(u, responses, &log), 5)
		if queue, others := waits(e, sample.WaitQueue); queue < n/2 || others > queue/4 {
			u.Errorf("%+v", e.Waits)
		}
		if p := e.Parts; p[tokens.TCP].Last+p[tokens.Queue].Last < p[tokens.Queue+1].Last {
			u.Errorf("the wire has more than TCP and the queue: %+v", p)
		}
	})
}

// After a loss the server's congestion window is small: its tokens wait for acknowledgements, though
// it sets TCP_NODELAY.
func TestFullWindow(t *testing.T) {
	const n = 40
	client, server := joined(t)
	err := server.Do(func() error { return sysctl.Set("net.ipv4.tcp_congestion_control", "reno") })
	if err != nil {
		t.Fatal(err)
	}
	var log truth
	pad := ": " + strings.Repeat("x", 8000) + "\n\n"
	server.serve(t, "10.9.0.2:7001", fat(&log, steady(4*ms), false, pad))
	filtered(t, client, `table ip t { chain i { type filter hook input priority 0;
		tcp sport 7001 numgen random mod 12 == 0 drop; }; }`)
	k := followWrites(t, client, "http://10.9.0.2:7001", n)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, _ := k.visit(u, 1, 2)
		if why, ok := e.Clear(); !ok {
			u.Fatalf("%s: %+v", why, e)
		}
		if window, others := waits(e, sample.WaitCongestion); window < n/10 || others > window/4 {
			u.Errorf("%+v", e.Waits)
		}
	})
}

// waits returns the number of tokens that waited in the server's TCP for a cause, and for others
// but those of a busy machine.
func waits(e *sample.Evidence, cause string) (tokens, others int) {
	for _, w := range e.Waits {
		switch w.Cause {
		case cause:
			tokens = w.Tokens
		case sample.WaitOther:
		default:
			others += w.Tokens
		}
	}
	return tokens, others
}

// fill sends bytes to an address until the returned function is called, so that queues on the way
// are full.
func (m *machine) fill(t *testing.T, to string) (stop func()) {
	t.Helper()
	c, _, err := m.dial(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { _, _ = io.Copy(c, zeros{}) })
	return func() {
		_ = c.Close()
		all.Wait()
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// A relay that keeps a connection to the server, which is older than the capture, and passes on
// neither ID nor seed; several sessions ask at once for the same text.
func TestBlindRelay(t *testing.T) {
	const n, sessions, requests = 12, 4, 3
	for name, kept := range map[string]*upstream{"kept": {}, "own": nil} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			var server, relay truth
			m.serve(t, "127.0.0.1:7001", model(&server, steady(5*ms), false))
			g := &gateway{machine: m, to: "127.0.0.1:7001", log: &relay, kept: kept, noID: true,
				write: func(text string, pass func(...string) error) error {
					time.Sleep(2 * ms)
					return pass(text)
				}}
			m.serve(t, "127.0.0.1:7002", g.serve)
			k := follow(t, m, "http://127.0.0.1:7002", n)
			g.blind = true
			if kept != nil {
				t.Cleanup(func() { kept.Close() })
			}
			testwait.Unhindered(t, patience, func(u testing.TB) {
				e, _ := k.visitBeside(u, sessions, requests, func() error {
					return askOnce(m, "127.0.0.1:7001")
				})
				if why, ok := e.Clear(); !ok || e.ByText != sessions*requests ||
					e.Tokens != sessions*requests*n || e.Others != 1 {
					u.Errorf("%s: %+v", why, e)
				}
			})
		})
	}
}

// askOnce makes another client's request.
func askOnce(m *machine, at string) error {
	c, _, err := m.dial(context.Background(), "tcp", at)
	if err != nil {
		return err
	}
	defer c.Close()
	const body = `{"max_tokens":2}`
	_, err = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body),
		body)
	if err != nil {
		return err
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err
}

// sealed returns a function that adds TLS to a server, for a client that trusts it. It is for one
// test only, because authorities are read once.
func sealed(t *testing.T) func(func(net.Conn)) func(net.Conn) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	file := filepath.Join(t.TempDir(), "cert.pem")
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
	config := &tls.Config{Certificates: s.TLS.Certificates}
	return func(serve func(net.Conn)) func(net.Conn) {
		return func(c net.Conn) { serve(tls.Server(c, config)) }
	}
}

// dockerProxy runs a docker-proxy on a machine.
func dockerProxy(t *testing.T, m *machine, proto, host string, port int, to string, toPort int) {
	t.Helper()
	if _, err := exec.LookPath("docker-proxy"); err != nil {
		pathtest.SkipOrFail(t, "%v: make deps", err)
	}
	ready, tell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	cmd := exec.Command("docker-proxy", "-proto", proto, "-host-ip", host, "-host-port",
		strconv.Itoa(port), "-container-ip", to, "-container-port", strconv.Itoa(toPort))
	cmd.ExtraFiles = []*os.File{tell}
	err = m.Start(cmd)
	tell.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if said, err := bufio.NewReader(ready).ReadString('\n'); err != nil || said != "0\n" {
		t.Fatalf("docker-proxy: %q, %v", said, err)
	}
}

// Over TLS, tokens are found by the bytes that the client counted, also behind relays that copy
// them.
func TestSealed(t *testing.T) {
	const n = 24
	seal := sealed(t)
	for name, tt := range map[string]struct {
		gateway, proxied bool
		hops             []uint16 // ports
	}{
		"server":                     {hops: []uint16{7443}},
		"gateway":                    {gateway: true, hops: []uint16{7001, 7443}},
		"server behind docker-proxy": {proxied: true, hops: []uint16{7444, 7443}},
		"gateway behind docker-proxy": {gateway: true, proxied: true,
			hops: []uint16{7001, 7444, 7443}},
	} {
		t.Run(name, func(t *testing.T) {
			client, other := joined(t)
			var server, relay truth
			serve, logs := model(&server, bursty, false), []*truth(nil)
			if tt.gateway {
				other.serve(t, "127.0.0.1:7001", serve)
				g := &gateway{machine: other, to: "127.0.0.1:7001", log: &relay,
					write: func(text string, pass func(...string) error) error {
						time.Sleep(5 * ms)
						return pass(text)
					}}
				serve, logs = g.serve, []*truth{&relay}
			}
			if tt.proxied {
				other.serve(t, "127.0.0.1:7444", seal(serve))
				dockerProxy(t, other, "tcp", "10.9.0.2", 7443, "127.0.0.1", 7444)
			} else {
				other.serve(t, "0.0.0.0:7443", seal(serve))
			}
			filtered(t, client, `table ip t { chain o { type nat hook output priority -100;
				ip daddr 127.0.0.1 tcp dport 443 dnat to 10.9.0.2:7443; };
				chain p { type nat hook postrouting priority 100; oifname eth0 masquerade; }; }`)
			err := client.Do(func() error {
				return sysctl.Set("net.ipv4.conf.eth0.route_localnet", "1")
			})
			if err != nil {
				t.Fatal(err)
			}
			k := follow(t, client, "https://127.0.0.1", n)
			testwait.Unhindered(t, patience, func(u testing.TB) {
				e, all := k.visit(u, 2, 2)
				if why, ok := e.Clear(); !ok || e.Tokens != 4*n {
					u.Fatalf("%s: %+v", why, e)
				}
				var hops []uint16
				for _, h := range e.Hops {
					hops = append(hops, h.Port)
				}
				if !slices.Equal(hops, tt.hops) ||
					tt.proxied && e.Hops[len(hops)-1].Process != "docker-proxy" {
					testwait.Hard(u).Errorf("hops %+v, want ports %v", e.Hops, tt.hops)
				}
				like(u, e, divided(u, all, &server, logs...), 5)
			})
		})
	}
}

// A relay that copies bytes, and reads seldom with a small buffer, holds the server's TCP up.
func TestReaderThatDoesNotRead(t *testing.T) {
	const n = 20
	m := newMachine(t)
	var server truth
	pad := ": " + strings.Repeat("x", 50_000) + "\n\n"
	m.serve(t, "127.0.0.1:7001", fat(&server, steady(2*ms), false, pad))
	m.serve(t, "127.0.0.1:7002", func(c net.Conn) {
		up, _, err := m.dial(context.Background(), "tcp", "127.0.0.1:7001")
		if err != nil {
			return
		}
		defer up.Close()
		_ = up.(*net.TCPConn).SetReadBuffer(32 << 10)
		go func() {
			_, _ = io.Copy(up, c)
			up.Close()
		}()
		b := make([]byte, 32<<10)
		for {
			k, err := up.Read(b)
			if err != nil {
				return
			}
			if _, err := c.Write(b[:k]); err != nil {
				return
			}
			time.Sleep(5 * ms)
		}
	})
	k := followWrites(t, m, "http://127.0.0.1:7002", n)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, _ := k.visit(u, 1, 1)
		if why, ok := e.Clear(); !ok || len(e.Hops) != 2 || e.Hops[1].Port != 7002 {
			u.Fatalf("%s: %+v", why, e)
		}
		window, others := waits(e, sample.WaitWindow)
		if window < n/2 || others > window/4 {
			u.Errorf("%+v", e.Waits)
		}
	})
}

// TestFollowBesideOthers follows a route whose namespace is full of others' packets: more pass in a
// millisecond than a small ring holds.
func TestFollowBesideOthers(t *testing.T) {
	m := newMachine(t)
	log := &truth{}
	m.serve(t, "127.0.0.1:8000", model(log, func(int) time.Duration { return ms }, false))
	m.serve(t, "127.0.0.1:9000", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	c, _, err := m.dial(t.Context(), "tcp", "127.0.0.1:9000")
	if err != nil {
		t.Fatal(err)
	}
	var over sync.WaitGroup
	over.Go(func() {
		for b := make([]byte, 1<<20); err == nil; {
			_, err = c.Write(b)
		}
	})
	defer over.Wait()
	defer c.Close()
	k := follow(t, m, "http://127.0.0.1:8000", 3)
	if r := k.watch.routes["r"]; len(r.hops) != 1 || r.hops[0].to.Port() != 8000 {
		t.Errorf("hops %+v", r.hops)
	}
}

// A ring that lost packets may have lost those of a hop.
func TestFollowAgain(t *testing.T) {
	type attempt struct {
		hops, full int
		unseen     error
	}
	other := errors.New("other")
	for name, tt := range map[string]struct {
		attempts []attempt
		hops     int
		unsure   bool
		unseen   error
	}{
		"nothing lost":          {[]attempt{{1, 0, nil}}, 1, false, nil},
		"a hop lost":            {[]attempt{{1, 2, nil}, {2, 0, nil}}, 2, false, nil},
		"a hop lost later":      {[]attempt{{2, 1, nil}, {1, 1, nil}}, 2, true, nil},
		"a hop lost, and later": {[]attempt{{1, 1, nil}, {2, 1, nil}}, 2, true, nil},
		"all lost, by luck":     {[]attempt{{1, 1, nil}, {0, 0, ErrUnseen}}, 1, true, nil},
		"fewer later":           {[]attempt{{2, 1, nil}, {1, 0, nil}}, 2, false, nil},
		"all lost later":        {[]attempt{{1, 1, nil}, {0, 1, ErrUnseen}}, 1, true, nil},
		"all lost first":        {[]attempt{{0, 1, ErrUnseen}, {2, 1, nil}}, 2, true, nil},
		"all lost":              {[]attempt{{0, 1, ErrUnseen}, {0, 1, ErrUnseen}}, 0, false, errFull},
		"not there":             {[]attempt{{0, 0, ErrUnseen}}, 0, false, ErrUnseen},
		"not there, by luck":    {[]attempt{{0, 1, ErrUnseen}, {0, 0, ErrUnseen}}, 0, false, ErrUnseen},
		"another reason":        {[]attempt{{0, 1, other}}, 0, false, other},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			r, unseen, err := retryWithLargerRings(func(busy []int) (*route, []int, error, error) {
				if n == len(tt.attempts) || n == 1 && len(busy) != tt.attempts[0].full {
					t.Fatalf("attempt %d, for %d rings", n, len(busy))
				}
				a := tt.attempts[n]
				n++
				return &route{hops: make([]hop, a.hops)}, make([]int, a.full), a.unseen, nil
			})
			if err != nil || !errors.Is(unseen, tt.unseen) || tt.unseen == nil && unseen != nil ||
				n != len(tt.attempts) || unseen == nil && (len(r.hops) != tt.hops || r.unsure != tt.unsure) {
				t.Errorf("%+v after %d attempts: %v, %v", r, n, unseen, err)
			}
		})
	}
}
