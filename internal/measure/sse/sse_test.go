package sse

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

type outcome struct {
	Events  []string // type, ID and data
	Unknown []string
	Pending bool
	Err     error
}

func decode(limit int, pieces ...[]byte) outcome {
	var o outcome
	d := Decoder{Limit: limit, Unknown: func(name, value []byte) error {
		o.Unknown = append(o.Unknown, fmt.Sprintf("%s=%s", name, value))
		return nil
	}}
	for _, p := range pieces {
		o.Err = d.Feed(slices.Clone(p), func(e Event) error {
			o.Events = append(o.Events, fmt.Sprintf("%s|%s|%s", e.Type, e.ID, e.Data))
			return nil
		})
	}
	o.Pending = d.Pending()
	return o
}

func bytewise(b []byte) [][]byte {
	var out [][]byte
	for i := range b {
		out = append(out, b[i:i+1])
	}
	return out
}

var streams = []struct {
	name, text string
	want       outcome
}{
	{"empty", "", outcome{}},
	{"one", "data: a\n\n", outcome{Events: []string{"message||a"}}},
	{"no-space", "data:a\n\n", outcome{Events: []string{"message||a"}}},
	{"two-spaces", "data:  a \n\n", outcome{Events: []string{"message|| a "}}},
	{"crlf", "data: a\r\n\r\ndata: b\r\n\r\n",
		outcome{Events: []string{"message||a", "message||b"}}},
	{"cr", "data: a\r\rdata: b\r\r", outcome{Events: []string{"message||a", "message||b"}}},
	{"line-ends-mixed", "data: a\r\ndata: b\rdata: c\n\r\n",
		outcome{Events: []string{"message||a\nb\nc"}}},
	{"cr-then-crlf", "data: a\r\r\ndata: b\n\n",
		outcome{Events: []string{"message||a", "message||b"}}},
	{"several-lines", "data: a\ndata:\ndata: b\n\n", outcome{Events: []string{"message||a\n\nb"}}},
	{"empty-data", "data:\n\ndata\n\n", outcome{Events: []string{"message||", "message||"}}},
	{"two-empty-lines-of-data", "data\ndata\n\n", outcome{Events: []string{"message||\n"}}},
	{"blank-lines", "\n\n\ndata: a\n\n\n\n", outcome{Events: []string{"message||a"}}},
	{"comments", ": keep-alive\n\n:\n\n:data: no\ndata: a\n: b\n\n",
		outcome{Events: []string{"message||a"}}},
	{"type", "event: add\ndata: 1\n\ndata: 2\n\n",
		outcome{Events: []string{"add||1", "message||2"}}},
	{"type-without-data", "event: add\n\ndata: 2\n\n", outcome{Events: []string{"message||2"}}},
	{"id-stays", "id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
		outcome{Events: []string{"message|7|a", "message|7|b", "message||c"}}},
	{"id-without-data", "id: 7\n\ndata: b\n\n", outcome{Events: []string{"message|7|b"}}},
	{"id-with-null", "id: 7\nid: 8\x00\ndata: b\n\n", outcome{Events: []string{"message|7|b"}}},
	{"retry", "retry: 1500\nretry\n\n", outcome{}},
	{"bom", "\xef\xbb\xbfdata: a\n\n", outcome{Events: []string{"message||a"}}},
	{"bom-twice", "\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n",
		outcome{Unknown: []string{"\xef\xbb\xbfdata=a"}}},
	{"bom-later", "data: a\n\n\xef\xbb\xbfdata: b\n\n",
		outcome{Events: []string{"message||a"}, Unknown: []string{"\xef\xbb\xbfdata=b"}}},
	{"unknown-fields", "error: {\"a\":1}\nfoo\ndata: a\nDATA: b\n data: c\n\n",
		outcome{Events: []string{"message||a"},
			Unknown: []string{`error={"a":1}`, "foo=", "DATA=b", " data=c"}}},
	{"utf-8", "data: é世🙂\n\n", outcome{Events: []string{"message||é世🙂"}}},
	{"not-utf-8", "data: \xff\xc3\n\n", outcome{Events: []string{"message||\xff\xc3"}}},
	{"colons", "data: a: b:c\n\n", outcome{Events: []string{"message||a: b:c"}}},
	{"pending-line", "data: a\n\ndata: b", outcome{Events: []string{"message||a"}, Pending: true}},
	{"pending-event", "data: a\n\ndata: b\n",
		outcome{Events: []string{"message||a"}, Pending: true}},
	{"pending-type", "event: a\n", outcome{Pending: true}},
	{"nothing-pending-after-comment", ": a\n", outcome{}},
	{"longest-line", "data: " + strings.Repeat("x", 58) + "\n\n",
		outcome{Events: []string{"message||" + strings.Repeat("x", 58)}}},
	{"line-too-long", "data: " + strings.Repeat("x", 59) + "\n\n", outcome{Err: ErrLongLine}},
	{"line-without-end", strings.Repeat("x", 1000), outcome{Err: ErrLongLine}},
	{"comment-without-end", ":" + strings.Repeat("x", 1000), outcome{Err: ErrLongLine}},
	{"event-too-long", strings.Repeat("data: 0123456789\n", 6) + "\n", outcome{Err: ErrTooLong}},
	{"event-without-end", strings.Repeat("data\n", 65), outcome{Err: ErrTooLong}},
}

