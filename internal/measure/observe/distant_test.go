package observe

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// only returns a Watch to which a machine is the only one.
func only(m *machine) (*Watch, error) {
	w, err := New()
	if err != nil {
		return nil, err
	}
	id, err := netns.ID(m.pid)
	w.find = func() (out []netns.Found, err error) {
		all, err := netns.Find()
		for _, f := range all {
			if f.ID == id {
				out = append(out, f)
			} else {
				_ = f.Close()
			}
		}
		return out, err
	}
	return w, err
}

// otherClock is how the clock of an observer's machine differs.
type otherClock struct {
	ahead time.Duration
	ppm   float64
}

// set sets the times in an observer's answer by that clock.
func (c otherClock) set(n *news, since int64) {
	shift := func(times ...*int64) {
		for _, t := range times {
			*t += int64(c.ahead) + int64(c.ppm/1e6*float64(*t-since))
		}
	}
	for i := range n.Sights {
		shift(&n.Sights[i].At)
	}
	for i := range n.Seen {
		s := &n.Seen[i]
		shift(&s.Came)
		for _, times := range [][]int64{s.Departed, s.Left, s.Wrote, s.Sent} {
			for k := range times {
				shift(&times[k])
			}
		}
	}
}

// orders copies orders, with the times in them set by that clock.
func (c otherClock) orders(from io.Reader, to *io.PipeWriter) {
	enc := json.NewEncoder(to)
	for dec := json.NewDecoder(from); ; {
		var o order
		if err := dec.Decode(&o); err != nil {
			to.CloseWithError(err)
			return
		}
		if o.Spans != nil {
			for _, all := range [][]farSpan{o.Spans.Whole, o.Spans.Slow} {
				for i := range all {
					all[i].From, all[i].To = all[i].From-int64(c.ahead), all[i].To-int64(c.ahead)
				}
			}
		}
		_ = enc.Encode(o)
	}
}

// observerOn starts an observer on a machine with a clock of its own.
func observerOn(t testing.TB, m *machine, clock otherClock,
	open func() (*Watch, error)) *path.Process {
	t.Helper()
	ordered, orders := io.Pipe()
	in, told := io.Pipe()
	go clock.orders(ordered, told)
	answers, out := io.Pipe()
	raw, said := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- (&observer{open: open}).run(in, said)
		said.Close()
	}()
	since := time.Now().UnixNano()
	go func() {
		enc := json.NewEncoder(out)
		for dec := json.NewDecoder(raw); ; {
			var n news
			if dec.Decode(&n) != nil {
				out.Close()
				return
			}
			clock.set(&n, since)
			_ = enc.Encode(n)
		}
	}()
	return &path.Process{In: orders, Out: answers, Wait: func() error { return <-ended },
		Kill: func() error { return errors.Join(ordered.Close(), in.Close(), raw.Close()) }}
}

// followThere does what follow does, for a server on another machine.
func followThere(t testing.TB, client, server *machine, clock otherClock, url string,
	tokens int) (*talk, *path.Process) {
	t.Helper()
	k, p, unseen := tryThere(t, client, server, clock, url, tokens)
	if err := errors.Join(unseen, k.watch.Start()); err != nil {
		t.Fatal(err)
	}
	return k, p
}

func tryThere(t testing.TB, client, server *machine, clock otherClock, url string,
	tokens int) (k *talk, p *path.Process, unseen error) {
	t.Helper()
	w, err := only(client)
	if err != nil {
		t.Fatal(err)
	}
	return try(t, w, client, server, clock, url, tokens)
}

