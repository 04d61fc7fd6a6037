package load

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

// unhindered runs both ends, again if a thread was kept from its CPU.
func unhindered(t testing.TB, s sample.Load) (client, server Stats) {
	t.Helper()
	const tries = 5
	for range tries {
		client, server = both(t, s)
		if client.Counts[workload.Failed] == 0 && client.Connections == server.Connections {
			break
		}
	}
	return client, server
}

func TestConnectRequestResponse(t *testing.T) {
	for _, c := range []struct {
		name string
		spec sample.Load
	}{
		{"one-byte", sample.Load{Kind: "crr"}},
		{"uneven", sample.Load{Kind: "crr", Options: sample.Messages{Request: 100, Reply: 70_000}}},
		{"three-at-a-time", sample.Load{Kind: "crr", Streams: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(u testing.TB) {
				client, server := unhindered(u, c.spec)
				s := withDefaults(c.spec)
				connect := client.Times[workload.TimeConnect]
				if client.Trips <= 0 || client.Latency == nil || connect == nil {
					u.Fatalf("client %+v", client)
				}
				// A trip of each thread that began in the warm-up is not timed.
				n := client.Latency.TotalCount()
				if n > client.Trips || n < client.Trips-int64(s.Streams) ||
					connect.TotalCount() != n {
					u.Errorf("%d trips, %d timed, %d connects timed", client.Trips, n,
						connect.TotalCount())
				}
				if connect.Mean() >= client.Latency.Mean() {
					u.Errorf("a connect takes %.0f ns, the whole %.0f ns", connect.Mean(),
						client.Latency.Mean())
				}
				if client.Sent != client.Trips*int64(workload.MessagesOf(s).Request) ||
					client.Received != client.Trips*int64(workload.MessagesOf(s).Reply) {
					u.Errorf("client %+v", client)
				}
				if server.TotalRecv != client.TotalSent || client.TotalRecv != server.TotalSent {
					u.Errorf("client %+v\nserver %+v", client, server)
				}
				made := client.TotalSent / int64(workload.MessagesOf(s).Request)
				if int64(client.Connections) != made+2*int64(s.Streams) ||
					client.Connections != server.Connections {
					u.Errorf("%d connections for %d trips, the server has %d", client.Connections,
						made, server.Connections)
				}
				for name, n := range client.Counts {
					if n != 0 {
						u.Errorf("%s: %d", name, n)
					}
				}
				whole := client.Latency.Mean() * float64(n) / float64(s.Streams) / 1e9
				if whole > 1.1*client.Window {
					u.Errorf("%d connections of %.0f ns in a window of %g s", n,
						client.Latency.Mean(), client.Window)
				}
			})
		})
	}
}

func runClient(t testing.TB, addr netip.AddrPort, o Options, begun func()) Stats {
	t.Helper()
	return runFor(t, window, addr, o, begun)
}

func runFor(t testing.TB, window time.Duration, addr netip.AddrPort, o Options,
	begun func()) Stats {
	t.Helper()
	Prepare(2)
	cli, err := Dial(addr, o)
	if err != nil {
		t.Fatal(err)
	}
	if begun != nil {
		begun()
	}
	got, err := cli.Run(soon(warmup, window))
	if err := errors.Join(err, cli.Close()); err != nil {
		ends(t, err)
	}
	return got
}

func answering(t testing.TB, delay time.Duration) (netip.AddrPort, net.Listener) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go testnet.Accept(ln, func(c net.Conn) {
		b := make([]byte, 1)
		for {
			if _, err := c.Read(b); err != nil {
				return
			}
			time.Sleep(delay)
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	})
	return ln.Addr().(*net.TCPAddr).AddrPort(), ln
}

func TestConnectIsTimedAlone(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const delay = 5 * time.Millisecond
		addr, _ := answering(u, delay)
		got := runClient(u, addr, options(sample.Load{Kind: "crr"}), nil)
		if p50 := time.Duration(got.Latency.ValueAtQuantile(50)); p50 < delay || p50 > 4*delay {
			u.Errorf("a connection whose reply takes %s takes %s", delay, p50)
		}
		if p50 := time.Duration(got.Times[workload.TimeConnect].ValueAtQuantile(50)); p50 >= delay {
			u.Errorf("a connect takes %s, it should not wait for the reply", p50)
		}
	})
}

func TestBudget(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const (
			delay, budget = 4 * time.Millisecond, 20 // the warm-up has time for five connections
			longest       = time.Second
		)
		addr, _ := answering(u, delay)
		o := options(sample.Load{Kind: "crr"})
		o.Budget = budget
		got := runFor(u, longest, addr, o, nil)
		if got.Connections != budget || got.Counts[workload.EndedEarly] != 1 {
			u.Errorf("%d connections, counts %v", got.Connections, got.Counts)
		}
		if got.Window <= 0 || got.Window >= longest.Seconds() || got.Trips != got.Received {
			u.Errorf("stats %+v", got)
		}
		if got.Window < float64(got.Trips)*delay.Seconds() {
			u.Errorf("%d trips in %g s: each takes %s at least", got.Trips, got.Window, delay)
		}
	})
}