const testLimit = 64

func TestStreams(t *testing.T) {
	for _, tt := range streams {
		t.Run(tt.name, func(t *testing.T) {
			got := decode(testLimit, []byte(tt.text))
			if tt.want.Err != nil {
				got.Pending = false
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestEverySplit(t *testing.T) {
	for _, tt := range streams {
		t.Run(tt.name, func(t *testing.T) {
			b := []byte(tt.text)
			want := decode(testLimit, b).withoutRest()
			for i := range b {
				if got := decode(testLimit, b[:i], b[i:]).withoutRest(); !reflect.DeepEqual(got,
					want) {
					t.Fatalf("cut at %d: %+v, want %+v", i, got, want)
				}
			}
			if got := decode(testLimit, bytewise(b)...).withoutRest(); !reflect.DeepEqual(got,
				want) {
				t.Fatalf("byte by byte: %+v, want %+v", got, want)
			}
		})
	}
}

// withoutRest ignores what is pending after an error, which depends on the cut.
func (o outcome) withoutRest() outcome {
	o.Pending = o.Pending && o.Err == nil
	return o
}

func TestEventComesWithItsLastByte(t *testing.T) {
	for _, text := range []string{"data: a\n\n", "data: a\r\r", "data: a\r\n\r"} {
		var d Decoder
		n := 0
		for i, p := range bytewise([]byte(text)) {
			if err := d.Feed(p, func(Event) error { n++; return nil }); err != nil {
				t.Fatal(err)
			}
			if last := i == len(text)-1; (n == 1) != last {
				t.Errorf("%q: %d events after %d bytes", text, n, i+1)
			}
		}
	}
}

func TestErrorsStay(t *testing.T) {
	stop := errors.New("stop")
	var d Decoder
	n := 0
	emit := func(Event) error { n++; return stop }
	for range 2 {
		if err := d.Feed([]byte("data: a\n\ndata: b\n\n"), emit); !errors.Is(err, stop) {
			t.Fatalf("%v", err)
		}
	}
	if n != 1 {
		t.Errorf("%d events after the function refused one", n)
	}
	d = Decoder{Unknown: func(name, value []byte) error { return stop }}
	if err := d.Feed([]byte("foo: a\n"), emit); !errors.Is(err, stop) {
		t.Errorf("unknown field: %v", err)
	}
}

func TestDefaultLimit(t *testing.T) {
	b := append(bytes.Repeat([]byte{'x'}, DefaultLimit), '\n')
	var d Decoder
	if err := d.Feed(b, nil); err != nil {
		t.Errorf("a line of the limit: %v", err)
	}
	if err := d.Feed(append([]byte{'x'}, b...), nil); !errors.Is(err, ErrLongLine) {
		t.Errorf("a longer one: %v", err)
	}
}

// FuzzDecode cuts the stream into pieces of the sizes in cuts, repeatedly.
func FuzzDecode(f *testing.F) {
	for _, tt := range streams {
		f.Add([]byte(tt.text), []byte{1, 2, 3})
	}
	f.Fuzz(func(t *testing.T, b, cuts []byte) {
		want := decode(testLimit, b).withoutRest()
		var pieces [][]byte
		for i, rest := 0, b; len(rest) > 0 && len(cuts) > 0; i++ {
			n := min(len(rest), 1+int(cuts[i%len(cuts)]))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		if len(pieces) == 0 {
			pieces = bytewise(b)
		}
		if got := decode(testLimit, pieces...).withoutRest(); !reflect.DeepEqual(got, want) {
			t.Fatalf("cut: %+v\nwhole: %+v", got, want)
		}
		d := Decoder{Limit: testLimit}
		for _, p := range pieces {
			d.Feed(p, func(Event) error { return nil })
			if n := len(d.line) + len(d.data) + len(d.id) + len(d.kind); n > 4*testLimit {
				t.Fatalf("%d bytes are kept", n)
			}
			if n := cap(d.line) + cap(d.data); n > 4*testLimit {
				t.Fatalf("buffers of %d bytes", n)
			}
		}
	})
}
