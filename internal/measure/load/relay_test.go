package load

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// delayed starts a relay in user space, which delays each direction.
func delayed(t testing.TB, to netip.AddrPort, delay time.Duration) netip.AddrPort {
	t.Helper()
	return relayed(t, to, func(came time.Time) time.Time { return came.Add(delay) })
}

// stalled starts a relay that keeps what comes between two instants of the clock, in ns, until the
// second one.
func stalled(t testing.TB, to netip.AddrPort, from, until int64) netip.AddrPort {
	t.Helper()
	return relayed(t, to, func(came time.Time) time.Time {
		if now := clock.Now(); now >= from && now < until {
			return came.Add(time.Duration(until - now))
		}
		return came
	})
}

// relayed starts a relay that passes on what comes when leaves says.
func relayed(t testing.TB, to netip.AddrPort,
	leaves func(came time.Time) time.Time) netip.AddrPort {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp4", to.String())
			if err != nil {
				c.Close()
				continue
			}
			wg.Go(func() { pass(s, c, leaves) })
			wg.Go(func() { pass(c, s, leaves) })
		}
	})
	return ln.Addr().(*net.TCPAddr).AddrPort()
}

func pass(to, from net.Conn, leaves func(came time.Time) time.Time) {
	type piece struct {
		at time.Time
		b  []byte
	}
	const queued = 1 << 12
	line := make(chan piece, queued)
	go func() {
		defer close(line)
		for {
			b := make([]byte, 64<<10)
			n, err := from.Read(b)
			if n > 0 {
				line <- piece{leaves(time.Now()), b[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range line {
		time.Sleep(time.Until(p.at))
		if _, err := to.Write(p.b); err != nil {
			break
		}
	}
	for range line {
	}
	if c, ok := to.(*net.TCPConn); ok {
		_ = c.CloseWrite()
	}
}

// lossy relays datagrams whose numbers (from 0) keep accepts, after delay, and replies at once.
func lossy(t testing.TB, to netip.AddrPort, delay time.Duration,
	keep func(n int) bool) netip.AddrPort {
	t.Helper()
	in, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	_ = in.SetReadBuffer(8 << 20)
	out, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		client netip.AddrPort
	)
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), out.Close()); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	wg.Go(func() {
		b := make([]byte, 64<<10)
		for n := 0; ; n++ {
			k, from, err := in.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			mu.Lock()
			client = from
			mu.Unlock()
			if !keep(n) {
				continue
			}
			if delay == 0 {
				_, _ = out.Write(b[:k])
				continue
			}
			late := append([]byte{}, b[:k]...)
			wg.Go(func() {
				time.Sleep(delay)
				_, _ = out.Write(late)
			})
		}
	})
	wg.Go(func() {
		b := make([]byte, 64<<10)
		for {
			k, err := out.Read(b)
			if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				continue
			}
			mu.Lock()
			to := client
			mu.Unlock()
			_, _ = in.WriteToUDPAddrPort(b[:k], to)
		}
	})
	return in.LocalAddr().(*net.UDPAddr).AddrPort()
}

func TestRequestResponseOverADelay(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const delay = 2 * time.Millisecond
		got := overDelay(u, sample.Load{Kind: "rr"}, delay)
		if p50 := time.Duration(got.Latency.ValueAtQuantile(50)); p50 < 2*delay || p50 > 4*delay {
			u.Errorf("a round trip over %s each way takes %s", delay, p50)
		}
	})
}

func overDelay(t testing.TB, s sample.Load, delay time.Duration) Stats {
	t.Helper()
	via := func(a netip.AddrPort) netip.AddrPort { return delayed(t, a, delay) }
	client, _ := between(t, s, windows(warmup, 5*window), via)
	return client
}

// stallsAt runs a load over a relay that stalls from..until of the schedule that when returns.
func stallsAt(t testing.TB, s sample.Load, when func(begin int64) Schedule,
	at func(Schedule) (from, until int64)) Stats {
	t.Helper()
	begin := clock.Now() + int64(100*time.Millisecond)
	w := when(begin)
	from, until := at(w)
	client, _ := between(t, s, func(int64) Schedule { return w },
		func(a netip.AddrPort) netip.AddrPort { return stalled(t, a, from, until) })
	return client
}

// longer returns the number of trips that took at least least.
func longer(s Stats, least time.Duration) (n int64) {
	for _, b := range s.Latency.Distribution() {
		if b.From >= int64(least) {
			n += b.Count
		}
	}
	return n
}
