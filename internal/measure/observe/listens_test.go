package observe

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// TestServersAtOnePort has two programs that listen at one port of different addresses, of which one
// answers sooner.
func TestServersAtOnePort(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	const fast, slow, n = "127.0.0.1:6000", "127.0.0.2:6000", 20
	m := newMachine(t)
	m.serve(t, slow, lines(20*ms, false))
	m.serve(t, "127.0.0.3:6001", lines(ms, false))
	dockerProxy(t, m, "tcp", "127.0.0.1", 6000, "127.0.0.3", 6001)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		for at, program := range map[string]string{fast: "docker-proxy", slow: ""} {
			s := attachedTCP(u, m, at, func() {
				for _, to := range []string{fast, slow} {
					if err := talks(m, to, 2, n); err != nil {
						u.Error(err)
					}
				}
			})
			if s.Requests != 2*n || s.Connections != 2 {
				u.Fatalf("%s: %+v", at, s)
			}
			if program != "" && s.Server.Process != program ||
				program == "" && s.Server.PID != os.Getpid() {
				u.Errorf("%s: %+v", at, s.Server)
			}
			if (s.Whole.P50 < 20e-3) != (at == fast) {
				u.Errorf("%s: a request takes %v s", at, s.Whole.P50)
			}
		}
	})
}

// TestRelayAtItsServersPort has a relay and its server at one port of different addresses.
func TestRelayAtItsServersPort(t *testing.T) {
	const proxied, server = "127.0.0.1:6000", "127.0.0.2:6000"
	m := newMachine(t)
	m.serve(t, server, lines(ms, false))
	dockerProxy(t, m, "tcp", "127.0.0.1", 6000, "127.0.0.2", 6000)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e := exchanges(u, m, proxied, func() error { return talks(m, proxied, 2, 40) })
		if why, ok := e.Clear(); !ok || len(e.Hops) != 2 || e.Responses != 2*36 {
			u.Fatalf("%+v: %s", e, why)
		}
		if e.Hops[0].PID != os.Getpid() || e.Hops[1].Process != "docker-proxy" {
			u.Errorf("%+v", e.Hops)
		}
	})
}

