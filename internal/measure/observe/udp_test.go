package observe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// names is a server of DNS. It notes how long it had each query: from the kernel's timestamp of its
// arrival until the reply is written.
type names struct {
	serves time.Duration
	conn   *net.UDPConn

	mu   sync.Mutex
	took []float64 // s
}

// serveNames runs a server of DNS on a machine, with n threads, that waits before each reply. It
// answers no query for lost.example, and refuses those for refused.example.
func serveNames(t testing.TB, m *machine, at string, serves time.Duration, n int) *names {
	t.Helper()
	s := &names{serves: serves}
	err := m.Do(func() error {
		c, err := net.ListenPacket("udp", at)
		if err != nil {
			return err
		}
		s.conn = c.(*net.UDPConn)
		raw, err := s.conn.SyscallConn()
		if err != nil {
			return err
		}
		errControl := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
		})
		return errors.Join(err, errControl)
	})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range n {
		all.Go(s.serve)
	}
	t.Cleanup(func() {
		s.conn.Close()
		all.Wait()
	})
	return s
}

func (s *names) serve() {
	b, oob := make([]byte, 1500), make([]byte, 100)
	for {
		n, k, _, from, err := s.conn.ReadMsgUDPAddrPort(b, oob)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b[:n]) != nil { // the datagram that finds the server
			continue
		}
		time.Sleep(s.serves)
		m.Response = true
		switch m.Questions[0].Name.String() {
		case "lost.example.":
			continue
		case "refused.example.":
			m.RCode = dnsmessage.RCodeRefused
		}
		reply, err := m.Pack()
		if err != nil {
			return
		}
		s.note(oob[:k])
		_, _ = s.conn.WriteToUDPAddrPort(reply, from)
	}
}

// note notes the time since a query came, by the kernel's timestamp.
func (s *names) note(oob []byte) {
	all, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(all) != 1 {
		return
	}
	at := *(*unix.Timespec)(unsafe.Pointer(&all[0].Data[0]))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = append(s.took, time.Since(time.Unix(at.Unix())).Seconds())
}

// times returns how long the server had the queries since its last call.
func (s *names) times() (out []float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, s.took = s.took, nil
	slices.Sort(out)
	return out
}

// queryOf returns a query for a name.
func queryOf(t testing.TB, number uint16, name string) []byte {
	t.Helper()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: number}, Questions: []dnsmessage.Question{
		{Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// udp returns a function that opens a socket to an address.
func (m *machine) udp(at string) func() (net.Conn, error) {
	return func() (net.Conn, error) {
		c, _, err := m.dial(context.Background(), "udp", at)
		return c, err
	}
}

// resolves asks for a name n times, over a socket of its own.
func resolves(t testing.TB, m *machine, at string, n int) (all []tokens.Exchange, err error) {
	c, _, err := m.dial(t.Context(), "udp", at)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	reply := make([]byte, 1500)
	for i := range n {
		b := queryOf(t, uint16(i), "a.example.")
		x := tokens.Exchange{Local: c.LocalAddr().(*net.UDPAddr).AddrPort().Port(),
			Sent: time.Now().UnixNano()}
		if _, err := c.Write(b); err != nil {
			return nil, err
		}
		if _, err := c.Read(reply); err != nil {
			return nil, err
		}
		x.Read = time.Now().UnixNano()
		all = append(all, x)
	}
	tokens.Slot(all, 10)
	return all, nil
}

// TestFollowUDP follows queries to a server that waits, directly, over a link, over packet filters
// that change their addresses here or on the way, and over a real docker-proxy.
func TestFollowUDP(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	const serves = ms
	for name, tt := range map[string]struct {
		at      string
		proxied bool
		natted  bool
		routed  bool
	}{
		"itself":       {at: "127.0.0.1:53"},
		"IPv6":         {at: "[::1]:53"},
		"link":         {at: "10.9.0.2:53"},
		"NAT":          {at: "127.0.0.1:5300", natted: true},
		"router":       {at: "10.9.0.2:5300", routed: true},
		"docker-proxy": {at: "127.0.0.1:53", proxied: true},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := newMachine(t), (*machine)(nil)
			at, listens := netip.MustParseAddrPort(tt.at), tt.at
			if server = client; name != "itself" && name != "IPv6" {
				client, server = joined(t)
				listens = "10.9.0.2:53"
			}
			if tt.routed {
				server, listens = behind(t, server), "10.8.0.2:53"
			}
			s := serveNames(t, server, listens, serves, 1)
			want := []uint16{53}
			switch {
			case tt.proxied:
				dockerProxy(t, client, "udp", "127.0.0.1", 53, "10.9.0.2", 53)
				want = []uint16{53, 53}
			case tt.natted:
				filtered(t, client, `table ip t { chain o { type nat hook output priority -100;
					ip daddr 127.0.0.1 udp dport 5300 dnat to 10.9.0.2:53; };
					chain p { type nat hook postrouting priority 100; oifname eth0 masquerade; }; }`)
				if err := client.Do(func() error {
					return sysctl.Set("net.ipv4.conf.eth0.route_localnet", "1")
				}); err != nil {
					t.Fatal(err)
				}
			}
			testwait.Unhindered(t, patience, func(u testing.TB) {
				y, unseen, err := FindUDP(u.Context(), client.pid, at, client.udp(tt.at), func() error {
					_, err := resolves(u, client, tt.at, 3)
					return err
				})
				if err := errors.Join(unseen, err); err != nil {
					u.Fatal(err)
				}
				defer y.Close()
				if ports := portsOf(y); !slices.Equal(ports, want) ||
					tt.proxied && y.Hops()[1].Process != "docker-proxy" {
					u.Fatalf("hops %+v", y.Hops())
				}
				s.times()
				followsUDP(u, y, func() ([]tokens.Exchange, error) {
					return resolves(u, client, tt.at, 100)
				}, s, tt.proxied)
			})
		})
	}
}

