package load

import (
	"errors"
	"math"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

// Terms are those of RFC 4737 and RFC 5560.
func TestTracker(t *testing.T) {
	for _, c := range []struct {
		name        string
		seqs        []uint64
		fresh, late []int // indexes into seqs
	}{
		{"in-order", []uint64{0, 1, 2}, []int{0, 1, 2}, nil},
		{"gap", []uint64{0, 5, 6}, []int{0, 1, 2}, nil},
		{"late", []uint64{0, 2, 1, 3}, []int{0, 1, 2, 3}, []int{2}},
		{"twice", []uint64{0, 1, 1, 2}, []int{0, 1, 3}, []int{2}},
		{"late-and-twice", []uint64{0, 3, 1, 1, 0}, []int{0, 1, 2}, []int{2, 3, 4}},
		{"a-lap-later", []uint64{7, 7 + trackBits, 8, 8}, []int{0, 1, 2}, []int{2, 3}},
		{"far-ahead", []uint64{7, 7 + 5*trackBits, 7 + 4*trackBits + 1}, []int{0, 1, 2}, []int{2}},
		{"too-old-to-know", []uint64{0, 2 * trackBits, 0}, []int{0, 1, 2}, []int{2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var k tracker
			var fresh, late []int
			for i, s := range c.seqs {
				f, l := k.add(s)
				if f {
					fresh = append(fresh, i)
				}
				if l {
					late = append(late, i)
				}
			}
			if !slices.Equal(fresh, c.fresh) || !slices.Equal(late, c.late) {
				t.Errorf("fresh %v, late %v", fresh, late)
			}
		})
	}
}

func simulated(capacity, top float64) func(rate float64) (sent, got float64, ok bool) {
	return func(rate float64) (float64, float64, bool) {
		if rate == 0 || rate > top {
			rate = top
		}
		return rate, min(rate, capacity), rate <= capacity
	}
}

func TestBracketFindsTheCapacity(t *testing.T) {
	for _, c := range []struct{ capacity, top float64 }{{1e6, 1e5}, {1e5, 1e5}, {9e4, 1e5},
		{5e4, 1e5}, {1e3, 1e5}, {99, 1e6}} {
		var b bracket
		path := simulated(c.capacity, c.top)
		for range 10 {
			rate := b.next()
			sent, got, ok := path(rate)
			b.step(rate, sent, got, ok)
		}
		best := b.best()
		switch {
		case c.capacity >= c.top:
			if best != 0 {
				t.Errorf("capacity %g of %g: rate %g, want as fast as can be", c.capacity, c.top,
					best)
			}
		case best > c.capacity || best < 0.85*c.capacity:
			t.Errorf("capacity %g of %g: rate %g", c.capacity, c.top, best)
		}
	}
}

func TestBracketSurvivesNoise(t *testing.T) {
	for spoilt := range 6 {
		var b bracket
		path := simulated(8e4, 1e5)
		for i := range 14 {
			rate := b.next()
			sent, got, ok := path(rate)
			if i == spoilt {
				got, ok = 0.5*got, false
			}
			b.step(rate, sent, got, ok)
		}
		if best := b.best(); best > 8e4 || best < 0.8*8e4 {
			t.Errorf("step %d spoilt: rate %g of 80000", spoilt, best)
		}
	}
	var b bracket // nothing ever comes through
	for range 5 {
		b.step(b.next(), 1e5, 0, false)
	}
	if best := b.best(); math.IsNaN(best) || best < 0 {
		t.Errorf("rate %g", best)
	}
}

func freeUDP(t testing.TB) netip.AddrPort {
	t.Helper()
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), testnet.Port(t))
}

