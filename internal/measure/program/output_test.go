package program

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

func TestLastLines(t *testing.T) {
	for _, c := range []struct {
		name, in string
		most     int
		want     string
	}{
		{"nothing", "", 100, ""},
		{"blank", "\n \t\n\r\n", 100, ""},
		{"lines", "one\n\n  two\tthree \nfour", 100, "one; two three; four"},
		{"end", "first\nlast word", 9, "…last word"},
		{"mid-rune", "aß\nb", 5, "…ß; b"},
		{"long-line", "first\n-DENIED Redis is protected\n", 13, "-DENIED Redis…"},
		{"colours", "\x1b[31mred\x1b[0m\n", 100, `\x1b[31mred\x1b[0m`},
		{"terminal-controls", "a\u009b31mb\x7fc\u0085d", 100, `a\u009b31mb\x7fc d`},
		{"binary", "\x00\xff\xfe ok \x80\n\x01", 100, `\x00\xff\xfe ok \x80; \x01`},
		{"invalid-utf-8", "caf\xe9 \xed\xa0\x80!", 100, `caf\xe9 \xed\xa0\x80!`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := lastLines(c.in, c.most); got != c.want {
				t.Errorf("lastLines = %q, want %q", got, c.want)
			}
		})
	}
}

func TestKept(t *testing.T) {
	for _, c := range []struct {
		name, in string
		most     int
		want     string
	}{
		{"nothing", "", 10, ""},
		{"whole", "a\n\tb\n", 10, "a\n\tb\n"},
		{"end", "0123456789ab", 10, "…23456789ab"},
		{"end-of-escapes", "\x1b\x1b\x1b", 10, `…1b\x1b\x1b`},
		{"mid-rune", "ßa", 2, "…a"},
		{"binary", "a\x00\x1b\xff\u009bb\r\n", 30, `a\x00\x1b\xff\u009bb` + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := keptEnd(c.in, c.most); got != c.want {
				t.Errorf("Kept = %q, want %q", got, c.want)
			}
		})
	}
}

func TestJunkBecomesShortText(t *testing.T) {
	var every []byte
	for i := range 1 << 16 {
		every = append(every, byte(i), byte(i>>8))
	}
	for _, c := range []struct{ name, in string }{
		{"every-pair-of-bytes", string(every)},
		{"endless-line", strings.Repeat("x", 10<<20)},
		{"endless-lines", strings.Repeat("\n", 10<<20)},
		{"endless-bad-runes", strings.Repeat("\xf0\x9f", 5<<20)},
	} {
		t.Run(c.name, func(t *testing.T) {
			const most = 200
			for _, got := range []string{lastLines(c.in, most), keptEnd(c.in, most)} {
				if len(got) > most+len("…") || !utf8.ValidString(got) ||
					strings.ContainsAny(got, "\x00\x1b\r\u009b") {
					t.Errorf("%d bytes: %q", len(got), got)
				}
			}
		})
	}
}

func TestOutputKeepsTheEnd(t *testing.T) {
	var all []byte
	for i := range 3 * maxOutput {
		all = append(all, byte(i%251))
	}
	for _, c := range []struct {
		name string
		step int
	}{{"at-once", len(all)}, {"in-halves", maxOutput/2 + 1}, {"in-pieces", 4093}} {
		t.Run(c.name, func(t *testing.T) {
			o := collect(io.NopCloser(&slow{all, c.step}))
			<-o.ended
			got, n := o.text()
			if n != int64(len(all)) || !bytes.Equal([]byte(got), all[len(all)-maxOutput:]) {
				t.Errorf("%d bytes written, %d kept", n, len(got))
			}
			if cap(o.b) > 4*maxOutput {
				t.Errorf("room for %d bytes", cap(o.b))
			}
		})
	}
}

type slow struct {
	b    []byte
	step int
}

func (s *slow) Read(b []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), s.step)], s.b)
	s.b = s.b[n:]
	return n, nil
}

// For go test -race.
func TestOutputIsReadWhileWritten(t *testing.T) {
	o := &output{ended: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 1000 {
			_, _ = o.Write([]byte("word\n"))
		}
	})
	wg.Go(func() {
		last := int64(0)
		for range 1000 {
			s, n := o.text()
			if n < last || int64(len(s)) != n {
				t.Errorf("%d bytes, then %d; %d kept", last, n, len(s))
			}
			last = n
		}
	})
	wg.Wait()
}
