package program

import (
	"io"
	"strings"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// maxOutput is how much of each stream's end is kept, in bytes.
const maxOutput = 256 << 10

// output is the end of what a program writes.
type output struct {
	ended chan struct{} // closed at the stream's end

	mu sync.Mutex // guards following
	b  []byte
	n  int64 // bytes written in all
}

// collect reads r to its end.
func collect(r io.ReadCloser) *output {
	o := &output{ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		defer r.Close()
		_, _ = io.Copy(o, r)
	}()
	return o
}

// Write keeps the end of b.
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

// text is what is kept, and how much was written in all.
func (o *output) text() (s string, written int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.b), o.n
}

// lastLines is the end of a program's output as printable text of one line of at
// most so many bytes, in which the lines are joined by "; ".
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
	return printable.End(strings.Join(lines, "; "), most)
}

// scanned is how much of an output's end is looked at for its last lines.
const scanned = 16 << 10

// keptEnd is the end of an output as a record keeps it: of at most so many bytes,
// with its lines, as text.
func keptEnd(s string, most int) string {
	// An escape is no shorter than what it stands for.
	return printable.End(printable.Text(printable.End(s, most)), most)
}
