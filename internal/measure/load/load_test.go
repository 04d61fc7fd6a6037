package load

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

func TestBulk(t *testing.T) {
	for _, c := range []struct {
		name string
		spec sample.Load
	}{
		{"one-stream", sample.Load{Kind: "bulk"}},
		{"three-streams", sample.Load{Kind: "bulk", Streams: 3}},
		{"small-writes", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Write: 100}}},
		{"reverse", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Reverse: true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(u testing.TB) {
				client, server := both(u, c.spec)
				from, to := client, server
				if workload.BulkOf(c.spec).Reverse {
					from, to = server, client
				}
				if to.TotalRecv == 0 || to.TotalRecv != from.TotalSent {
					u.Errorf("sent %d bytes, %d arrived", from.TotalSent, to.TotalRecv)
				}
				if to.Received <= 0 || to.Received >= to.TotalRecv {
					u.Errorf("%d of %d bytes in the window", to.Received, to.TotalRecv)
				}
				if from.TotalRecv != 0 || to.TotalSent != 0 {
					u.Errorf("bytes in the wrong direction: %d, %d", from.TotalRecv, to.TotalSent)
				}
				if n := max(1, c.spec.Streams); client.Connections != n || server.Connections != n {
					u.Errorf("connections %d, %d", client.Connections, server.Connections)
				}
				for _, s := range []Stats{client, server} {
					if s.Window < window.Seconds()/2 || s.Latency != nil || s.CPU <= 0 {
						u.Errorf("stats %+v", s)
					}
				}
			})
		})
	}
}

func TestRequestResponse(t *testing.T) {
	for _, c := range []struct {
		name string
		spec sample.Load
	}{
		{"one-byte", sample.Load{Kind: "rr"}},
		{"uneven", sample.Load{Kind: "rr", Options: sample.RROptions{
			Messages: sample.Messages{Request: 100, Reply: 70_000}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(u testing.TB) {
				client, server := both(u, c.spec)
				s := withDefaults(c.spec)
				if client.Trips <= 0 || client.Latency == nil {
					u.Fatalf("client %+v", client)
				}
				// A trip that began in the warm-up is not timed.
				if n := client.Latency.TotalCount(); n > client.Trips || n < client.Trips-1 {
					u.Errorf("%d trips, %d timed", client.Trips, n)
				}
				if client.Sent != client.Trips*int64(workload.MessagesOf(s).Request) ||
					client.Received != client.Trips*int64(workload.MessagesOf(s).Reply) {
					u.Errorf("client %+v", client)
				}
				if client.Counts[workload.Failed] > 0 {
					return
				}
				if server.TotalRecv != client.TotalSent || client.TotalRecv != server.TotalSent {
					u.Errorf("client %+v\nserver %+v", client, server)
				}
				whole := client.Latency.Mean() * float64(client.Latency.TotalCount()) / 1e9
				if whole > 1.1*client.Window || whole < 0.8*client.Window {
					u.Errorf("%d trips of %.0f ns in a window of %g s", client.Trips,
						client.Latency.Mean(), client.Window)
				}
			})
		})
	}
}

func TestTCPOfManyConnections(t *testing.T) {
	inTime(t, func(u testing.TB) {
		one, _ := both(u, sample.Load{Kind: "rr"})
		many, _ := both(u, sample.Load{Kind: "rr", Streams: 12})
		if one.TCP.MSS == 0 || one.TCP.Cwnd == 0 || many.TCP.MSS != one.TCP.MSS ||
			many.TCP.Cwnd < one.TCP.Cwnd {
			u.Errorf("one connection %+v, the mean of 12 %+v", one.TCP, many.TCP)
		}
	})
}

