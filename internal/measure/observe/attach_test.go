package observe

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// asking makes requests one after the other over each of n connections, which are opened first, until
// stop, which returns their number.
func asking(t testing.TB, dial func() (net.Conn, error), n int) (stop func() int) {
	t.Helper()
	var over sync.WaitGroup
	var made atomic.Int64
	var clients []net.Conn
	for range n {
		c, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	for _, c := range clients {
		over.Go(func() {
			for r := bufio.NewReader(c); ; made.Add(1) {
				if _, err := io.WriteString(c, "request\n"); err != nil {
					return
				}
				if _, err := r.ReadString('\n'); err != nil {
					return
				}
			}
		})
	}
	return func() int {
		for _, c := range clients {
			c.Close()
		}
		over.Wait()
		return int(made.Load())
	}
}

// attached watches a server with clients that were connected before, recording at most so much a
// second. It returns the number of their requests, too.
func attached(t testing.TB, clients int, serves, during time.Duration, most float64,
	set ...func(*serving)) (s *sample.Served, made int) {
	t.Helper()
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { testnet.Accept(l, lines(serves, false)) })
	defer all.Wait()
	defer l.Close()
	dial := func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }
	stop := asking(t, dial, clients)
	ctx, enough := context.WithTimeout(t.Context(), patience)
	defer enough()
	w, err := attach(ctx, os.Getpid(), probing(dial))
	if err == nil {
		w.most = most
		for _, f := range set {
			f(w)
		}
		s, err = w.watch(ctx, during)
		err = errors.Join(err, w.Close())
	}
	made = stop()
	if err != nil {
		t.Fatal(err)
	}
	if s.Requests > 0 && s.Connections != clients || s.Server.PID != os.Getpid() {
		t.Fatalf("%+v", s)
	}
	took := 0.0
	for _, p := range s.Parts {
		if p.Part == sample.EvidenceServer || p.Part == sample.ServedCPU {
			took += p.Mean
		}
	}
	if s.Requests > 0 && took < serves.Seconds() {
		t.Errorf("the server takes %v s: %+v", took, s.Parts)
	}
	return s, made
}

// TestAttachClockSet sets the clock of packets, but not that of writes: only what was not taken yet
// is dropped.
func TestAttachClockSet(t *testing.T) {
	w := beingAsked(t, 1, 0)
	seen := func() bool {
		before := w.all.Count()
		_, err := w.take(0)
		return err != nil || w.all.Count() > before
	}
	testwait.Until(t, patience, "requests", seen)
	w.mu.Lock()
	w.realtime -= time.Second.Nanoseconds()
	w.mu.Unlock()
	before := w.all.Count()
	if _, err := w.take(0); err != nil || w.all.Count() != before || w.served.ClockSet != 1 {
		t.Errorf("%d requests after %d, set %d times, %v", w.all.Count(), before, w.served.ClockSet, err)
	}
	testwait.Until(t, patience, "requests with the clock as it is", seen)
	if w.served.ClockSet != 1 {
		t.Errorf("set %d times", w.served.ClockSet)
	}
}

