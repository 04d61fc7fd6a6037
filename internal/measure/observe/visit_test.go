package observe

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
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
	flood := func() { // more than the ring holds
		other.serve(t, "127.0.0.1:7009", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
		c, _, err := other.dial(t.Context(), "tcp", "127.0.0.1:7009")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(make([]byte, 64<<20)); err != nil {
			t.Fatal(err)
		}
	}
	k := follow(t, m, "http://127.0.0.1:7001", 3)
	w := k.watch
	space := slices.IndexFunc(w.spaces, func(f netns.Found) bool { return f.PID == other.pid })
	small, err := openIn(w.spaces[space], space, capture.Small, 7009)
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.rings = append(w.rings, small)
	w.mu.Unlock()
	e, _ := k.visitBeside(t, 1, 1, func() error {
		w.mu.Lock() // nobody reads the ring
		defer w.mu.Unlock()
		flood()
		return nil
	})
	if why, ok := e.Clear(); !ok || e.Lost != 0 {
		t.Errorf("%s: %+v", why, e)
	}
	if w.grown[space] != 2 || !w.full {
		t.Fatalf("grown %v, full %v", w.grown, w.full)
	}
	w.grown[w.routes["r"].client.Space], w.grownWrites = 2, 2
	e, _ = k.visit(t, 1, 1)
	if why, ok := e.Clear(); !ok || w.full || slices.Contains(w.rings, small) {
		t.Errorf("%s, full %v: %+v", why, w.full, e)
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
