package cli

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestReadingTells(t *testing.T) {
	var told bytes.Buffer
	p := &progress{w: &told}
	r, ok := p.reading(strings.NewReader("0123456789"), 20_000_000).(*readProgress)
	if !ok {
		t.Fatal("nothing is told")
	}
	b := make([]byte, 5)
	if n, err := r.Read(b); n != 5 || err != nil || told.Len() > 0 {
		t.Errorf("%d, %v, %q", n, err, &told)
	}
	r.next, r.read = time.Time{}, 9_999_995
	if n, err := r.Read(b); n != 5 || string(b) != "56789" || err != nil {
		t.Errorf("%d %q, %v", n, b, err)
	}
	if got := told.String(); got != clearLine+"reading results, 50 % of 20 MB" {
		t.Errorf("%q", got)
	}
	r.size = 0
	if got := r.share(); got != "10 MB" {
		t.Errorf("%q", got)
	}
	p.judging(100)
	p.judging(100_000)
	if got := told.String(); !strings.HasSuffix(got, "MB"+clearLine+"judging 100000 visits") {
		t.Errorf("%q", got)
	}
	in := strings.NewReader("")
	if (&progress{}).reading(in, 1) != in {
		t.Error("without a terminal it is told")
	}
}

// The wait's line says on 80 columns how many CPUs are busy.
func TestWaitingFits(t *testing.T) {
	var told bytes.Buffer
	others := 128.0
	(&progress{w: &told}).waitsFor(time.Minute, sample.Contention{CPUs: 128, Others: &others})
	const want = "waiting up to 60 s for free CPUs (--busy: do not wait): 128.0 of 128 CPUs busy"
	if got := told.String(); got != clearLine+want {
		t.Errorf("%q, want %q", got, want)
	}
}

type writes int

func (n *writes) Write(b []byte) (int, error) {
	*n++
	return len(b), nil
}

// A line that clears the one before it is written in one call, because others write to the
// terminal, too.
func TestSayAfter(t *testing.T) {
	var n writes
	if sayAfter(&n, clearLine, "toll: waiting"); n != 1 {
		t.Errorf("%d writes", n)
	}
	var b bytes.Buffer
	if sayAfter(&b, clearLine, "toll: waiting"); b.String() != clearLine+"toll: waiting\n" {
		t.Errorf("%q", &b)
	}
}

type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

func TestSayStopping(t *testing.T) {
	for _, tt := range []struct {
		name  string
		stop  bool
		takes time.Duration
		says  bool
	}{{"slow", true, 3 * silentStop, true}, {"at-once", true, 0, false},
		{"not-stopped", false, 2 * silentStop, false}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var h heard
				done := (&progress{w: &h}).sayStopping(ctx)
				if tt.stop {
					stop()
				}
				time.Sleep(tt.takes)
				done()
				time.Sleep(2 * silentStop)
				if got := strings.Contains(h.String(), "stopping: removing what was built\n"); got != tt.says {
					t.Errorf("it says %q", h.String())
				}
			})
		})
	}
}