func TestWhatCannotBeOpened(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().(*net.TCPAddr).AddrPort()
	_, err = Listen(addr, options(sample.Load{Kind: "bulk"}))
	if want := "listen on 127.0.0.1:PORT: address already in use"; !errors.Is(err, unix.EADDRINUSE) ||
		testgolden.Stable(err.Error()) != want {
		t.Errorf("%q, want %q", err, want)
	}
	_, err = Dial(testnet.TCP(t), options(sample.Load{Kind: "rr"}))
	if !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a port that nobody listens on: %v", err)
	}
	for _, s := range []sample.Load{{Kind: "ftp"},
		{Kind: "rr", Options: sample.RROptions{Messages: sample.Messages{Request: -1}}},
		{Kind: "bulk", Options: sample.BulkOptions{Write: workload.MaxMessage + 1}},
		{Kind: "bulk", Streams: -2}} {
		if _, err := Listen(addr, options(s)); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
	_, err = Dial(addr, Options{Load: sample.Load{Kind: "rr"}, CPUs: []int{1023}})
	if err == nil || err.Error() != "pin to CPU 1023: the cpuset of this process's "+
		"control group lacks it; --pin none needs none: invalid argument" {
		t.Errorf("a CPU that is not there: %v", err)
	}
}

func TestNodelay(t *testing.T) {
	for _, tt := range []struct {
		spec sample.Load
		want int
	}{
		{sample.Load{Kind: "bulk"}, 0}, {sample.Load{Kind: "bulk", Nodelay: "on"}, 1},
		{sample.Load{Kind: "rr"}, 1}, {sample.Load{Kind: "rr", Nodelay: "off"}, 0},
		{sample.Load{Kind: "stream"}, 1}, {sample.Load{Kind: "stream", Nodelay: "off"}, 0},
	} {
		srv, cli := opened(t, testnet.TCP(t), options(tt.spec), direct)
		if err := srv.open(); err != nil { // the client's connections are open already
			t.Fatal(err)
		}
		for who, c := range map[string]*threadGroup{"client": cli.threadGroup,
			"server": srv.threadGroup} {
			got, err := unix.GetsockoptInt(c.threads[0].fd, unix.IPPROTO_TCP, unix.TCP_NODELAY)
			if err != nil || got != tt.want {
				t.Errorf("%+v: %s has TCP_NODELAY %d, %v", tt.spec, who, got, err)
			}
		}
		if err := errors.Join(cli.Close(), srv.Close()); err != nil {
			t.Error(err)
		}
	}
	_, err := Listen(testnet.TCP(t), options(sample.Load{Kind: "rr", Nodelay: "perhaps"}))
	if err == nil {
		t.Error("nodelay=perhaps was taken")
	}
}

func TestBrokenConnection(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = c.Read(make([]byte, 1)) // the load has begun
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}()
	Prepare(2)
	cli, err := Dial(ln.Addr().(*net.TCPAddr).AddrPort(), options(sample.Load{Kind: "bulk"}))
	if err != nil {
		t.Fatal(err)
	}
	defer cli.Close()
	_, err = cli.Run(windows(warmup, 10*time.Second)(clock.Now()))
	if !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
		t.Errorf("Run = %v", err)
	}
}

