package load

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

func TestManyConnections(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const n = workload.ManyThreads + 4
		for _, spec := range []sample.Load{{Kind: "rr", Streams: n},
			{Kind: "rr", Streams: n, Options: sample.RROptions{Rate: 1000}},
			{Kind: "rr", Streams: n, Options: sample.RROptions{Beside: true}}} {
			client, server := between(u, spec, windows(10*warmup, 5*window), direct)
			if client.Connections != threads(spec) || client.Trips <= 0 || server.Trips <= 0 ||
				client.Flows != nil || server.Flows != nil {
				u.Errorf("client %+v\nserver %+v", client, server)
			}
			if server.TotalRecv != client.TotalSent || client.TotalRecv != server.TotalSent {
				u.Errorf("client %+v\nserver %+v", client, server)
			}
			if (server.Counts[workload.CountBeside] > 0) != workload.RROf(spec).Beside ||
				client.Counts[workload.CountBeside] > 0 {
				u.Errorf("counts %v, %v", client.Counts, server.Counts)
			}
		}
	})
}

func TestConnections(t *testing.T) {
	inTime(t, func(u testing.TB) {
		client, server := between(u, sample.Load{
			Kind: "rr", Streams: 4, Options: sample.RROptions{
				Messages: sample.Messages{Request: 3, Reply: 5}}}, windows(warmup, window), direct)
		if client.Connections != 4 || server.Connections != 4 || client.Trips <= 0 {
			u.Fatalf("client %+v\nserver %+v", client, server)
		}
		// Trips under way at the bounds may be in only one of the counts.
		if n := client.Latency.TotalCount(); n > client.Trips+4 || n < client.Trips-4 {
			u.Errorf("%d trips, %d timed", client.Trips, n)
		}
		if server.TotalRecv != client.TotalSent || client.TotalRecv != server.TotalSent ||
			client.Times != nil {
			u.Errorf("client %+v\nserver %+v", client, server)
		}
	})
}

func TestPace(t *testing.T) {
	s := sample.Load{Streams: 4, Options: sample.RROptions{Rate: 1000}}
	const start = 5_000_000_000
	want := int64(start)
	for n := range int64(10) {
		for index := range s.Streams {
			if due := paceOf(s, index, start).due(n); due != want {
				t.Errorf("request %d of connection %d is due at %d, want %d", n, index, due, want)
			}
			want += int64(time.Millisecond)
		}
	}
	// An interval with a fraction of a ns must not drift: this is an hour.
	odd := paceOf(sample.Load{Streams: 1, Options: sample.RROptions{Rate: 3}}, 0, 0)
	if due := odd.due(3 * 3600); due != int64(time.Hour) {
		t.Errorf("after an hour it is %d ns off", due-int64(time.Hour))
	}
}

func TestOpenLoop(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const rate, long = 200, 400 * time.Millisecond
		client, _ := between(u, sample.Load{Kind: "rr", Streams: 2,
			Options: sample.RROptions{Rate: rate}}, windows(warmup, long), direct)
		due := int64(rate * long.Seconds())
		if client.Trips < due/2 || client.Trips > 2*due {
			u.Errorf("%d trips, %d were due", client.Trips, due)
		}
		if sends := client.Counts[workload.CountSends]; sends != client.Latency.TotalCount() ||
			sends > client.Trips+2 || sends < client.Trips-2 {
			u.Errorf("%d trips, %d sends, %d latencies", client.Trips, sends,
				client.Latency.TotalCount())
		}
		own := client.Times[workload.TimeOwnLateness]
		if own == nil ||
			own.TotalCount()+client.Counts[workload.CountSendsHeld] != client.Counts[workload.CountSends] {
			u.Errorf("%d sends: %v", client.Counts[workload.CountSends], client.Counts)
		}
		if client.Window < long.Seconds()/2 || client.Window > 2*long.Seconds() {
			u.Errorf("a window of %s took %g s", long, client.Window)
		}
	})
}

// Each request is sent later after it was due than the one before. A closed loop would not measure
// that.
func TestOpenLoopCountsStalls(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const (
			delay    = 10 * time.Millisecond // each way
			interval = 5 * time.Millisecond
			long     = 400 * time.Millisecond
		)
		via := func(a netip.AddrPort) netip.AddrPort { return delayed(u, a, delay) }
		client, _ := between(u, sample.Load{Kind: "rr",
			Options: sample.RROptions{Rate: float64(time.Second / interval)}}, windows(0, long),
			via)
		if client.Trips < 2 || float64(client.Trips) > 1+client.Window/(2*delay).Seconds() {
			u.Fatalf("%d trips", client.Trips)
		}
		// Trip n of n is answered after n*2*delay at the earliest, and was due after
		// (n-1)*interval.
		least := time.Duration(client.Trips)*2*delay - time.Duration(client.Trips-1)*interval
		if got := time.Duration(client.Latency.Max()); got < least*9/10 {
			u.Errorf("the last of %d trips took %s, at least %s were due", client.Trips, got, least)
		}
		if held := client.Counts[workload.CountSendsHeld]; held < client.Trips-2 {
			u.Errorf("%d of %d requests were held up", held, client.Trips)
		}
	})
}

