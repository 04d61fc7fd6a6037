package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// written is one write of a response, after a wait.
type written struct {
	after time.Duration
	text  string
}

// serveWrites serves responses of the given writes over kept connections. nagle leaves TCP_NODELAY
// off, as most languages do.
func serveWrites(t testing.TB, nagle bool, writes []written) (at string) {
	t.Helper()
	return testnet.Serve(t, func(c net.Conn) {
		_ = c.(*net.TCPConn).SetNoDelay(!nagle)
		answerWith(c, writes)
	}).String()
}

func answerWith(c net.Conn, writes []written) {
	in := bufio.NewReader(c)
	for {
		first, length := "", 0
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if line = strings.TrimSpace(line); line == "" {
				break
			}
			if first == "" {
				first = line
			}
			if n, is := strings.CutPrefix(strings.ToLower(line), "content-length:"); is {
				length, _ = strconv.Atoi(strings.TrimSpace(n))
			}
		}
		if _, err := io.CopyN(io.Discard, in, int64(length)); err != nil {
			return
		}
		send := writes
		if strings.HasPrefix(first, "GET") {
			send = []written{{0, "HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n" +
				`{"data":[{"id":"m"}]}`}}
		}
		for _, w := range send {
			time.Sleep(w.after)
			if _, err := io.WriteString(c, w.text); err != nil {
				return
			}
		}
	}
}

func chunked(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

func said(words int) string {
	return `data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("a ", words) +
		`"}}]}` + "\n\n"
}

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: " +
		"chunked\r\n\r\n"
	firstAfter = 30 * time.Millisecond
	gapAfter   = 8 * time.Millisecond
	tokenCount = 24
)

func streamEnd() string { return chunked("data: [DONE]\n\n") + "0\r\n\r\n" }

// seenBy is what a client saw of responses: all gaps, and the first token of each.
type seenBy struct {
	events, glued int
	first, gaps   []float64 // s
}

func middle(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	xs = slices.Sorted(slices.Values(xs))
	return xs[len(xs)/2]
}

// plainClient asks n times over one connection. It shares no code with toll: it reads what a read
// brings, and looks for lines of data in it.
func plainClient(t testing.TB, at string, n int) (out seenBy) {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := fmt.Sprintf(`{"model":"m","stream":true,"max_tokens":%d}`, tokenCount)
	for range n {
		began := time.Now()
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: "+
			"x\r\nContent-Length: %d\r\n\r\n%s",
			len(body), body)
		var last time.Time
		var rest []byte
		piece := make([]byte, 64<<10)
		for !bytes.HasSuffix(rest, []byte("0\r\n\r\n")) {
			k, err := c.Read(piece)
			if err != nil {
				t.Fatal(err)
			}
			now, tokens := time.Now(), 0
			rest = append(rest, piece[:k]...)
			for {
				line, more, whole := bytes.Cut(rest, []byte("\n\n"))
				if !whole {
					break
				}
				rest = more
				_, data, _ := bytes.Cut(line, []byte("data: "))
				if !json.Valid(data) || !bytes.Contains(data, []byte(`"content":"a`)) {
					continue
				}
				if tokens++; last.IsZero() {
					out.first = append(out.first, now.Sub(began).Seconds())
				} else {
					out.gaps = append(out.gaps, now.Sub(last).Seconds())
				}
				last = now
			}
			if out.events += tokens; tokens > 1 {
				out.glued += tokens
			}
		}
	}
	return out
}

// relayTo starts a relay that passes on what comes.
func relayTo(t testing.TB, to string) (at string) {
	t.Helper()
	return testnet.Serve(t, func(c net.Conn) {
		s, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(s, c); s.Close() }()
		_, _ = io.Copy(c, s)
	}).String()
}

