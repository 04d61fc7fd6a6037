package load

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// response returns a whole response of tokens due at 1, 2, 3 …, each sent 10 later.
func response(tokens int) []byte {
	out := append([]byte{}, responseHead...)
	frames := tokenFrames()
	for i := range tokens {
		f := frames[i%len(frames)]
		stamp(f.b[f.due:], int64(i+1))
		stamp(f.b[f.sent:], int64(i+11))
		out = append(out, f.b...)
	}
	out = append(out, finishFrame...)
	return append(out, doneFrame...)
}

type seen struct {
	tokens, finishes, ends int
	sum                    int64
	err                    string
}

func feed(r *streamReader, s *seen, piece []byte) {
	for len(piece) > 0 && s.err == "" {
		used, ev, err := r.next(piece)
		if err != nil {
			s.err = err.Error()
			return
		}
		piece = piece[used:]
		switch ev {
		case aToken:
			s.tokens++
			s.sum = 31*s.sum + r.due + 7*r.sent
		case aFinish:
			s.finishes++
		case endOfBody:
			s.ends++
		}
	}
}

func TestReaderAtEverySplit(t *testing.T) {
	all := append(response(3), response(2)...)
	var whole seen
	feed(new(streamReader), &whole, all)
	if whole.tokens != 5 || whole.finishes != 2 || whole.ends != 2 || whole.err != "" {
		t.Fatalf("%+v", whole)
	}
	for i := range all {
		var got seen
		r := new(streamReader)
		feed(r, &got, all[:i])
		feed(r, &got, all[i:])
		if got != whole {
			t.Fatalf("cut at %d: %+v, want %+v", i, got, whole)
		}
	}
	var bytewise seen
	r := new(streamReader)
	for i := range all {
		feed(r, &bytewise, all[i:i+1])
	}
	if bytewise != whole {
		t.Errorf("byte by byte: %+v", bytewise)
	}
}

func TestReaderOfOtherChunks(t *testing.T) {
	_, body, _ := bytes.Cut(response(4), []byte("\r\n\r\n"))
	var events []byte
	for len(body) > 0 {
		i := bytes.Index(body, []byte("\r\n"))
		n := 0
		for _, c := range body[:i] {
			n = n<<4 | strings.IndexByte("0123456789abcdef", c)
		}
		events = append(events, body[i+2:i+2+n]...)
		body = body[i+2+n+2:]
	}
	for _, size := range []int{1, 7, 100, 1000, len(events)} {
		msg := append([]byte{}, responseHead...)
		for b := events; len(b) > 0; {
			n := min(size, len(b))
			msg = append(msg, httpChunk(string(b[:n]))...)
			b = b[n:]
		}
		msg = append(msg, "0\r\n\r\n"...)
		var got seen
		feed(new(streamReader), &got, msg)
		if got.tokens != 4 || got.ends != 1 || got.err != "" {
			t.Errorf("chunks of %d: %+v", size, got)
		}
	}
}

func TestReaderIsStrict(t *testing.T) {
	good := string(response(1))
	for _, tt := range []struct{ name, old, new, want string }{
		{"status", "200 OK", "500 Oh", `the server answered "HTTP/1.1 500 Oh"`},
		{"no-cr", "OK\r\n", "OK\n", `a line of HTTP ends without CR: "HTTP/1.1 200 OK"`},
		{"content-length", "Transfer-Encoding: chunked", "Content-Length: 5",
			"the response is not a chunked stream of events"},
		{"type", "text/event-stream", "text/plain",
			"the response is not a chunked stream of events"},
		{"size", "\r\n\r\n1", "\r\n\r\nx", `chunk size "x17"`},
		{"long-chunk", "\r\n0\r\n", "\r\nzz\r\n", `chunk size "zz"`},
		{"trailer", "0\r\n\r\n", "0\r\nA: b\r\n\r\n", `the server sent a trailer: "A: b"`},
		{"due", dueKey, `"dew_ns":"`, "a chunk without its due time: " +
			`"{\"id\":\"chatcmpl-b2f0a7c1d49e4c5a8e6f3d21\",\"object\":\"chat.completion.chunk\",\"crea"`},
		{"sent", sentKey, `","cent_ns":"`, "a chunk's times cannot be read: " +
			`"0000000000000000001\",\"cent_ns\":\"0000000000000000011\"}}"`},
		{"digits", dueKey + "0", dueKey + "x", "a chunk's times cannot be read: " +
			`"x000000000000000001\",\"sent_ns\":\"0000000000000000011\"}}"`},
		{"field", "data: {", "dada: {", `a line that is not an event's data: "dada: ` +
			`{\"id\":\"chatcmpl-b2f0a7c1d49e4c5a8e6f3d21\",\"object\":\"chat.completion.chunk\""`},
		{"early-end", string(httpChunk("data: " + doneData + "\n\n")), "",
			"the response ended before its stream did"},
		{"endless-line", "no-cache", strings.Repeat("x", maxLine), "a line is too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(good, tt.old, tt.new, 1)
			if text == good {
				t.Fatal("nothing was replaced")
			}
			var got seen
			feed(new(streamReader), &got, []byte(text))
			if got.err != tt.want {
				t.Errorf("%q, want %q", got.err, tt.want)
			}
		})
	}
}