// behind returns a machine 10.8.0.2 behind a router, which changes the addresses and ports of what
// goes there.
func behind(t *testing.T, router *machine) *machine {
	t.Helper()
	m := newMachine(t)
	tid, err := m.TID()
	if err == nil {
		err = router.Do(func() error { return link.AddVeth("eth1", "eth0", tid) })
	}
	for _, x := range []struct {
		at        *machine
		dev, addr string
	}{{router, "eth1", "10.8.0.1/24"}, {m, "eth0", "10.8.0.2/24"}} {
		if err == nil {
			err = x.at.Do(func() error {
				return errors.Join(link.AddAddr(x.dev, netip.MustParsePrefix(x.addr)), link.Up(x.dev))
			})
		}
	}
	if err == nil {
		err = router.Do(func() error { return sysctl.Set("net.ipv4.ip_forward", "1") })
	}
	if err != nil {
		t.Fatal(err)
	}
	filtered(t, router, `table ip t { chain d { type nat hook prerouting priority -100;
		udp dport 5300 dnat to 10.8.0.2:53; tcp dport 8080 dnat to 10.8.0.2:80; };
		chain p { type nat hook postrouting priority 100;
		ip saddr 10.9.0.0/24 oifname eth1 masquerade fully-random; }; }`)
	return m
}

func portsOf(y *Way) (out []uint16) {
	for _, h := range y.Hops() {
		out = append(out, h.Port)
	}
	return out
}

