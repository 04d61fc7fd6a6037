package program

import (
	"io"
	"strings"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// maxOutput is how much of each stream's end is kept, in bytes.
const maxOutput = 256 << 10

type output struct {
	ended chan struct{}

	mu sync.Mutex // guards the fields that follow
	b  []byte
	n  int64
}

func collect(r io.ReadCloser) *output {
	o := &output{ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		defer r.Close()
		_, _ = io.Copy(o, r)
	}()
	return o
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n += int64(len(b))
	o.b = append(o.b, b[max(0, len(b)-maxOutput):]...)
	if over := len(o.b) - maxOutput; over > 0 {
		o.b = append(o.b[:0], o.b[over:]...)
	}
	return len(b), nil
}

func (o *output) text() (s string, written int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.b), o.n
}

func lastLines(s string, most int) string {
	if over := len(s) - scanned; over > 0 {
		s = s[over:]
	}
	var lines []string
	for l := range strings.Lines(s) {
		if l = printable.Words(l); l != "" {
			lines = append(lines, l)
		}
	}
	if n := len(lines); n > 0 && len(lines[n-1]) > most { // which begins with what matters
		return printable.Start(lines[n-1], most)
	}
	return printable.End(strings.Join(lines, "; "), most)
}

// scanned is how much of an output's end is searched for its last lines, in bytes.
const scanned = 16 << 10

func keptEnd(s string, most int) string {
	// An escape is not shorter than its character, so the last most bytes of s are enough.
	return printable.End(printable.Text(printable.End(s, most)), most)
}