func TestUDP(t *testing.T) {
	const mbit = 1e6
	for _, c := range []struct {
		name string
		spec sample.Load
	}{
		{"paced", sample.Load{Options: sample.UDPOptions{Rate: 20 * mbit}}},
		{"several-after-a-pause", sample.Load{Options: sample.UDPOptions{Rate: 200 * mbit}}},
		{"slow", sample.Load{Options: sample.UDPOptions{Rate: mbit, Size: 64}}},
		{"two-flows", sample.Load{Streams: 2, Options: sample.UDPOptions{Rate: 20 * mbit}}},
		{"large", sample.Load{Options: sample.UDPOptions{
			Rate: 100 * mbit, Size: workload.MaxDatagram}}},
		{"small", sample.Load{Options: sample.UDPOptions{
			Rate: 5 * mbit, Size: workload.MinDatagram}}},
		{"batch", sample.Load{Options: sample.UDPOptions{Rate: 20 * mbit, Batch: 4}}},
		{"gso", sample.Load{Options: sample.UDPOptions{Rate: 50 * mbit, GSO: true}}},
		{"gso-batch", sample.Load{Options: sample.UDPOptions{
			Rate: 100 * mbit, GSO: true, Batch: 2, Size: 1000}}},
		{"search", sample.Load{}},
		{"search-gso-batch", sample.Load{Options: sample.UDPOptions{GSO: true, Batch: 8}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(u testing.TB) {
				c.spec.Kind = "udp"
				client, server,
					err := over(u, c.spec, windows(150*time.Millisecond, window), direct)
				if err != nil {
					u.Fatal(err)
				}
				s := withDefaults(c.spec)
				o := workload.UDPOf(s)
				in, out := server.Counts, client.Counts
				if in[workload.CountDatagrams]+in[workload.CountLost] != out[workload.CountDatagrams] {
					t.Errorf("sent %d in the window, %d came and %d are lost",
						out[workload.CountDatagrams], in[workload.CountDatagrams],
						in[workload.CountLost])
				}
				if in[workload.CountDropped] > in[workload.CountLost] ||
					in[workload.CountDuplicates] != 0 || in[workload.CountBuffer] == 0 {
					u.Errorf("server %v", in)
				}
				if out[workload.CountDatagrams] == 0 || server.TotalRecv == 0 ||
					server.TotalRecv > client.TotalSent || server.TotalRecv%int64(o.Size) != 0 ||
					client.TotalRecv != 0 {
					u.Errorf("sent %d bytes, %d arrived", client.TotalSent, server.TotalRecv)
				}
				if client.Connections != s.Streams || server.Connections != s.Streams {
					u.Errorf("flows %d, %d", client.Connections, server.Connections)
				}
				most := o.Rate * (window + 2*maxBehind*time.Nanosecond).Seconds() / 8 * 1.5
				if o.Rate > 0 && float64(client.Sent) > most+2*float64(o.Size*o.Batch*maxSegments) {
					u.Errorf("%d bytes in the window at %g bit/s", client.Sent, o.Rate)
				}
				if o.Rate > 0 &&
					math.Abs(float64(out[workload.CountRate])-o.Rate) > float64(s.Streams) {
					u.Errorf("rate %d, want %g", out[workload.CountRate], o.Rate)
				}
			})
		})
	}
}

func TestAhead(t *testing.T) {
	for rate, want := range map[float64]int64{1: resolution, 5e3: resolution, 44643: resolution,
		mostAhead * 1e9 / resolution: resolution, 1e6: mostAhead * 1000} {
		if got := ahead(rate); got != want {
			t.Errorf("%g datagrams a second: %d ns, want %d", rate, got, want)
		}
	}
}

func TestUDPLossIsCounted(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const every = 10
		lossy := func(addr netip.AddrPort) netip.AddrPort {
			return lossy(u, addr, 0, func(n int) bool { return n%every != every-1 })
		}
		client, server, err := over(u, sample.Load{
			Kind: "udp", Options: sample.UDPOptions{Rate: 4e6, Size: 500}},
			windows(warmup, 5*window), lossy)
		if err != nil {
			u.Fatal(err)
		}
		sent, came, lost := client.Counts[workload.CountDatagrams],
			server.Counts[workload.CountDatagrams], server.Counts[workload.CountLost]
		if came+lost != sent || lost < sent/every-2 {
			u.Errorf("of %d datagrams %d came and %d are lost", sent, came, lost)
		}
		// In the whole visit every tenth of all that crossed the relay is missing.
		total := float64(client.TotalSent-server.TotalRecv) / float64(client.TotalSent)
		if total < 0.8/every {
			u.Errorf("a share of %g is lost", total)
		}
	})
}