// followsUDP compares what is followed with what client and server know themselves.
func followsUDP(t testing.TB, y *Way, do func() ([]tokens.Exchange, error), s *names,
	relayed bool) {
	t.Helper()
	var whole []float64
	got, err := y.Follow(2, func() ([]tokens.Exchange, error) {
		all, err := do()
		for _, x := range all {
			whole = append(whole, time.Duration(x.Read-x.Sent).Seconds())
		}
		return all, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Trips != len(whole) || float64(got.Followed) < 0.95*float64(got.Trips) {
		t.Fatalf("%d of %d followed: %+v", got.Followed, got.Trips, got.Broken)
	}
	parts, sum := map[sample.Part]float64{}, 0.0
	for _, g := range got.Segments {
		parts[g.Part] += g.MidMean
		sum += g.MidMean
	}
	slices.Sort(whole)
	took := s.times()
	server := parts[sample.PartServer] + parts[sample.PartServer+" + "+sample.PartServerQueue]
	if middle := whole[len(whole)/2]; math.Abs(sum-middle) > 0.1*middle {
		t.Errorf("the parts add up to %v s, the client measured %v", sum, middle)
	}
	if middle := took[len(took)/2]; math.Abs(server-middle) > 0.15*middle {
		t.Errorf("the server took %v s, by itself %v", server, middle)
	}
	if _, tcp := parts[sample.PartServerTCP]; tcp || (parts[sample.PartRelayed] > 0) != relayed {
		t.Errorf("parts %v", parts)
	}
}

// TestFollowUDPUnseen has nobody who receives the datagrams, and a client that sends none.
func TestFollowUDPUnseen(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	client, _ := joined(t)
	at := netip.MustParseAddrPort("10.9.0.9:53")
	for want, do := range map[error]func() error{
		errSilent: func() error { return nil },
		ErrUnseen: func() error {
			c, _, err := client.dial(t.Context(), "udp", at.String())
			if err == nil {
				_, err = c.Write([]byte("hello"))
				c.Close()
			}
			return err
		},
	} {
		_, unseen, err := FindUDP(t.Context(), client.pid, at, client.udp(at.String()), do)
		if errors.Is(want, ErrUnseen) && errors.Is(unseen, errSilent) {
			continue // no neighbour, so that no packet left
		}
		if !errors.Is(unseen, want) || err != nil {
			t.Errorf("%v, %v, want %v", unseen, err, want)
		}
	}
	failed := errors.New("the client failed")
	if _, _, err := FindUDP(t.Context(), client.pid, at, client.udp(at.String()),
		func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
}

// attachedUDP watches a server while clients do something.
func attachedUDP(t testing.TB, m *machine, at string, clients func()) *sample.Served {
	t.Helper()
	s, err := attachUDP(t.Context(), m.pid, m.udp(at))
	if err != nil {
		t.Fatal(err)
	}
	return s.during(t, clients)
}

// TestAttachUDP watches a server of two threads, which it finds beside others' empty datagrams. Its
// clients have several queries under way on one socket, of which some are lost, and some refused.
// Its parts are compared with the server's own times.
func TestAttachUDP(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	m := newMachine(t)
	s := serveNames(t, m, "127.0.0.1:53", ms, 2)
	emptyDatagrams(t, m, "127.0.0.1:9")
	const sockets, each, lost, refused = 4, 60, 3, 5
	writes, reads := records(t, writes.Of{Local: []uint16{1}, UDP: true})
	testwait.Unhindered(t, patience, func(u testing.TB) {
		s.times()
		got := attachedUDP(u, m, "127.0.0.1:53", func() {
			var all sync.WaitGroup
			for range sockets {
				all.Go(func() {
					if err := pipelined(u, m, each, lost, refused); err != nil {
						u.Error(err)
					}
				})
			}
			all.Wait()
		})
		if got.Requests != sockets*(each-lost) || got.Connections != sockets || !got.UDP ||
			got.Unanswered != sockets*lost || got.Unmatched != 0 ||
			got.Errors["REFUSED"] != sockets*refused || got.Server.PID != os.Getpid() ||
			got.Writes != writes || reads && (got.Client == nil ||
			got.Client.Requests < got.Requests-sockets || got.Client.Whole.Mean < got.Whole.Mean) {
			u.Errorf("%+v, clients %+v", got, got.Client)
		}
		took, want := 0.0, 0.0
		for _, p := range got.Parts {
			if p.Part == sample.EvidenceServer || p.Part == sample.ServedCPU {
				took += p.Mean
			}
		}
		all := s.times()
		for _, x := range all {
			want += x / float64(len(all))
		}
		if math.Abs(took-want) > 0.15*want {
			u.Errorf("the server took %v s, by itself %v: %+v", took, want, got.Parts)
		}
	})
}

// TestUDPBesideOthers has two servers at one port of different addresses: a docker-proxy, and the
// server behind it, which others ask, too.
func TestUDPBesideOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	const proxied, server, n = "127.0.0.1:53", "127.0.0.2:53", 20
	m := newMachine(t)
	serveNames(t, m, server, ms, 1)
	dockerProxy(t, m, "udp", "127.0.0.1", 53, "127.0.0.2", 53)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		y, unseen, err := FindUDP(u.Context(), m.pid, netip.MustParseAddrPort(proxied), m.udp(proxied),
			func() error {
				_, err := resolves(u, m, proxied, 3)
				return err
			})
		if err := errors.Join(unseen, err); err != nil {
			u.Fatal(err)
		}
		defer y.Close()
		if h := y.Hops(); len(h) != 2 || h[0].PID != os.Getpid() || h[1].Process != "docker-proxy" {
			u.Fatalf("%+v", h)
		}
		got, err := y.Follow(1, func() ([]tokens.Exchange, error) { return resolves(u, m, proxied, n) })
		if err != nil || got.Followed != n {
			u.Errorf("%+v, %v", got, err)
		}
		for at, want := range map[string]int{proxied: n, server: 2 * n} {
			s := attachedUDP(u, m, at, func() {
				for _, to := range []string{proxied, server} {
					if _, err := resolves(u, m, to, n); err != nil {
						u.Error(err)
					}
				}
			})
			if s.Requests != want {
				u.Errorf("%d requests at %s, want %d: %+v", s.Requests, at, want, s.Server)
			}
		}
	})
}

// emptyDatagrams sends datagrams like the one that finds a server, from sockets that do not last,
// until the test's end.
func emptyDatagrams(t *testing.T, m *machine, to string) {
	over := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			if c, _, err := m.dial(context.Background(), "udp", to); err == nil {
				_, _ = c.Write(nil)
				c.Close()
			}
			select {
			case <-over:
				return
			case <-time.After(5 * ms):
			}
		}
	})
	t.Cleanup(func() {
		close(over)
		all.Wait()
	})
}

// pipelined has two queries under way at a time on a socket.
func pipelined(t testing.TB, m *machine, n, lost, refused int) error {
	c, _, err := m.dial(t.Context(), "udp", "127.0.0.1:53")
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	reply := make([]byte, 1500)
	for i := 0; i < n; i += 2 {
		replies := 0
		for _, k := range []int{i, min(i+1, n-1)} {
			name := "a.example."
			switch {
			case k < lost:
				name = "lost.example."
			case k < lost+refused:
				name = "refused.example."
			}
			if _, err := c.Write(queryOf(t, uint16(k), name)); err != nil {
				return err
			}
			if !strings.HasPrefix(name, "lost") {
				replies++
			}
		}
		for range replies {
			if _, err := c.Read(reply); err != nil {
				return fmt.Errorf("reply to query %d: %w", i, err)
			}
		}
	}
	return nil
}

// contextUntil returns a context that ends when done is closed.
func contextUntil(t testing.TB, done <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(t.Context())
	go func() {
		select {
		case <-done:
		case <-ctx.Done():
		}
		end()
	}()
	return ctx, end
}