func try(t testing.TB, w *Watch, client, server *machine, clock otherClock, url string,
	tokens int) (k *talk, p *path.Process, unseen error) {
	t.Helper()
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	p = observerOn(t, server, clock, func() (*Watch, error) { return only(server) })
	w.Beyond("peer gpu1", p, nil, "")
	e, err := openai.New(url, openai.Options{Model: "m", MaxTokens: tokens, Dial: client.dial,
		Mark: w.Marker("r"), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	unseen, err = w.Follow(t.Context(), "r", client.pid, func() (openai.Facts, error) {
		return e.Probe(t.Context())
	})
	if err != nil {
		t.Fatal(err)
	}
	return &talk{w, e}, p, unseen
}

// addsUp fails unless the parts add up to what the client saw.
func addsUp(t testing.TB, e *sample.Evidence, all []*openai.Response) {
	t.Helper()
	var sum, want float64
	for _, p := range e.Parts {
		sum += p.Last
	}
	for _, r := range all {
		want += r.Arrivals[len(r.Arrivals)-1].Seconds() / float64(len(all))
	}
	if math.Abs(sum-want) > 1e-6 {
		t.Errorf("the parts add up to %v s, the client saw %v", sum, want)
	}
}

func part(e *sample.Evidence, name string) (out sample.EvidencePart) {
	for _, p := range e.Parts {
		if p.Part == name {
			return p
		}
	}
	return out
}

// The server is on another machine, whose clock differs.
func TestDistant(t *testing.T) {
	const n = 24
	seal := sealed(t)
	for name, tt := range map[string]struct {
		clock          otherClock
		gateway, blind bool
		sealed         bool
	}{
		"ahead":                 {clock: otherClock{ahead: 73 * time.Hour}},
		"behind, drifts":        {clock: otherClock{-7 * time.Second, 200}},
		"gateway":               {clock: otherClock{-time.Minute, -40}, gateway: true},
		"gateway without marks": {clock: otherClock{time.Minute, 0}, gateway: true, blind: true},
		"over TLS":              {clock: otherClock{time.Hour, 20}, sealed: true},
	} {
		t.Run(name, func(t *testing.T) {
			client, other := joined(t)
			var server, relay truth
			serve, logs, hops := model(&server, bursty, false), []*truth(nil), []uint16{7002}
			g := &gateway{machine: other, to: "127.0.0.1:7001", log: &relay,
				write: func(text string, pass func(...string) error) error {
					time.Sleep(5 * ms)
					return pass(text)
				}}
			if tt.gateway {
				other.serve(t, "127.0.0.1:7001", serve)
				serve, logs, hops = g.serve, []*truth{&relay}, []uint16{7001, 7002}
			}
			url := "http://10.9.0.2:7002"
			if tt.sealed {
				url, serve = "https://127.0.0.1", seal(serve)
				redirected(t, client, "10.9.0.2:7002")
			}
			other.serve(t, "10.9.0.2:7002", serve)
			k, _ := followThere(t, client, other, tt.clock, url, n)
			g.blind = tt.blind
			testwait.Unhindered(t, patience, func(u testing.TB) {
				others := 0
				e, all := k.visitBeside(u, 2, 2, func() error {
					if !tt.gateway {
						return nil
					}
					others++
					return askOnce(other, "127.0.0.1:7001")
				})
				if why, ok := e.Clear(); !ok || e.Tokens != 4*n || e.Others != others ||
					tt.blind && e.ByText != 4 {
					u.Fatalf("%s: %+v", why, e)
				}
				hard := testwait.Hard(u)
				var ports []uint16
				for _, h := range e.Hops {
					if ports = append(ports, h.Port); h.Machine != "peer gpu1" || h.Process == "" {
						hard.Errorf("hop %+v", h)
					}
				}
				if !slices.Equal(ports, hops) {
					hard.Errorf("hops at ports %v, want %v", ports, hops)
				}
				if d := e.Ahead - tt.clock.ahead.Seconds(); math.Abs(d) > 0.1 ||
					math.Abs(d) > 0.02+e.Unsure && tt.clock.ppm == 0 {
					u.Errorf("the clock is ahead by %v ±%v s, want %v", e.Ahead, e.Unsure,
						tt.clock.ahead)
				}
				addsUp(hard, e, all)
				if tt.blind {
					return // the server's log has other marks
				}
				like(u, e, divided(u, all, &server, logs...), 5)
			})
		})
	}
}

// redirected makes connections to 127.0.0.1:443 go to another machine's address.
func redirected(t testing.TB, m *machine, to string) {
	t.Helper()
	filtered(t, m, `table ip t { chain o { type nat hook output priority -100;
		ip daddr 127.0.0.1 tcp dport 443 dnat to `+to+`; };
		chain p { type nat hook postrouting priority 100; oifname eth0 masquerade; }; }`)
	err := m.Do(func() error { return sysctl.Set("net.ipv4.conf.eth0.route_localnet", "1") })
	if err != nil {
		t.Fatal(err)
	}
}

// TestAligned has a clock that is 1000 ns ahead, and an observer that sees the client's namespace.
func TestAligned(t *testing.T) {
	here := []sighting{{out: true, seq: 1, at: 10}, {out: true, seq: 2, at: 30}, {seq: 3, at: 80}}
	there := []sighting{{space: farSpace, out: true, seq: 1, at: 1010}, {space: farSpace + 1, seq: 1,
		at: 1015}, {space: farSpace + 1, seq: 2, at: 1034}, {space: farSpace + 1, out: true, seq: 3,
		at: 1070}, {space: farSpace, seq: 3, at: 1080}}
	var got []int64
	for _, s := range aligned(here, there) {
		got = append(got, s.at)
	}
	if want := []int64{10, 30, 80, 11, 30, 66}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := aligned(here, there[:1]); len(got) != len(here) {
		t.Errorf("%v, and nothing crossed", got)
	}
}

// A client that may not capture packets has all parts but its own.
func TestDistantBlind(t *testing.T) {
	const n = 24
	client, other := joined(t)
	var server, relay truth
	other.serve(t, "127.0.0.1:7001", model(&server, bursty, false))
	g := &gateway{machine: other, to: "127.0.0.1:7001", log: &relay,
		write: func(text string, pass func(...string) error) error {
			time.Sleep(5 * ms)
			return pass(text)
		}}
	other.serve(t, "10.9.0.2:7002", g.serve)
	clock := otherClock{-time.Hour, 50}
	k, _, unseen := try(t, NewBlind(), client, other, clock, "http://10.9.0.2:7002", n)
	if err := errors.Join(unseen, k.watch.Start()); err != nil {
		t.Fatal(err)
	}
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, all := k.visit(u, 2, 2)
		hard := testwait.Hard(u)
		if why, ok := e.Clear(); !ok || !e.ClientInWire || len(e.Hops) != 2 {
			hard.Fatalf("%s: %+v", why, e)
		}
		addsUp(hard, e, all)
		like(u, e, divided(u, all, &server, &relay), 5)
		if len(e.Parts) != 5 || len(e.Response.Last) != 5 || e.Parts[0].Part != sample.EvidenceServer ||
			e.Parts[4].Part != sample.EvidenceWire {
			hard.Errorf("%+v", e.Parts)
		}
	})
}