func TestUDPSearchEnds(t *testing.T) {
	inTime(t, func(u testing.TB) {
		half := func(addr netip.AddrPort) netip.AddrPort {
			return lossy(u, addr, 0, func(n int) bool { return n < 4 || n%2 == 0 })
		}
		client, server, err := over(u, sample.Load{Kind: "udp"},
			windows(200*time.Millisecond, window), half)
		if err != nil {
			u.Fatal(err)
		}
		if server.Counts[workload.CountLost] == 0 || client.Counts[workload.CountRate] == 0 {
			u.Errorf("client %v, server %v", client.Counts, server.Counts)
		}
	})
}

func TestUDPWithoutDatagrams(t *testing.T) {
	inTime(t, func(u testing.TB) {
		begun := func(addr netip.AddrPort) netip.AddrPort {
			return lossy(u, addr, 0, func(n int) bool { return n < 8 })
		}
		_, _, err := over(u, sample.Load{Kind: "udp",
			Options: sample.UDPOptions{Rate: 4e6, Size: 500}}, windows(warmup, window), begun)
		if !errors.Is(err, errCutOff) {
			u.Errorf("Run = %v", err)
		}
		_, _, err = over(u, sample.Load{Kind: "udp",
			Options: sample.UDPOptions{Rate: 1e4, Size: 50_000}}, windows(warmup, window), direct)
		if !errors.Is(err, errNoneSent) {
			u.Errorf("at a rate of nothing, Run = %v", err)
		}
	})
}

func TestUDPRR(t *testing.T) {
	for _, c := range []struct {
		name string
		spec sample.Load
	}{
		{"one-byte", sample.Load{}},
		{"uneven", sample.Load{Options: sample.Messages{Request: 100, Reply: 9000}}},
		{"as-long-as-a-control-message", sample.Load{
			Options: sample.Messages{Request: controlBytes, Reply: controlBytes}}},
		{"largest", sample.Load{Options: sample.Messages{
			Request: workload.MaxDatagram, Reply: workload.MaxDatagram}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(u testing.TB) {
				c.spec.Kind = "udp-rr"
				client, server, err := over(u, c.spec, windows(warmup, window), direct)
				if err != nil {
					u.Fatal(err)
				}
				s := withDefaults(c.spec)
				if client.Trips <= 0 || client.Latency == nil ||
					client.Latency.TotalCount() < client.Trips-1 {
					u.Fatalf("client %+v", client)
				}
				// The first request may have been sent before the window.
				if client.Sent < (client.Trips-1)*int64(workload.MessagesOf(s).Request) ||
					client.Received != client.Trips*int64(workload.MessagesOf(s).Reply) {
					u.Errorf("client %+v", client)
				}
				if server.TotalRecv > client.TotalSent || client.TotalRecv > server.TotalSent {
					u.Errorf("client %+v\nserver %+v", client, server)
				}
			})
		})
	}
}

func TestUDPRRLoss(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const wide = 450 * time.Millisecond // a lost trip takes 100 ms of it
		lossy := func(addr netip.AddrPort) netip.AddrPort {
			return lossy(u, addr, time.Millisecond, func(n int) bool { return n%20 != 19 })
		}
		client, _, err := over(u, sample.Load{
			Kind: "udp-rr", Options: sample.Messages{Request: 100, Reply: 10}},
			windows(warmup, wide), lossy)
		if err != nil {
			u.Fatal(err)
		}
		lost := client.Counts[workload.CountLost]
		if lost < 1 || lost > int64(wide/(replyTime*time.Nanosecond))+1 || client.Trips < lost {
			u.Errorf("%d trips, %v", client.Trips, client.Counts)
		}
		if p50 := time.Duration(client.Latency.ValueAtQuantile(50)); p50 < time.Millisecond ||
			p50 > replyTime {
			u.Errorf("a round trip over 1 ms takes %s", p50)
		}
	})
}

func TestUDPServerWithoutItsClient(t *testing.T) {
	inTime(t, func(u testing.TB) {
		for kind, loop := range map[string]error{"udp": errNothing, "udp-rr": errNothing} {
			srv, cli := opened(u, freeUDP(u), options(sample.Load{Kind: kind}), direct)
			when := windows(warmup, window)(clock.Now())
			if _, err := srv.Run(when); !errors.Is(err, loop) {
				u.Errorf("%s: Run = %v", kind, err)
			}
			if took := time.Duration(clock.Now() - when.To); took > 2*lastWord*time.Nanosecond {
				u.Errorf("%s: it took %s", kind, took)
			}
			if err := errors.Join(cli.Close(), srv.Close()); err != nil {
				u.Error(err)
			}
		}
	})
}