// attachedTCP watches a server while clients make requests.
func attachedTCP(t testing.TB, m *machine, at string, clients func()) *sample.Served {
	t.Helper()
	s, err := attach(t.Context(), m.pid, func() (uint16, error) {
		c, _, err := m.dial(t.Context(), "tcp", at)
		if err != nil {
			return 0, err
		}
		return c.LocalAddr().(*net.TCPAddr).AddrPort().Port(), c.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.during(t, clients)
}

// during watches the server while clients make requests, and ends the watching.
func (s *serving) during(t testing.TB, clients func()) *sample.Served {
	t.Helper()
	s.most = math.Inf(1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		clients()
	}()
	ctx, end := contextUntil(t, done)
	defer end()
	got, err := s.watch(ctx, patience)
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestListenersAt(t *testing.T) {
	var all listeners
	for i, addr := range []string{"127.0.0.1", "0.0.0.0", "::", "::1", "10.0.0.2", "10.0.0.2"} {
		all = append(all, sock.Socket{Local: netip.AddrPortFrom(netip.MustParseAddr(addr), 80),
			Inode: uint32(i)})
	}
	dual, only := all[2:3], listeners{all[2]}
	only[0].V6Only = true
	for _, tt := range []struct {
		all  listeners
		to   string
		want []uint32
	}{
		{all, "127.0.0.1", []uint32{0}},
		{all, "127.0.0.2", []uint32{1}},
		{all, "10.0.0.2", []uint32{4, 5}}, // SO_REUSEPORT
		{all, "::1", []uint32{3}},
		{all, "fd00::1", []uint32{2}},
		{dual, "127.0.0.1", []uint32{2}},
		{only, "127.0.0.1", nil},
		{only, "::1", []uint32{2}},
		{all[:1], "10.0.0.9", nil},
	} {
		var got []uint32
		for _, s := range tt.all.at(netip.MustParseAddr(tt.to)) {
			got = append(got, s.Inode)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: sockets %d, want %d", tt.to, got, tt.want)
		}
	}
}

// TestListens tells by their processes which addresses are one server's. Of two processes that share
// an address, it is both's.
func TestListens(t *testing.T) {
	m := newMachine(t)
	for _, at := range []string{"127.0.0.1:6000", "[::1]:6000"} {
		m.serve(t, at, func(net.Conn) {})
	}
	w := &Watch{}
	var err error
	if w.spaces, err = netns.Find(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	home, err := w.home(m.pid)
	if err != nil {
		t.Fatal(err)
	}
	at := func(addr string) hop {
		h := hop{space: home, to: netip.AddrPortFrom(netip.MustParseAddr(addr), 6000)}
		if err := w.listens(&h); err != nil {
			t.Fatal(err)
		}
		return h
	}
	if h := at("127.0.0.1"); h.about.PID != os.Getpid() || h.takes != nil || h.addr.IsValid() {
		t.Errorf("a program alone: %+v", h)
	}
	dockerProxy(t, m, "tcp", "127.0.0.2", 6000, "127.0.0.1", 6000)
	mine, also, other := at("127.0.0.1"), at("::1"), at("127.0.0.2")
	if mine.place() != also.place() || mine.place() == other.place() ||
		other.about.Process != "docker-proxy" {
		t.Errorf("%+v, %+v, %+v", mine.place(), also.place(), other.place())
	}
	for addr, want := range map[string]bool{"127.0.0.1": true, "::1": true, "127.0.0.2": false,
		"127.0.0.9": false} {
		if to := netip.MustParseAddr(addr); mine.takes(to) != want ||
			other.takes(to) != (addr == "127.0.0.2") {
			t.Errorf("%s: taken by the first %v, by docker-proxy %v", addr, mine.takes(to), other.takes(to))
		}
	}
	server := startServer(t, m, "127.0.0.3:6000")
	m.serve(t, "127.0.0.3:6000", func(net.Conn) {})
	if h := at("127.0.0.3"); h.about.PID != min(server, os.Getpid()) || !h.takes(h.to.Addr()) ||
		h.about.Process != "exe and observe.test" {
		t.Errorf("two processes at an address: %+v", h)
	}
}

// TestSuccessorUnknown cannot read who listens.
func TestSuccessorUnknown(t *testing.T) {
	w := &Watch{spaces: []netns.Found{{}}}
	before := hop{to: netip.MustParseAddrPort("127.0.0.1:6000"), inodes: map[uint32]bool{7: true}}
	if err := w.listens(&hop{to: before.to}); err == nil {
		t.Fatal("who listens is known")
	}
	if got := w.successor(before); got != nil {
		t.Errorf("%+v", got)
	}
}

// TestSuccessor closes a server's socket while it is watched.
func TestSuccessor(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	m := newMachine(t)
	for name, tt := range map[string]struct {
		before, closes, after bool // another one is there, it is closed, another one comes
		other                 bool // which is another process's
		still                 bool // the server still listens
	}{
		"stays":            {still: true},
		"ends":             {closes: true},
		"opens another":    {closes: true, after: true, still: true},
		"is replaced":      {closes: true, after: true, other: true},
		"one of two stays": {before: true, closes: true, still: true},
	} {
		t.Run(name, func(t *testing.T) {
			open := func() (l net.Listener) {
				err := m.Do(func() (err error) {
					l, err = listen("127.0.0.1:6000")
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { l.Close() })
				return l
			}
			l := open()
			if tt.before {
				open()
			}
			s, err := attach(t.Context(), m.pid, probing(func() (net.Conn, error) {
				c, _, err := m.dial(t.Context(), "tcp", "127.0.0.1:6000")
				return c, err
			}))
			if err != nil {
				t.Fatal(err)
			}
			want := sample.EvidenceHop{}
			got := s.during(t, func() {
				if tt.closes {
					l.Close()
				}
				switch {
				case tt.other:
					want = sample.EvidenceHop{PID: startServer(t, m, "127.0.0.1:6000"),
						Process: "exe", Port: 6000, NetNS: s.at.about.NetNS}
				case tt.after:
					open()
				}
			}).Successor
			if tt.still != (got == nil) || got != nil && *got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}
