package fast

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/bigtcp"
	"github.com/bridgetoll/bridgetoll/internal/testwait"
)

// serving answers connections on a new port until the test ends.
func serving(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
			go func() {
				defer c.Close()
				answer(c)
			}()
		}
	}()
	return l.Addr().String()
}

// likeRedis answers PING with a payload as Redis does, and PING without one with says.
func likeRedis(says string) func(net.Conn) {
	return func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			switch {
			case strings.HasPrefix(line, "PING"):
				fmt.Fprint(c, says)
			case line == "*2\r\n":
				for range 3 { // $4, PING, $n
					if line, err = r.ReadString('\n'); err != nil {
						return
					}
				}
				var n int
				fmt.Sscanf(line, "$%d", &n)
				b := make([]byte, n+2)
				if _, err := io.ReadFull(r, b); err != nil {
					return
				}
				fmt.Fprintf(c, "$%d\r\n%s", n, b)
			default:
				fmt.Fprint(c, "-ERR unknown command\r\n")
				return
			}
		}
	}
}

func likePostgres(c net.Conn) {
	b := make([]byte, 8)
	if _, err := io.ReadFull(c, b); err != nil || string(b[4:]) != "\x04\xd2\x16\x2f" {
		return
	}
	fmt.Fprint(c, "N")
	_, _ = io.Copy(io.Discard, c)
}

func TestRecognize(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/broken":
			w.WriteHeader(http.StatusBadGateway)
		case "/close":
			w.Header().Set("Connection", "close")
		}
		fmt.Fprint(w, r.Method, n)
	}))
	t.Cleanup(page.Close)
	web := strings.TrimPrefix(page.URL, "http://")
	mute := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	hasty := func(c net.Conn) { fmt.Fprint(c, "220 mail\r\n"); mute(c) }
	for name, c := range map[string]struct {
		at   string
		port uint16
		want string
	}{
		"http":           {web, 80, "http /"},
		"http-elsewhere": {web, 6379, "http /"},
		"redis":          {serving(t, likeRedis("+PONG\r\n")), 6379, "redis"},
		"redis-password": {serving(t, likeRedis("-NOAUTH Authentication required.\r\n")), 80, "redis"},
		"postgres":       {serving(t, likePostgres), 5432, "postgres"},
		"greeting":       {serving(t, hasty), 25, "greeting"},
		"closes":         {serving(t, func(net.Conn) {}), 7, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := recognize(context.Background(), c.at, c.port)
			if s.name != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%q, %v", s.name, err)
			}
		})
	}
	redis, odd := serving(t, likeRedis("+PONG\r\n")), serving(t, func(c net.Conn) { fmt.Fprint(c, "X"); mute(c) })
	for _, c := range []struct{ word, at, fault string }{
		{"http:/a?b=c", web, ""}, {"post:/in", web, ""}, {"redis-bulk", redis, ""},
		{"http:/broken", web, "502"}, {"http:/close", web, errLast.Error()}, {"redis", web, "not Redis"}, {"postgres", odd, "not PostgreSQL"},
	} {
		s, err := speechOf(c.word, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if err := try(context.Background(), c.at, s, answering); (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v", c.word, err)
		}
	}
	for _, word := range []string{"", "ftp", "http:", "http:x", "http://host/x", "post", "post:", "redis:1", "http:/a b", "http:/a\r\nX: y"} {
		if err := ParseSpeech(word); err == nil {
			t.Errorf("%q is a load", word)
		}
	}
}

// onOff counts how often a trial turns fast on and off.
type onOff struct {
	on                atomic.Bool
	ons, offs, reread int
	kept              atomic.Int32
	fault, lapse      error
	through           map[uint16]uint64
}

func (o *onOff) toggle(on bool) error {
	if o.on.Store(on); on {
		o.ons++
	} else {
		o.offs++
	}
	return nil
}

func (o *onOff) refresh(context.Context) error { o.reread++; return o.fault }

func (o *onOff) keep(context.Context, bool) error { o.kept.Add(1); return o.lapse }

func (o *onOff) taken() (map[uint16]uint64, error) { return o.through, nil }