func TestRequestAtEverySplit(t *testing.T) {
	all := tokenRequest(123)
	for i := range all {
		var a requestReader
		used, whole, err := a.next(all[:i])
		if used != i || whole || err != nil {
			t.Fatalf("%d bytes: used %d, %v, %v", i, used, whole, err)
		}
		used, whole, err = a.next(all[i:])
		if used != len(all)-i || !whole || err != nil || a.tokens != 123 {
			t.Fatalf("cut at %d: used %d, %v, %d tokens, %v", i, used, whole, a.tokens, err)
		}
	}
	for _, tt := range []struct{ old, new string }{
		{"POST", "GET"}, {"HTTP/1.1\r\n", "HTTP/1.1\n"}, {"Content-Length: ", "Content-Length: 9"},
		{"Content-Length: ", "Content-Length: -"},
		{"Content-Length", "Content-Links"}, {"max_tokens", "min_tokens"},
		{`"max_tokens":123`, `"max_tokens":"1"`}, {`"max_tokens":123`, `"max_tokens":000`},
	} {
		var a requestReader
		_, whole, err := a.next(bytes.Replace(all, []byte(tt.old), []byte(tt.new), 1))
		if err == nil {
			t.Errorf("%q for %q was taken (whole: %v)", tt.new, tt.old, whole)
		}
	}
}

func TestFramesAreJSON(t *testing.T) {
	for _, f := range tokenFrames() {
		stamp(f.b[f.due:], 1<<62)
		stamp(f.b[f.sent:], 5)
		data := f.b[bytes.IndexByte(f.b, '{') : bytes.LastIndexByte(f.b, '}')+1]
		if !json.Valid(data) || !bytes.Contains(data,
			[]byte(dueKey+"4611686018427387904"+sentKey+"0000000000000000005\"")) {
			t.Errorf("%s", data)
		}
	}
}

// FuzzReader checks that any input is read alike in one piece and in many, and that every byte is
// read.
func FuzzReader(f *testing.F) {
	f.Add(response(2), uint8(3))
	f.Add(append(response(1), response(0)...), uint8(1))
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		var whole, pieces seen
		feed(new(streamReader), &whole, b)
		r := new(streamReader)
		for rest := b; len(rest) > 0 && pieces.err == ""; {
			n := min(int(step)+1, len(rest))
			feed(r, &pieces, rest[:n])
			rest = rest[n:]
		}
		// The text of an error may quote less of what was cut.
		if (whole.err == "") != (pieces.err == "") || whole.tokens != pieces.tokens ||
			whole.sum != pieces.sum || whole.ends != pieces.ends {
			t.Errorf("whole %+v, in pieces of %d %+v", whole, int(step)+1, pieces)
		}
	})
}

// FuzzRequest checks the same for requests.
func FuzzRequest(f *testing.F) {
	f.Add(tokenRequest(200), uint8(3))
	f.Add([]byte("POST / HTTP/1.1\r\n"), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		var one, many requestReader
		used, whole, err := one.next(b)
		if whole && (one.tokens < 1 || one.tokens > workload.MaxTokens) && err == nil {
			t.Errorf("%d tokens", one.tokens)
		}
		taken, got := 0, false
		var manyErr error
		for taken < len(b) && !got && manyErr == nil {
			var n int
			n, got, manyErr = many.next(b[taken:min(len(b), taken+int(step)+1)])
			taken += n
		}
		if got != whole || (err == nil) != (manyErr == nil) || err == nil && taken != used ||
			one.tokens != many.tokens {
			t.Errorf("whole %v %d %v, in pieces %v %d %v", whole, used, err, got, taken, manyErr)
		}
	})
}