// routed returns two machines, 10.9.0.1 and 10.9.1.2, with a router between them, whose device c is
// the client's side.
func routed(t testing.TB) (client, router, server *machine) {
	t.Helper()
	client, router, server = newMachine(t), newMachine(t), newMachine(t)
	for net, end := range []struct {
		*machine
		device  string
		own, gw netip.Addr
	}{
		{client, "c", netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.9.0.9")},
		{server, "s", netip.MustParseAddr("10.9.1.2"), netip.MustParseAddr("10.9.1.9")},
	} {
		tid, err := end.TID()
		if err == nil {
			err = router.Do(func() error {
				return errors.Join(link.AddVeth(end.device, "eth0", tid),
					link.AddAddr(end.device, netip.PrefixFrom(end.gw, 24)), link.Up(end.device),
					sysctl.Set("net.ipv4.ip_forward", "1"))
			})
		}
		if err == nil {
			err = end.Do(func() error {
				return errors.Join(link.AddAddr("eth0", netip.PrefixFrom(end.own, 24)), link.Up("eth0"),
					link.AddDefaultRoute(end.gw))
			})
		}
		if err != nil {
			t.Fatal(net, err)
		}
	}
	return client, router, server
}

// The full queue of a router is the wire's, and a server that pauses behind it is the server, whatever
// the other machine's clock is.
func TestDistantWire(t *testing.T) {
	const n = 12
	client, router, other := routed(t)
	var server truth
	pad := ": " + strings.Repeat("x", 20_000) + "\n\n"
	other.serve(t, "10.9.1.2:7002", fat(&server, bursty, false, pad))
	client.serve(t, "10.9.0.1:7003", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	err := router.Do(func() error { return link.SetShape("c", link.Shape{Rate: 20e6}) })
	if err != nil {
		t.Fatal(err)
	}
	clock := otherClock{-5 * time.Hour, 100}
	k, _ := followThere(t, client, other, clock, "http://10.9.1.2:7002", n)
	defer other.fill(t, "10.9.0.1:7003")()
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, responses := k.visit(u, 1, 3)
		if why, ok := e.Clear(); !ok {
			u.Fatalf("%s: %+v", why, e)
		}
		addsUp(testwait.Hard(u), e, responses)
		like(u, e, divided(u, responses, &server), 5)
		const least = 0.005 // 50 times as long as without a queue
		if wire := part(e, sample.EvidenceWire).Last; wire < least {
			u.Errorf("the wire has %v s: %+v", wire, e.Parts)
		}
	})
}