// beingAsked watches a server that clients ask all the time.
func beingAsked(t *testing.T, clients int, serves time.Duration) *serving {
	t.Helper()
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go testnet.Accept(l, lines(serves, false))
	dial := func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }
	w, err := attach(t.Context(), os.Getpid(), probing(dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	stop := asking(t, dial, clients)
	t.Cleanup(func() { stop() })
	return w
}

// probing returns what finds a server.
func probing(dial func() (net.Conn, error)) func() (uint16, error) {
	return func() (uint16, error) {
		c, err := dial()
		if err != nil {
			return 0, err
		}
		return c.LocalAddr().(*net.TCPAddr).AddrPort().Port(), c.Close()
	}
}

func TestAttach(t *testing.T) {
	for _, tt := range []struct {
		clients int
		serves  time.Duration
	}{{1, 5 * ms}, {300, 50 * ms}} {
		testwait.Unhindered(t, patience, func(u testing.TB) {
			got, made := attached(u, tt.clients, tt.serves, 2*time.Second, math.Inf(1))
			if got.Requests == 0 || recordsWrites(t) && !got.Writes {
				u.Errorf("%+v of %d", got, made)
			}
			if got.Spells != 0 || got.Estimated != 0 || got.Requests > made ||
				got.Unanswered > tt.clients || got.Followed == 0 || got.Followed > got.Elapsed {
				t.Errorf("%+v of %d", got, made)
			}
			// Each connection's last reply may not yet have been read when it was looked for.
			if c := got.Client; got.Writes && (c == nil || c.Requests+2*tt.clients < got.Requests ||
				c.Whole.Mean < got.Whole.Mean) {
				u.Errorf("clients of %d requests: %+v", got.Requests, c)
			}
			if got.Writes && got.Lost == 0 && got.Unmatched > 0 {
				u.Errorf("%d and %d requests, those without writes", got.Requests, got.Unmatched)
			}
		})
	}
}

// TestAttachInSpells lets the watching record less than what a client's requests need.
func TestAttachInSpells(t *testing.T) {
	testwait.Unhindered(t, time.Minute, func(u testing.TB) {
		const most = 200
		got, made := attached(u, 1, 5*ms, 4*time.Second, most)
		if got.Spells == 0 || got.Followed > got.Elapsed/2 || got.Requests > made/2 ||
			got.Requests == 0 {
			u.Errorf("%+v of %d", got, made)
		}
		if e := got.Estimated; e < float64(made)/2 || e > float64(made)*2 {
			u.Errorf("%v requests are estimated, %d were made", e, made)
		}
		if len(got.Pace) == 0 || slices.Min(got.Pace) <= 0 {
			u.Errorf("the spells' pace is %v", got.Pace)
		}
		// Of one client, with each spell's first request.
		if most := got.Followed/(5*ms).Seconds() + float64(got.Spells); float64(got.Requests) > most {
			t.Errorf("%d requests of 5 ms in %v s: %+v", got.Requests, got.Followed, got)
		}
	})
}

// What begins to come in an idle second does not wait for its end, but is followed for a spell.
func TestRecordForEnough(t *testing.T) {
	const most = 200
	w := beingAsked(t, 20, 20*ms)
	w.most = most
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	n, _, err := w.recordFor(ctx, time.Hour, 0)
	took := time.Since(began)
	if err != nil || n < most || ctx.Err() != nil || took < w.spell() || w.spell() < 40*20*ms {
		t.Errorf("%d records in %s of %s, %v, %v", n, took, w.spell(), err, ctx.Err())
	}
}

// Requests are estimated also while toll looks for ports and begins to capture again, and as in the
// spell before if nothing of a spell is known.
func TestEstimate(t *testing.T) {
	began := time.Now()
	e := estimate{until: began}
	for i, x := range []struct {
		until    time.Duration
		requests int
		followed float64
		want     float64
	}{
		{time.Second, 10, 0.1, 100},
		{3 * time.Second, 0, 1, 100},
		{4 * time.Second, 30, 0.3, 200},
		{6 * time.Second, 0, 0, 400},
	} {
		if e.add(began.Add(x.until), x.requests, x.followed); math.Abs(e.sum-x.want) > 1e-6 {
			t.Errorf("%d: %v requests are estimated, want %v", i, e.sum, x.want)
		}
	}
}

// Requests are kept until the end, so there is a last one.
func TestAttachEndsWithEnough(t *testing.T) {
	const enough = 50
	got, _ := attached(t, 1, ms, time.Hour, math.Inf(1), func(s *serving) { s.kept = enough })
	if got.Requests+got.Unmatched < enough || got.Elapsed > patience.Seconds()/2 {
		t.Errorf("%+v", got)
	}
}

func TestAttachToNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	failed := errors.New("nothing there")
	if _, err := Attach(t.Context(), func() (uint16, error) { return 0, failed },
		time.Second); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
}

// recordsWrites reports whether this process may record writes.
func recordsWrites(t testing.TB) bool {
	t.Helper()
	writes, _ := records(t, writes.Of{Local: []uint16{1}})
	return writes
}

// records reports whether this process may record writes or datagrams, and what clients read.
func records(t testing.TB, of writes.Of) (written, read bool) {
	t.Helper()
	of.Reads = true
	w, err := writes.Open(of)
	if err != nil {
		return false, false
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return true, w.Reads()
}

// needsWrites skips the test if this process may not record writes.
func needsWrites(t *testing.T) {
	t.Helper()
	if !recordsWrites(t) {
		pathtest.SkipOrFail(t, "writes cannot be recorded here")
	}
}
