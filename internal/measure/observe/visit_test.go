package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// TestClockMoved reads the clocks while it has to wait for a CPU.
func TestClockMoved(t *testing.T) {
	var over sync.WaitGroup
	ctx, end := context.WithCancel(t.Context())
	for range 16 {
		over.Go(func() {
			for ctx.Err() == nil {
			}
		})
	}
	defer over.Wait()
	defer end()
	ahead := clock.Real()
	for until := time.Now().Add(300 * ms); time.Now().Before(until); {
		if moved := clockMoved(ahead); moved != 0 {
			t.Fatalf("the clock is said to have moved by %v s", moved)
		}
	}
	if moved := clockMoved(ahead - 1e9); math.Abs(moved-1) > 1e-3 {
		t.Errorf("a clock that was set by 1 s moved by %v s", moved)
	}
}

// TestEvidenceOfUnsureHops has a route that may lack hops.
func TestEvidenceOfUnsureHops(t *testing.T) {
	for _, unsure := range []bool{false, true} {
		v := &Visit{w: &Watch{}, route: &route{hops: make([]hop, 1), unsure: unsure}}
		if e := v.evidence(); e.HopsUnsure != unsure {
			t.Errorf("%+v of %+v", e, v.route)
		}
	}
}

// Rings that lost packets are opened again, larger. Loss where no connection of a route is does not
// matter to it.
func TestRingsGrow(t *testing.T) {
	m, other := newMachine(t), newMachine(t)
	m.serve(t, "127.0.0.1:7001", model(&truth{}, steady(ms), false))
	other.serve(t, "127.0.0.1:7009", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	testwait.Unhindered(t, patience, func(u testing.TB) {
		k := follow(u, m, "http://127.0.0.1:7001", 3)
		w := k.watch
		space := slices.IndexFunc(w.spaces, func(f netns.Found) bool { return f.PID == other.pid })
		small, err := openIn(w.spaces[space], space, capture.Small, 1, 7009)
		if err != nil {
			u.Fatal(err)
		}
		overflow(u, other, "127.0.0.1:7009")
		e, _ := k.visitBeside(u, 1, 1, func() error { // which lost something meanwhile
			w.mu.Lock()
			defer w.mu.Unlock()
			w.rings = append(w.rings, small)
			return nil
		})
		if why, ok := e.Clear(); !ok || e.Lost != 0 {
			u.Fatalf("%s: %+v", why, e)
		}
		hard := testwait.Hard(u)
		if w.grown[space] != 2 || !w.holes {
			hard.Fatalf("grown %v, holes %v", w.grown, w.holes)
		}
		mine, recorder := w.rings[0], w.writes
		w.grown[mine.space], w.grownWrites = 2, 2
		e, _ = k.visit(u, 1, 1)
		if why, ok := e.Clear(); !ok {
			u.Fatalf("%s: %+v", why, e)
		}
		if slices.Contains(w.rings, small) || slices.Contains(w.rings, mine) || w.holes ||
			w.rings[0].times != 2 || recorder != nil && (w.writes == recorder || !e.Writes) {
			hard.Errorf("%+v, holes %v", w.rings, w.holes)
		}
	})
}

// overflow sends more than a small ring holds.
func overflow(t testing.TB, m *machine, at string) {
	t.Helper()
	c, _, err := m.dial(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(make([]byte, 16<<20)); err != nil {
		t.Fatal(err)
	}
}

// tooLarge is by how much a ring would have to be larger than any may be.
const tooLarge = 1 << 20

// Where there is no memory for larger rings, usual ones go on.
func TestRingsThatCannotGrow(t *testing.T) {
	m := newMachine(t)
	m.serve(t, "127.0.0.1:7001", model(&truth{}, steady(ms), false))
	k := follow(t, m, "http://127.0.0.1:7001", 3)
	w := k.watch
	mine, recorder := w.rings[0], w.writes
	for name, open := range map[string]func() error{"in place": func() error { return nil },
		"anew": func() error { return errors.Join(w.halt(), w.start()) }} {
		testwait.Unhindered(t, patience, func(u testing.TB) {
			w.grown[mine.space], w.grownWrites, w.holes = tooLarge, tooLarge, true
			if err := open(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			e, _ := k.visit(u, 1, 1)
			if why, ok := e.Clear(); !ok {
				u.Fatalf("%s: %s: %+v", name, why, e)
			}
			if w.rings[0].times != 1 || recorder != nil && (w.writes == nil || !e.Writes) {
				testwait.Hard(u).Errorf("%s: %+v", name, e)
			}
		})
	}
}

// A busy namespace is looked into with a usual ring if there is no memory for a large one.
func TestOpenAllWithoutMemory(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	m := newMachine(t)
	spaces, err := netns.Find()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, s := range spaces {
			_ = s.Close()
		}
	}()
	busy := slices.IndexFunc(spaces, func(f netns.Found) bool { return f.PID == m.pid })
	rings, err := openAll(spaces, []int{busy}, capture.Small, capture.Begins.Times(tooLarge))
	defer func() { _ = closeAll(rings) }()
	if err != nil || !slices.ContainsFunc(rings, func(r *ring) bool { return r.space == busy }) {
		t.Errorf("namespace %d is not looked into: %v", busy, err)
	}
}

// The next thousand marks are found, with a carry among them.
func TestMarkedNext(t *testing.T) {
	for _, asked := range []uint32{0, 998, 1500} {
		w := newWatch()
		w.base = 1_999_998_700
		w.marks.Store(asked)
		marked := w.markedNext()
		for i := range uint32(1000) {
			text := fmt.Sprintf("X-Request-Id: toll-%d\r\n", w.base+asked+1+i)
			if !marked(&capture.Packet{Payload: []byte(text)}) {
				t.Fatalf("after %d: %s", asked, text)
			}
		}
		if marked(&capture.Packet{Payload: []byte("toll-1000000001")}) {
			t.Error("another number")
		}
	}
}