// Tokens that wait in the TCP of a server on another machine are named by their cause.
func TestDistantNagle(t *testing.T) {
	const n, requests = 12, 6
	client, other := joined(t)
	answer := model(&truth{}, steady(15*ms), false)
	other.serve(t, "10.9.0.2:7002", func(c net.Conn) {
		if err := c.(*net.TCPConn).SetNoDelay(false); err == nil {
			answer(c)
		}
	})
	k, _ := followThere(t, client, other, otherClock{ahead: time.Hour}, "http://10.9.0.2:7002", n)
	if e, _ := k.visit(t, 1, 1); !e.Writes {
		pathtest.SkipOrFail(t, "the writes of servers cannot be seen here")
	}
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, _ := k.visit(u, 1, requests)
		for _, w := range e.Waits {
			if w.Cause == sample.WaitNagle && w.Tokens >= requests && w.Sum >= 0.020*requests {
				return
			}
		}
		u.Errorf("%+v", e.Waits)
	})
}

// An observer that dies leaves a reason and no verdict, and later visits end as well.
func TestDistantDies(t *testing.T) {
	client, other := joined(t)
	other.serve(t, "10.9.0.2:7002", model(&truth{}, steady(2*ms), false))
	k, p := followThere(t, client, other, otherClock{}, "http://10.9.0.2:7002", 20)
	if e, _ := k.visit(t, 1, 1); e.Broken != "" {
		t.Fatalf("%+v", e)
	}
	for range 2 {
		e, _ := k.visitBeside(t, 1, 1, p.Kill)
		why, ok := e.Clear()
		if ok || !strings.HasPrefix(why, "peer gpu1: ") || e.Tokens != 20 || len(e.Hops) != 1 {
			t.Errorf("%v %q: %+v", ok, why, e)
		}
	}
}

func TestDistantUnseen(t *testing.T) {
	client, other := joined(t)
	answer := model(&truth{}, steady(ms), false)
	other.serve(t, "10.9.0.2:7002", answer)
	client.serve(t, "127.0.0.1:7003", answer)
	client.serve(t, "127.0.0.1:7004", (&gateway{machine: client, to: "10.9.0.2:7002", log: &truth{},
		write: func(text string, pass func(...string) error) error { return pass(text) }}).serve)
	for name, tt := range map[string]struct{ url, want string }{
		"the server is here": {"http://127.0.0.1:7003", ""},
		"a relay is here": {"http://127.0.0.1:7004",
			"the request passes a process of this machine and one of peer gpu1, whose " +
				"clocks differ"},
	} {
		t.Run(name, func(t *testing.T) {
			k, _, unseen := tryThere(t, client, other, otherClock{}, tt.url, 10)
			if tt.want != "" {
				if unseen == nil || unseen.Error() != tt.want {
					t.Errorf("%v, want %q", unseen, tt.want)
				}
				return
			}
			if err := errors.Join(unseen, k.watch.Start()); err != nil {
				t.Fatal(err)
			}
			e, _ := k.visit(t, 1, 1)
			if why, ok := e.Clear(); !ok || e.Hops[0].Machine != "" ||
				part(e, sample.EvidenceRequest).Part == "" {
				t.Errorf("%s: %+v", why, e)
			}
		})
	}
	for name, tt := range map[string]struct {
		open func() (*Watch, error)
		want string
	}{
		"nothing there": {func() (*Watch, error) { return only(client) }, ""},
		"no root there": {func() (*Watch, error) { return nil, unix.EPERM },
			"not root there"},
		"a failure there": {func() (*Watch, error) { return nil, errors.New("no\x1b luck") },
			`peer gpu1: no\x1b luck`},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := only(client)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			w.Beyond("peer gpu1", observerOn(t, other, otherClock{}, tt.open), nil, "not root there")
			e, err := openai.New("http://10.9.0.2:7002", openai.Options{Model: "m", MaxTokens: 5,
				Dial: client.dial, Mark: w.Marker("r"), Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			unseen, err := w.Follow(t.Context(), "r", client.pid, func() (openai.Facts, error) {
				return e.Probe(t.Context())
			})
			if err != nil || unseen == nil || (tt.want != "" && unseen.Error() != tt.want) ||
				tt.want == "" && !errors.Is(unseen, ErrUnseen) {
				t.Errorf("%v, %v, want %q", unseen, err, tt.want)
			}
		})
	}
}