func TestWhatUDPCannotOpen(t *testing.T) {
	addr := freeUDP(t)
	srv, err := Listen(addr, options(sample.Load{Kind: "udp"}))
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	if _, err := Listen(addr, options(sample.Load{Kind: "udp-rr"})); err == nil ||
		testgolden.Stable(err.Error()) != "listen on 127.0.0.1:PORT by UDP: address already in use" {
		t.Errorf("a port that is taken: %v", err)
	}
	_, err = Dial(testnet.UDP(t), options(sample.Load{Kind: "udp-rr"}))
	if !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a port that nobody listens on: %v", err)
	}
	for _, s := range []sample.Load{{Kind: "udp", Options: sample.UDPOptions{Size: 63}},
		{Kind: "udp", Options: sample.UDPOptions{Size: workload.MaxDatagram + 1}},
		{Kind: "udp", Options: sample.UDPOptions{Batch: workload.MaxBatch + 1}},
		{Kind: "udp-rr", Options: sample.Messages{Request: workload.MaxDatagram + 1}},
		{Kind: "udp", Options: sample.UDPOptions{Rate: math.NaN()}},
		{Kind: "udp", Options: sample.UDPOptions{Rate: -1}}} {
		if _, err := Listen(addr, options(s)); err == nil || errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("%+v was taken: %v", s, err)
		}
	}
	o := options(sample.Load{Kind: "udp"})
	o.Crowd = true
	if _, err := Listen(addr, o); err == nil || err.Error() != "load udp: cannot have several clients, servers or processes" {
		t.Errorf("a crowd: %v", err)
	}
}

// A loss is noticed when the window, or the slice, is long over.
func TestUDPRoundTripLostAtTheEnd(t *testing.T) {
	inTime(t, func(u testing.TB) {
		l := sample.Load{Kind: "udp-rr"}
		var drop atomic.Int64 // a request that comes at that time or later
		drop.Store(math.MaxInt64)
		for _, in := range []func(Schedule) int64{
			func(s Schedule) int64 { return (s.From + s.To) / 2 },
			func(s Schedule) int64 { return (s.Slices[2].From + s.Slices[2].To) / 2 }} {
			client, _, err := over(u, l, func(begin int64) Schedule {
				s := sliced(begin, 4)
				drop.Store(in(s))
				return s
			}, func(a netip.AddrPort) netip.AddrPort {
				return lossy(u, a, 0, func(int) bool {
					if clock.Now() < drop.Load() {
						return true
					}
					drop.Store(math.MaxInt64)
					return false
				})
			})
			if err != nil {
				u.Fatal(err)
			}
			share := workload.FiguresOf(sample.Visit{Ends: sample.Ends{Client: client.Party}},
				withDefaults(l), sample.Shape{}).Values[workload.Loss]
			n := client.Counts[workload.CountAnswered]
			if client.Counts[workload.CountLost] != 1 || n < client.Trips || share != 1/float64(n+1) {
				u.Errorf("one request was lost, a share of %g: %v", share, client.Counts)
			}
		}
	})
}

func FuzzReceiver(f *testing.F) {
	f.Add(control(make([]byte, controlBytes), head{kind: ask, run: 7}, 1), false)
	f.Add(control(make([]byte, controlBytes), head{kind: end, run: 7}, 1, 2, 3, 4), true)
	f.Add(control(make([]byte, controlBytes), head{kind: data, part: 1, step: 3, run: 7}, -1), true)
	f.Add([]byte{magic}, false)
	f.Fuzz(func(t *testing.T, b []byte, gso bool) {
		th := &thread{fd: -1, spec: withDefaults(
			sample.Load{Kind: "udp", Options: sample.UDPOptions{GSO: gso}})}
		r := &receiver{t: th, f: &flow{run: 7, word: make([]byte, controlBytes)}}
		for range 2 {
			r.take(b, 1)
		}
		if th.recvd > int64(2*len(b)) || r.in.got > int64(r.total) {
			t.Errorf("%d bytes, %d of %d datagrams", th.recvd, r.in.got, r.total)
		}
		if _, ok := parseHead(b, 7); !ok && len(b) > 0 && r.total > 0 && !gso {
			t.Error("another run's datagram was counted")
		}
	})
}