// A budget that runs out after the window does not make it shorter.
func TestBudgetAfterTheWindow(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const delay, budget = 4 * time.Millisecond, 40 // warm-up and window have time for half of it
		addr, _ := answering(u, delay)
		o := options(sample.Load{Kind: "crr"})
		o.Budget = budget
		Prepare(2)
		cli, err := Dial(addr, o)
		if err != nil {
			u.Fatal(err)
		}
		when := soon(warmup, window)
		when.End = when.To + int64(10*time.Second)
		got, err := cli.Run(when)
		if err := errors.Join(err, cli.Close()); err != nil {
			ends(u, err)
		}
		if got.Connections != budget || got.Counts[workload.EndedEarly] != 0 {
			u.Errorf("%d connections, counts %v", got.Connections, got.Counts)
		}
	})
}

func TestFailuresAreCounted(t *testing.T) {
	const bound = 20 * time.Second // of a busy machine
	t.Run("refused", func(t *testing.T) {
		inTime(t, func(u testing.TB) {
			addr, ln := answering(u, 0)
			got := runClient(u, addr, options(sample.Load{Kind: "crr"}), func() { ln.Close() })
			if got.Trips != 0 || got.Counts[workload.FailedRefused] == 0 ||
				got.Counts[workload.Failed] <= got.Counts[workload.FailedRefused] {
				u.Errorf("trips %d, counts %v", got.Trips, got.Counts)
			}
		})
	})
	t.Run("no-reply", func(t *testing.T) {
		inTime(t, func(u testing.TB) {
			ln, err := net.Listen("tcp4", "127.0.0.1:0") // nobody accepts
			if err != nil {
				u.Fatal(err)
			}
			defer ln.Close()
			begin := time.Now()
			got := runClient(u, ln.Addr().(*net.TCPAddr).AddrPort(),
				options(sample.Load{Kind: "crr"}), nil)
			if took := time.Since(begin); got.Trips != 0 || got.Counts[workload.Failed] == 0 ||
				took > bound {
				u.Errorf("after %s: trips %d, counts %v", took, got.Trips, got.Counts)
			}
		})
	})
	t.Run("no-answer-to-syn", func(t *testing.T) {
		inTime(t, func(u testing.TB) {
			// With its queue full a listener drops what comes.
			ln, err := tcpSocket(netip.MustParseAddrPort("127.0.0.1:0"),
				func(fd int, sa unix.Sockaddr) error {
					return errors.Join(unix.Bind(fd, sa), unix.Listen(fd, 0))
				})
			if err != nil {
				u.Fatal(err)
			}
			defer unix.Close(ln)
			sa, err := unix.Getsockname(ln)
			if err != nil {
				u.Fatal(err)
			}
			addr := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"),
				uint16(sa.(*unix.SockaddrInet4).Port))
			begin := time.Now()
			got := runClient(u, addr, options(sample.Load{Kind: "crr"}), nil)
			if took := time.Since(begin); got.Trips != 0 ||
				got.Counts[workload.FailedTimeout] == 0 || took > bound {
				u.Errorf("after %s: trips %d, counts %v", took, got.Trips, got.Counts)
			}
		})
	})
	for e, want := range map[unix.Errno]int{unix.EINPROGRESS: timedOut, unix.ETIMEDOUT: timedOut,
		unix.ECONNREFUSED:  refused,
		unix.EADDRNOTAVAIL: noPort, unix.EHOSTUNREACH: otherConnect} {
		if got := connectFailure(e); got != want {
			t.Errorf("%v is %s, want %s", e, failures[got], failures[want])
		}
	}
}

// The relay answers the handshake itself, but delays request and reply.
func TestConnectRequestResponseOverADelay(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const delay = 2 * time.Millisecond
		addr, _ := answering(u, 0)
		got := runClient(u, delayed(u, addr, delay), options(sample.Load{Kind: "crr"}), nil)
		if p50 := time.Duration(got.Latency.ValueAtQuantile(50)); p50 < 2*delay || p50 > 6*delay {
			u.Errorf("a connection over %s each way takes %s", delay, p50)
		}
	})
}

func TestCrrCannotBeACrowd(t *testing.T) {
	o := options(sample.Load{Kind: "crr"})
	o.Crowd = true
	if _, err := Dial(testnet.TCP(t), o); !errors.Is(err, errNoCrowd) {
		t.Errorf("a crowd of crr: %v", err)
	}
}

// The watcher must leave connections alone that the loops open and close.
func TestConnectionsOfManyThreads(t *testing.T) {
	inTime(t, func(u testing.TB) {
		s := sample.Load{Kind: "crr", Streams: workload.ManyThreads + 1}
		client, server := between(u, s, windows(warmup, window), direct)
		if client.Trips == 0 || server.Trips == 0 {
			u.Errorf("client %d, server %d trips", client.Trips, server.Trips)
		}
		if client.TCP.RTT != 0 || client.TCP.MSS != 0 || server.TCP.MSS != 0 {
			u.Errorf("the kernel tells of connections that are gone: client %+v, server %+v",
				client, server)
		}
	})
}