// Half of a window's requests wait for a stall that goes on beyond its end. Only one of them is
// sent.
func TestOpenLoopCountsAStallAtTheEnd(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const (
			rate    = 250
			long    = 400 * time.Millisecond
			stall   = long / 2
			beyond  = 20 * time.Millisecond
			waiting = rate * stall / time.Second
		)
		client := stallsAt(u, sample.Load{Kind: "rr", Options: sample.RROptions{Rate: rate}},
			windows(warmup, long), func(w Schedule) (from, until int64) {
				return w.To - int64(stall), w.To + int64(beyond)
			})
		if n := longer(client, beyond); n < int64(waiting)*8/10 || n > int64(waiting)*12/10 {
			u.Errorf("%d requests waited for more than %s, %d were due in the stall", n, beyond, waiting)
		}
		if n, all := client.Latency.TotalCount(), int64(rate*long/time.Second); n < all-1 ||
			n > all+1 || n != client.Counts[workload.CountSends] {
			u.Errorf("%d of %d requests: %v", n, all, client.Counts)
		}
	})
}

// In an overloaded hour, a request waits for longer than the histogram holds.
func TestUnsentRequests(t *testing.T) {
	hour := int64(time.Hour)
	th := &thread{when: Schedule{To: hour}, hist: options(sample.Load{}).NewHistogram()}
	p := paceOf(sample.Load{Streams: 1, Options: sample.RROptions{Rate: 1e7}}, 0, 0)
	const sent = 1000
	if n := th.unsent(p, sent, hour); n != 1e7*3600-sent || th.hist.TotalCount() != n ||
		th.hist.Max() < int64(time.Minute) {
		t.Errorf("%d requests, %d recorded, at most %s", n, th.hist.TotalCount(),
			time.Duration(th.hist.Max()))
	}
}

func TestOpenLoopOfFewRequests(t *testing.T) {
	inTime(t, func(u testing.TB) {
		client, _ := between(u, sample.Load{Kind: "rr", Options: sample.RROptions{Rate: 0.5}},
			windows(warmup, 5*window), direct)
		if client.Trips != 0 || client.Window < 5*window.Seconds()/2 ||
			client.Window > 10*window.Seconds() {
			u.Errorf("client %+v", client)
		}
	})
}

func TestSleepUntil(t *testing.T) {
	for _, wait := range []time.Duration{0, -time.Second, 3 * time.Millisecond} {
		until := clock.Now() + int64(wait)
		sleepUntil(until)
		const clocks = int64(50 * time.Microsecond)
		if woke := clock.Now(); woke < until-clocks {
			t.Errorf("slept %s: woke %d ns early", wait, until-woke)
		}
	}
}

func TestBesideAStream(t *testing.T) {
	inTime(t, func(u testing.TB) {
		for _, spec := range []sample.Load{
			{Kind: "rr", Options: sample.RROptions{Beside: true}},
			{Kind: "rr", Streams: 3, Options: sample.RROptions{
				Messages: sample.Messages{Request: 10, Reply: 20}, Beside: true}},
			{Kind: "rr", Options: sample.RROptions{Beside: true, Rate: 500}},
		} {
			client, server := between(u, spec, windows(warmup, 3*window), direct)
			s := withDefaults(spec)
			if n := s.Streams + 1; client.Connections != n || server.Connections != n {
				u.Errorf("connections %d, %d", client.Connections, server.Connections)
			}
			if client.Trips <= 0 ||
				client.Received != client.Trips*int64(workload.MessagesOf(s).Reply) {
				u.Errorf("client %+v", client)
			}
			if server.TotalRecv != client.TotalSent || client.TotalRecv != server.TotalSent {
				u.Errorf("client %+v\nserver %+v", client, server)
			}
			got, ns := server.Counts[workload.CountBeside], server.Counts[workload.CountBesideNs]
			if got <= 0 || got > server.Received ||
				got < server.Received-(client.Trips+10_000)*int64(workload.MessagesOf(s).Request) ||
				ns < int64(window) {
				u.Errorf("the stream brought %d of %d bytes in %d ns", got, server.Received, ns)
			}
		}
	})
}

func TestBesideAStranger(t *testing.T) {
	addr := testnet.TCP(t)
	srv, err := Listen(addr, options(sample.Load{
		Kind: "rr", Options: sample.RROptions{Beside: true}}))
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	var fds []int
	for range 2 {
		fd, err := connect(addr, false)
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
		if err := greet(fd, 77); err != nil {
			t.Fatal(err)
		}
	}
	if err := srv.open(); err == nil {
		t.Error("it was taken")
	}
	for _, fd := range fds {
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	}
}