func TestClientThatDoesLittle(t *testing.T) {
	for _, kind := range []string{"bulk", "rr"} {
		t.Run(kind, func(t *testing.T) {
			Prepare(1)
			addr := testnet.TCP(t)
			srv, err := Listen(addr, options(sample.Load{Kind: kind}))
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			c, err := net.Dial("tcp", addr.String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			when := windows(warmup, window)(clock.Now())
			go func() {
				clock.SleepUntil(when.To)
				_, _ = c.Write([]byte{1})
				// a reply that nobody reads would reset the connection
				_ = c.(*net.TCPConn).CloseWrite()
			}()
			st, err := srv.Run(when)
			if err != nil || st.TotalRecv != 1 || st.Received+st.Trips > 1 {
				t.Errorf("%+v, %v", st, err)
			}
		})
	}
}

// crowd's idle clients send nothing in the window.
func crowd(t testing.TB, s sample.Load, clients int, idle func(i int) bool) Stats {
	t.Helper()
	Prepare(4 * clients)
	addr := testnet.TCP(t)
	o := options(s)
	o.Crowd = true
	o.Load.Streams = clients
	srv, err := Listen(addr, o)
	if err != nil {
		t.Fatal(err)
	}
	when := windows(warmup, window)(clock.Now() + int64(30*time.Millisecond))
	ended := make(chan error, clients)
	for i := range clients {
		o := options(s)
		o.Crowd, o.Client = true, 100+i
		cli, err := Dial(addr, o)
		if err != nil {
			t.Fatal(err)
		}
		mine := when
		if idle(i) {
			mine.Start = when.To + int64(window)
		}
		go func() {
			_, err := cli.Run(mine)
			ended <- errors.Join(err, cli.Close())
		}()
	}
	got, err := srv.Run(when)
	for range clients {
		err = errors.Join(err, <-ended)
	}
	if err := errors.Join(err, srv.Close()); err != nil {
		ends(t, err)
	}
	return got
}

func TestCrowd(t *testing.T) {
	for _, spec := range []sample.Load{{Kind: "bulk"},
		{Kind: "rr", Options: sample.RROptions{Messages: sample.Messages{Request: 10}}},
		{Kind: "bulk", Options: sample.BulkOptions{Reverse: true}}} {
		name := spec.Kind
		if workload.BulkOf(spec).Reverse {
			name += "-reverse"
		}
		t.Run(name, func(t *testing.T) {
			inTime(t, func(u testing.TB) {
				const clients, starving = 6, 3
				idle := func(i int) bool { return !workload.BulkOf(spec).Reverse && i == starving }
				got := crowd(u, spec, clients, idle)
				seen := map[int]Flow{}
				var sum, trips, acked int64
				for _, f := range got.Flows {
					seen[f.Client] = f
					sum, trips, acked = sum+f.Received, trips+f.Trips, acked+f.Sent
				}
				if len(seen) != clients {
					u.Fatalf("flows %+v", got.Flows)
				}
				for c, f := range seen {
					if c < 100 || c >= 100+clients {
						u.Errorf("client %d", c)
					}
					if moved := f.Received + f.Trips + f.Sent; (moved == 0) != idle(c-100) {
						u.Errorf("flow %+v", f)
					}
				}
				if sum != got.Received || trips != got.Trips ||
					(workload.BulkOf(spec).Reverse && acked == 0) {
					u.Errorf("flows' sums %d, %d; %+v", sum, trips, got)
				}
				if got.Window < window.Seconds()/2 || got.Window > 3*window.Seconds() {
					u.Errorf("window %g s", got.Window)
				}
				if got.CPU <= 0 || got.BusiestCPU <= 0 {
					u.Errorf("no CPU time: %+v", got)
				}
			})
		})
	}
}

func TestEachLoadHasLoops(t *testing.T) {
	for _, w := range workload.All() {
		if own, ok := table[w.Name]; ok == w.Foreign ||
			ok && (own.client == nil || own.server == nil) {
			t.Errorf("%s, foreign: %t: loops %+v", w.Name, w.Foreign, own)
		}
		if _, ok := table[w.Name]; ok != (w.Gist != "") {
			t.Errorf("%s has loops: %t, and to the command it is %q", w.Name, ok, w.Gist)
		}
	}
	for name := range table {
		if _, ok := workload.Find(name); !ok {
			t.Errorf("the loops of %q have no load", name)
		}
	}
}

func TestLoadsTimeWhatIsListed(t *testing.T) {
	inTime(t, func(u testing.TB) {
		for name := range table {
			l := sample.Load{Kind: name}
			switch name { // short responses, an open loop, and no search for the highest rate
			case workload.Stream:
				l.Options = sample.StreamOptions{Tokens: 3, Pace: 100}
			case workload.RR:
				l.Options = sample.RROptions{Rate: 1e4}
			case workload.UDP:
				l.Options = sample.UDPOptions{Rate: 1e8}
			}
			client, _ := between(u, l, windows(warmup, 5*window), direct)
			w := workload.Of(l)
			if (client.Latency != nil) != w.Trips || len(client.Times) != len(w.Times(l)) {
				u.Errorf("%s: latencies %v, times %v; the catalogue has %v", name,
					client.Latency != nil, client.Times, w.Times(l))
			}
		}
	})
}