// A trial takes turns, with each state in each round. It fails if ctx ends or a port is gone.
func TestTrialTakesTurns(t *testing.T) {
	ask := func(word string) target {
		at := serving(t, likeRedis("+PONG\r\n"))
		s, err := speechOf(word, at)
		if err != nil {
			t.Fatal(err)
		}
		return target{dial: netip.MustParseAddrPort(at), load: s.load(at)}
	}
	tr, o := &Trial{Budget: time.Millisecond}, &onOff{}
	out, err := tr.measure(context.Background(), []target{ask("redis"), ask("redis-bulk")}, o)
	if err != nil || out.Rounds != stats.MinJudged || o.ons != 2*out.Rounds || o.offs != 4*out.Rounds || o.reread == 0 || len(out.Ports) != 2 {
		t.Fatalf("%+v, %v, %d on, %d off", out, err, o.ons, o.offs)
	}
	for i, want := range []string{Asking, Moving} {
		f := out.Ports[i].Figures
		if len(f) != 2 || f[0].What != Connecting || f[1].What != want || f[0].Before <= 0 || f[1].After <= 0 || f[0].Ratio <= 0 {
			t.Errorf("%+v", f)
		}
	}
	if b, err := json.Marshal(out); err != nil || len(b) == 0 {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := tr.measure(ctx, []target{ask("redis")}, &onOff{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	gone := target{dial: netip.MustParseAddrPort("127.0.0.1:1"), load: greetingSpeech.load("127.0.0.1:1")}
	if _, err := tr.measure(context.Background(), []target{gone}, &onOff{}); err == nil {
		t.Error("a server that is gone is measured")
	}
	if _, err := tr.measure(context.Background(), nil, &onOff{fault: ErrOn}); !errors.Is(err, ErrOn) {
		t.Error(err)
	}
}

// A given load is measured like a speech. Its visits may be long, and their state is kept until
// they end; if it cannot be kept, the visit ends.
func TestTrialOfLoad(t *testing.T) {
	was := renewed
	renewed = time.Millisecond
	t.Cleanup(func() { renewed = was })
	o := &onOff{through: map[uint16]uint64{80: 3}}
	var closed int
	x := target{dial: netip.MustParseAddrPort("127.0.0.1:80"), load: &Load{Name: "sql", Note: "a note", Metrics: []Metric{{"page", "s", false}, {"score", "", true}, {"zero", "s", false}},
		Visit: func(ctx context.Context, long time.Duration) (map[string]float64, error) {
			n := o.kept.Load()
			if !testwait.Met(patience, func() bool { return o.kept.Load() > n || ctx.Err() != nil }) || ctx.Err() != nil {
				return nil, errors.Join(errors.New("not kept"), ctx.Err())
			}
			took := map[bool]float64{true: 0.5, false: 1}[o.on.Load()]
			return map[string]float64{"page": took, "score": 1 / took, "zero": 0, "unasked": 1}, nil
		}, Close: func() error { closed++; return nil }}}
	tr := &Trial{Budget: time.Millisecond}
	out, err := tr.measure(context.Background(), []target{x}, o)
	if err != nil || !out.Kept || len(out.Ports) != 1 || *out.Ports[0].Taken != 3 || len(out.Notes) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	if f := out.Ports[0].Figures; len(f) != 2 || f[0].Ratio != 0.5 || f[0].Verdict != stats.Better || f[1].Ratio != 2 || f[1].Verdict != stats.Better {
		t.Errorf("%+v", f)
	}
	o.through = map[uint16]uint64{81: 3}
	if out, err := tr.measure(context.Background(), []target{x}, o); err != nil || out.Kept || !strings.Contains(out.Why, "no connection took a shortcut") {
		t.Errorf("%+v, %v", out, err)
	}
	o.lapse = ErrOff
	if _, err := tr.measure(context.Background(), []target{x}, o); !errors.Is(err, ErrOff) {
		t.Error(err)
	}
	if err := closeAll([]target{x}); err != nil || closed != 1 {
		t.Errorf("%v, closed %d times", err, closed)
	}
	var said []string
	tr = &Trial{Budget: time.Second, Say: func(s string) { said = append(said, s) }}
	x.took = 10 * time.Second
	tr.announce([]target{x})
	if len(said) != 2 || !strings.Contains(said[1], "may take 2m30s, longer than --budget 1s: a visit took 10s") {
		t.Errorf("%q", said)
	}
}

// Fast is kept only if some metric was better and none was worse.
func TestTrialKeeps(t *testing.T) {
	// tried returns the figure of rounds that differ by noise, and by factor with fast.
	tried := func(what string, factor float64) (f Figure) {
		var s series
		for state := range s {
			s[state] = map[string]map[int]float64{what: {}}
			for round := range 20 {
				v := 100 * (1 + 0.01*float64((7*round+3*state)%5-2))
				if state == after {
					v *= factor
				}
				s[state][what][round] = v
			}
		}
		f, ok := figure(Metric{What: what, Higher: what == Moving}, &s)
		if !ok {
			t.Fatal("no figure")
		}
		return f
	}
	for _, c := range []struct {
		name string
		figs []Figure
		kept bool
	}{
		{"faster", []Figure{tried(Connecting, 0.8), tried(Asking, 1)}, true},
		{"more", []Figure{tried(Moving, 1.3)}, true},
		{"less", []Figure{tried(Moving, 0.7)}, false},
		{"slower", []Figure{tried(Connecting, 0.8), tried(Asking, 1.3)}, false},
		{"the same", []Figure{tried(Connecting, 1), tried(Asking, 1)}, false},
	} {
		out := &Tried{Ports: []TriedPort{{Figures: c.figs}}}
		if out.judge(true); out.Kept != c.kept || out.Why == "" {
			t.Errorf("%s: %+v", c.name, out)
		}
	}
	if f := tried(Asking, 1.3); f.Verdict != stats.Worse || f.Low > f.Ratio || f.High < f.Ratio || f.Before < 90 || f.After < 120 {
		t.Errorf("%+v", f)
	}
}

// A trial with an engine leaves fast on or off, as it reports; after an interrupt, off.
func TestBesideTrial(t *testing.T) {
	if err := bigtcp.Supported(); err != nil {
		t.Skip(err)
	}
	withEngine(t)
	container(t, "web", "-p 8080:80")
	links := sizes(t)
	tr := &Trial{Want: Choice{Ports: []uint16{8080}, Parts: []Part{Connect, Links}}, Speaks: "auto", Budget: 500 * time.Millisecond, Lease: time.Hour}
	// Interrupted in the middle of a long visit with fast, which only the interrupt ends.
	ctx, cancel := context.WithCancel(context.Background())
	closed := false
	slow := *tr
	slow.Load = func(at netip.AddrPort) (*Load, error) {
		return &Load{Name: "slow", Metrics: []Metric{{"page", "s", false}}, Close: func() error { closed = true; return nil },
			Visit: func(ctx context.Context, _ time.Duration) (map[string]float64, error) {
				if got := dial(at.String()); !strings.HasPrefix(got, "web for ") {
					return nil, errors.New(got)
				}
				if s, err := Look(ctx); err == nil && s.State == On && len(s.Shortcuts) > 0 && s.Shortcuts[0].Taken > 0 {
					cancel()
					<-ctx.Done()
				}
				return map[string]float64{"page": 1}, nil
			}}, nil
	}
	if _, err := slow.Run(ctx); !errors.Is(err, context.Canceled) || !closed {
		t.Errorf("it was interrupted: %v, closed: %t", err, closed)
	}
	// Turned off by somebody else in the middle of a visit.
	off := slow
	off.Load = func(netip.AddrPort) (*Load, error) {
		return &Load{Name: "off", Visit: func(ctx context.Context, _ time.Duration) (map[string]float64, error) {
			if s, err := Look(ctx); err == nil && s.State == On {
				return nil, turnOff()
			}
			return nil, nil
		}}, nil
	}
	if _, err := off.Run(context.Background()); !errors.Is(err, ErrOff) {
		t.Errorf("it was turned off: %v", err)
	}
	check := func(on bool) {
		t.Helper()
		if now := sizes(t); IsOn() != on || (fmt.Sprint(now) == fmt.Sprint(links)) == on {
			t.Errorf("on is %t, links are %v, and were %v", IsOn(), now, links)
		}
	}
	check(false)
	out, err := tr.Run(context.Background())
	if err != nil || out.Ports[0].Speaks != "greeting" || len(out.Ports[0].Figures) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	t.Logf("%+v", out)
	check(out.Kept)
	_ = turnOff()
	f := turnOn(t)
	if _, err := tr.Run(context.Background()); !errors.Is(err, ErrOn) {
		t.Error(err)
	}
	_ = f.Close()
}