// Servers that make the whole response first, and others: toll sees what a client sees, directly
// and through a relay.
func TestStreamSeesWhatAClientSees(t *testing.T) {
	steady := []written{{0, streamHead}, {firstAfter, chunked(said(1))}}
	whole := firstAfter + (tokenCount-1)*gapAfter
	together, paced := streamHead, []written{{0, streamHead}, {whole, chunked(said(1))}}
	for range tokenCount {
		together += chunked(said(1))
	}
	for range tokenCount - 1 {
		steady = append(steady, written{gapAfter, chunked(said(1))})
		paced = append(paced, written{2 * time.Millisecond, chunked(said(1))})
	}
	three := []written{{0, streamHead}}
	for range tokenCount / 3 {
		three = append(three, written{3 * gapAfter, chunked(said(3))})
	}
	for name, tt := range map[string]struct {
		writes []written
		held   bool // by the server: that must be said
	}{
		"steady":     {append(steady, written{0, streamEnd()}), false},
		"together":   {[]written{{whole, together + streamEnd()}}, true},
		"then paced": {append(paced, written{0, streamEnd()}), false},
		"one event": {[]written{{whole, streamHead + chunked(said(tokenCount)) + streamEnd()}},
			false},
		"three in one": {append(three, written{0, streamEnd()}), false},
		"without an end": {append(slices.Clone(steady),
			written{0, chunked(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+
				"\n\n") + "0\r\n\r\n"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			besideLabs(t) // it waits for tokens
			direct := serveWrites(t, false, tt.writes)
			relayed := relayTo(t, direct)
			testwait.Unhindered(t, 2*patience, func(u testing.TB) {
				r := startToll(t, tollInPath, nil, "stream", "direct=http://"+direct,
					"relayed=http://"+relayed, "--rounds", "3", "--tokens",
					strconv.Itoa(tokenCount),
					"--quiet", "--format", "json")
				if code, _ := r.wait(t, 2*patience); code != exitOK {
					t.Fatalf("exit code %d\n%s", code, r.errOut.String())
				}
				report := readReport(t, r.out.Bytes())
				for i, at := range []string{direct, relayed} {
					want := plainClient(u, at, 3)
					m := report.Cells[i].Metrics
					compare(u, at, m[workload.Words].Median, float64(want.events)/3, 0)
					compare(u, at, m[workload.FirstTokenP50].Median, middle(want.first), 0.25)
					compare(u, at, m[workload.Glued].Median,
						float64(want.glued)/float64(want.events), 0)
					if _, ok := m[workload.GapP50]; ok != (len(want.gaps) > 0) {
						u.Errorf("%s: gaps %v, the client's %v", at, m[workload.GapP50], want.gaps)
					} else if ok {
						compare(u, at, m[workload.GapP50].Median, middle(want.gaps), 0.25)
					}
				}
				held := finds(report, endpoints.GatewayUnknown, "direct", "")
				if os.Geteuid() == 0 { // toll sees tokens leave the server
					held = finds(report, endpoints.PartBlamed, "direct", sample.EvidenceServer)
				}
				if tt.held && !held {
					u.Errorf("the server is not said to hold tokens back: %+v", report.Found)
				}
				for _, route := range []string{"direct", "relayed"} {
					if finds(report, endpoints.BlameNetwork, route, "") ||
						finds(report, endpoints.PartBlamed, route, sample.EvidenceWire) {
						u.Errorf("the network is blamed over %s: %+v", route, report.Found)
					}
				}
			})
		})
	}
}

// compare fails unless two values differ by at most a share of the larger one, or half a
// millisecond.
func compare(t testing.TB, of string, got, want, share float64) {
	t.Helper()
	const little = 0.5e-3
	if d := math.Abs(got - want); math.IsNaN(d) || d > share*max(got, want)+little {
		t.Errorf("%s: %g, a client sees %g", of, got, want)
	}
}

// A server without TCP_NODELAY that ends its responses with a write of its own: over kept
// connections a client waits for delayed acknowledgements.
func TestStreamSeesDelaysThatAClientSees(t *testing.T) {
	writes := []written{{10 * time.Millisecond, streamHead + chunked(said(1))},
		{5 * time.Millisecond, chunked(said(1))}, {0, streamEnd()}}
	nagle, quick := serveWrites(t, true, writes), serveWrites(t, false, writes)
	testwait.Unhindered(t, 2*patience, func(u testing.TB) {
		const kept = 8
		if gap := middle(plainClient(u, nagle, kept).gaps); gap < 0.035 {
			u.Fatalf("this kernel does not delay acknowledgements: %g s", gap)
		}
		r := startToll(t, tollInPath, nil, "stream", "nagle=http://"+nagle, "quick=http://"+quick,
			"--baseline", "quick", "--rounds", "4", "--tokens", "2", "--requests",
			strconv.Itoa(kept),
			"--quiet", "--format", "json")
		if code, _ := r.wait(t, 2*patience); code != exitOK {
			t.Fatalf("exit code %d\n%s", code, r.errOut.String())
		}
		report := readReport(t, r.out.Bytes())
		for _, c := range report.Cells {
			at := map[string]string{"nagle": nagle, "quick": quick}[c.Label()]
			compare(u, c.Label(), c.Metrics[workload.GapP50].Median,
				middle(plainClient(u, at, kept).gaps), 0.25)
		}
		if !finds(report, endpoints.KeptDelay, "nagle", "") ||
			finds(report, endpoints.KeptDelay, "quick", "") {
			u.Errorf("%+v", report.Found)
		}
	})
}

// A server whose listen queue is full: the answer has what the kernel counted meanwhile.
func TestRunSeesAFullQueue(t *testing.T) {
	at := testnet.TCP(t)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	address := &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err := unix.Bind(fd, address); err != nil {
		t.Fatal(err)
	}
	const backlog = 1
	if err := unix.Listen(fd, backlog); err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "listener")
	l, err := net.FileListener(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond) // one after the other
			_ = c.SetDeadline(time.Now().Add(time.Second))
			_, _ = c.Read(make([]byte, 64))
			_, _ = io.WriteString(c, "ok\n")
			c.Close()
		}
	}()
	before := overflows(t)
	client := `for i in $(seq 12); do (exec 3<>/dev/tcp/{host}/{port}; ` +
		`echo hello >&3; timeout 20 cat <&3) & done; wait`
	r := startToll(t, tollInPath, nil, "run", at.String(), "--client", "bash -c '"+client+"'",
		"--rounds", "2", "--timeout", "1m", "--quiet")
	if code, _ := r.wait(t, 4*patience); code != exitOK {
		t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
	}
	most := overflows(t) - before
	out := strings.Join(strings.Fields(r.out.String()), " ")
	m := regexp.MustCompile(`listen queues in its network namespace overflowed (\d+) times`).
		FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no word of the queue, which overflowed %d times:\n%s", most, r.out.String())
	}
	if n, _ := strconv.Atoi(m[1]); n < 2 || n > most {
		t.Errorf("%d overflows, the kernel counted %d", n, most)
	}
}

// overflows returns ListenOverflows of this process's network namespace.
func overflows(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/net/netstat")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "TcpExt:") {
			rows = append(rows, strings.Fields(line))
		}
	}
	n, err := strconv.Atoi(rows[1][slices.Index(rows[0], "ListenOverflows")])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
