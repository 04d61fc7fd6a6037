package tokens

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
)

const (
	headOf  = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	chunks  = headOf + "Transfer-Encoding: chunked\r\n\r\n"
	ended   = "0\r\n\r\n"
	theMark = 1_234_567_890
)

func says(text string) string {
	return fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", text)
}

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func mine(n uint32) bool { return n == theMark }

// lengths returns the text lengths and offsets of the events of each reply.
func lengths(all []*reply) (out [][2]int64, done []bool) {
	for _, r := range all {
		for _, e := range r.events {
			out = append(out, [2]int64{int64(e.Len), e.Offset})
		}
		done = append(done, r.ended)
	}
	return out, done
}

func decoded(pieces ...string) (all []*reply, err error) {
	m := replies(func() bool { return false }, openai.NewReader(false), func(r *reply) { all = append(all, r) })
	for _, p := range pieces {
		m.feed([]byte(p))
	}
	return all, m.err
}

func TestReplies(t *testing.T) {
	a, b := says("one "), says("two")
	const ofLines = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n" +
		"Transfer-Encoding: chunked\r\n\r\n"
	line := func(n int) string { // of Ollama
		return chunk(fmt.Sprintf("{\"model\":\"m\",\"message\":{\"content\":\"%d \"},\"done\":false}\n", n))
	}
	size := func(s ...string) int64 { return int64(len(strings.Join(s, ""))) }
	for name, tt := range map[string]struct {
		bytes  string
		events [][2]int64
		ended  []bool
	}{
		"chunks": {chunks + chunk(a) + chunk(b) + ended,
			[][2]int64{{4, size(chunks, chunk(a)) - 2}, {7, size(chunks, chunk(a), chunk(b)) - 2}}, []bool{true}},
		"two events in a chunk": {chunks + chunk(a+b) + ended,
			[][2]int64{{4, size(chunks, "xx\r\n", a)}, {7, size(chunks, "xx\r\n", a, b)}}, []bool{true}},
		"an event in two chunks": {chunks + chunk(a[:9]) + chunk(a[9:]) + ended,
			[][2]int64{{4, size(chunks, chunk(a[:9]), chunk(a[9:])) - 2}}, []bool{true}},
		"a length": {headOf + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(a)) + a,
			[][2]int64{{4, size(headOf, "Content-Length: 52\r\n\r\n", a)}}, []bool{true}},
		"no blank line at the end": {chunks + chunk(a) + chunk(strings.TrimSpace(b)) + ended,
			[][2]int64{{4, size(chunks, chunk(a)) - 2}, {7, size(chunks, chunk(a),
				chunk(strings.TrimSpace(b)), ended)}}, []bool{true}},
		"lines of JSON": {ofLines + line(1) + line(2) + ended,
			[][2]int64{{2, size(ofLines, line(1)) - 2}, {4, size(ofLines, line(1), line(2)) - 2}}, []bool{true}},
		"one line of JSON": {strings.Replace(ofLines, "x-ndjson", "json", 1) + line(1) + ended, nil,
			[]bool{true}},
		"until the end": {headOf + "\r\n" + a, [][2]int64{{4, size(headOf, "\r\n", a)}}, []bool{false}},
		"two responses": {chunks + chunk(a) + ended + chunks + chunk(b) + ended,
			[][2]int64{{4, size(chunks, chunk(a)) - 2}, {3, size(chunks, chunk(a), ended, chunks, chunk(b)) - 2}}, []bool{true, true}},
		"hints before": {"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + chunks + ended, nil, []bool{true}},
		"trailers":     {chunks + chunk(": ping\n\n") + "0\r\nX-T: 1\r\n\r\n" + chunks, nil, []bool{true, false}},
		"extensions":   {chunks + "3;name=\"x\"\r\nabc\r\n" + ended, nil, []bool{true}},
		"bare line feeds": {strings.ReplaceAll(chunks, "\r\n", "\n") + chunk(a) + ended,
			[][2]int64{{4, size(strings.ReplaceAll(chunks, "\r\n", "\n"), chunk(a)) - 2}}, []bool{true}},
		"a length, twice": {headOf + fmt.Sprintf("Content-Length: %d\r\nContent-Length: %[1]d\r\n\r\n",
			len(a)) + a + chunks, [][2]int64{{4, size(headOf, "Content-Length: 52\r\n", "Content-Length: 52\r\n\r\n",
			a)}}, []bool{true, false}},
		"no content": {"HTTP/1.1 204 No Content\r\n\r\n" + chunks + ended, nil, []bool{true, true}},
		"not gzip": {headOf + "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" +
			chunk(a) + ended, nil, []bool{true}},
		"no coding": {headOf + "Content-Encoding: Identity, none\r\n\r\n" + a,
			[][2]int64{{4, size(headOf, "Content-Encoding: Identity, none\r\n\r\n", a)}}, []bool{false}},
	} {
		all, err := decoded(tt.bytes)
		events, done := lengths(all)
		if err != nil || !slices.Equal(events, tt.events) || !slices.Equal(done, tt.ended) {
			t.Errorf("%s: %v %v, want %v; %v", name, events, done, tt.events, err)
		}
		all, err = decoded(strings.Split(tt.bytes, "")...)
		again, done := lengths(all)
		if err != nil || !slices.Equal(again, events) || !slices.Equal(done, tt.ended) {
			t.Errorf("%s, byte by byte: %v %v, %v", name, again, done, err)
		}
	}
	for _, foreign := range []string{headOf + "Content-Length: 5, 6\r\n\r\n", "\x16\x03\x01\x00\r\n\r\n", "PRI * HTTP/2.0\r\n\r\n",
		chunks + "zz\r\n", chunks + chunk("a")[:4] + "more\r\n", strings.Repeat("x", 2*maxHead)} {
		if _, err := decoded(foreign, "HTTP/1.1 200 OK\r\n\r\n"); err == nil {
			t.Errorf("%.30q is read as HTTP", foreign)
		}
	}
}

// zipped returns a stream that a compressor flushes after each text, or, without flushing, at the end.
func zipped(t *testing.T, flush bool, texts ...string) (pieces []string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	take := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
		pieces = append(pieces, b.String())
		b.Reset()
	}
	for _, text := range texts {
		_, err := io.WriteString(z, text)
		if flush && err == nil {
			err = z.Flush()
		}
		take(err)
	}
	take(z.Close())
	return pieces
}

// Of a stream in gzip each event comes with the bytes that the compressor flushed behind it.
func TestZippedReplies(t *testing.T) {
	var texts []string
	for i := range 2000 { // more than a compressor remembers
		texts = append(texts, says(fmt.Sprintf("word %d ", i*i)))
	}
	const head = headOf + "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, flush := range []bool{true, false} {
		pieces := zipped(t, flush, texts...)
		if !flush { // fewer, or they are too long to be kept until the end
			pieces = zipped(t, flush, texts[:100]...)
		}
		packets, ends := []string{head}, []int64{int64(len(head))}
		for _, p := range pieces {
			if p != "" {
				packets = append(packets, chunk(p))
				ends = append(ends, ends[len(ends)-1]+int64(len(chunk(p))))
			}
		}
		all, err := decoded(append(packets, ended)...)
		if err != nil || len(all) != 1 || all[0].coding != "" || !all[0].ended {
			t.Fatalf("flushed is %t: %+v, %v", flush, all, err)
		}
		got := all[0].events
		if want := len(texts); flush && len(got) != want || !flush && len(got) != 100 {
			t.Fatalf("flushed is %t: %d events of %d", flush, len(got), want)
		}
		for i, e := range got {
			if flush && (e.Offset <= ends[i] || e.Offset > ends[i+1]) {
				t.Fatalf("event %d is at %d, its packet from %d to %d", i, e.Offset, ends[i],
					ends[i+1])
			}
		}
		again, err := decoded(strings.Split(strings.Join(packets, "")+ended, "")...)
		if err != nil || len(again) != 1 || len(again[0].events) != len(got) ||
			again[0].events[len(got)-1].Text != got[len(got)-1].Text {
			t.Errorf("flushed is %t, byte by byte: %+v, %v", flush, again, err)
		}
	}
	for name, body := range map[string]string{"br": chunk(texts[0]),
		"gzip": chunk("\x1f\x8b\x08\x00"+strings.Repeat("x", 100)) + chunk(texts[0])} {
		all, err := decoded(headOf + "Content-Encoding: " + name + "\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n" + body + ended)
		if err != nil || len(all) != 1 || all[0].coding != name || len(all[0].events) > 0 || !all[0].ended {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
}

// A stream of members, such as one for each event, is one text. Other bytes behind it are ignored.
func TestGzipMembers(t *testing.T) {
	texts := []string{says("a"), "", says("b"), says("c")}
	packets := []string{headOf + "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"}
	for _, text := range texts {
		packets = append(packets, chunk(strings.Join(zipped(t, false, text), "")))
	}
	all := strings.Join(packets, "")
	for name, pieces := range map[string][]string{"by members": packets,
		"at once": {all}, "byte by byte": strings.Split(all, "")} {
		for _, behind := range []string{"", "\x00\x00", "other"} {
			end := ended
			if behind != "" {
				end = chunk(behind) + ended
			}
			got, err := decoded(append(slices.Clone(pieces), end)...)
			if err != nil || len(got) != 1 || got[0].coding != "" || !got[0].ended ||
				len(got[0].events) != 3 {
				t.Errorf("%s, %q behind: %+v, %v", name, behind, got, err)
			}
		}
	}
}

// The header of a member may have optional fields (RFC 1952, 2.3).
func TestGzipHeader(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Name, z.Comment, z.Extra = "events", "of a server", []byte("more")
	if _, err := io.WriteString(z, says("a")); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	head := headOf + "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, body := range map[string]string{"at once": chunk(b.String()),
		"byte by byte": strings.Join(func() (out []string) {
			for _, c := range b.Bytes() {
				out = append(out, chunk(string([]byte{c})))
			}
			return out
		}(), "")} {
		got, err := decoded(head + body + ended)
		if err != nil || len(got) != 1 || got[0].coding != "" || len(got[0].events) != 1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// What was not flushed is decoded again with each piece: only so much of it.
func TestUnflushedTextIsBounded(t *testing.T) {
	packed := strings.Join(zipped(t, false, strings.Repeat(" ", 1<<20)), "")
	g, decoded := &gunzip{}, 0
	var err error
	for i := 0; i < len(packed) && err == nil; i++ {
		_, err = g.feed([]byte{packed[i]})
		decoded += g.given
	}
	if err == nil || decoded > 2*mostWork {
		t.Errorf("%d bytes were decoded, error %v", decoded, err)
	}
}

// Of members that come at once, only so much text is taken.
func TestTextOfMembersIsBounded(t *testing.T) {
	member := strings.Join(zipped(t, false, strings.Repeat(" ", 1<<20)), "")
	for n, fits := range map[int]bool{mostFlushed >> 20: true, 64: false} {
		text, err := (&gunzip{}).feed([]byte(strings.Repeat(member, n)))
		if fits != (err == nil) || fits != (len(text) == n<<20) {
			t.Errorf("%d bytes of %d members, %v", len(text), n, err)
		}
	}
}

func TestRequests(t *testing.T) {
	post := func(head, body string) string {
		return fmt.Sprintf("POST /v1 HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", head,
			len(body), body)
	}
	const id, seed = "X-Request-Id: toll-1234567890\r\n", `{"seed":1234567890,"x":1}`
	for name, tt := range map[string]struct {
		bytes string
		want  []request
	}{
		"by its ID": {post(id, "{}"), []request{{mark: theMark, byID: true, chat: true, body: true}}},
		"by its seed": {post("X-Request-Id: other\r\n", seed),
			[]request{{mark: theMark, chat: true, body: true}}},
		"by both": {post(id, seed),
			[]request{{mark: theMark, byID: true, chat: true, body: true}}},
		"neither": {post("", `{"seed":12345678901,"n":"11234567890"}`),
			[]request{{chat: true, body: true}}},
		"at the end": {post("", `1234567890`), []request{{mark: theMark, chat: true, body: true}}},
		"several": {"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + post("", "{}") + post(id, ""),
			[]request{{}, {chat: true, body: true}, {mark: theMark, byID: true, chat: true}}},
		"chunks": {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" +
			chunk(seed[:13]) + chunk(seed[13:]) + ended,
			[]request{{mark: theMark, chat: true, body: true}}},
	} {
		var relayed []string // over the PROXY protocol
		for _, head := range []string{"", "PROXY TCP4 10.0.0.1 10.0.0.2 40000 80\r\n", "PROXY UNKNOWN\r\n",
			"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x0a\x00\x00\x01\x0a\x00\x00\x02\x9c\x40\x00\x50",
			"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"} {
			relayed = append(relayed, head+tt.bytes)
		}
		for _, pieces := range inPieces(relayed) {
			var got []*request
			m := requests(mine, func(r *request) { got = append(got, r) })
			for _, p := range pieces {
				m.feed([]byte(p))
			}
			if m.err != nil || len(got) != len(tt.want) {
				t.Fatalf("%s: %d requests, %v", name, len(got), m.err)
			}
			for i, r := range got {
				end := r.end
				if r.end = 0; *r != tt.want[i] || end == 0 {
					t.Errorf("%s: %+v, want %+v", name, *r, tt.want[i])
				}
				if all := len(strings.Join(pieces, "")); i == len(got)-1 && end != int64(all) {
					t.Errorf("%s: ends at %d of %d", name, end, all)
				}
			}
		}
	}
}

// inPieces returns each text in one piece, and in pieces of a byte.
func inPieces(texts []string) (out [][]string) {
	for _, text := range texts {
		out = append(out, []string{text}, strings.Split(text, ""))
	}
	return out
}

func TestMarked(t *testing.T) {
	for text, want := range map[string]bool{"x1234567890": true, "1234567890 ": true,
		"01234567890": false, "123456789": false, "9999999999": false, "": false} {
		if got := Marked([]byte(text), mine); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// However a connection's bytes are divided among packets, the same is read.
func FuzzReplies(f *testing.F) {
	f.Add([]byte(chunks+chunk(says("one "))+chunk(says("two"))+ended), uint8(3))
	f.Add([]byte(headOf+"\r\n"+says("one")), uint8(1))
	f.Add([]byte("HTTP/1.1 204 x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"), uint8(7))
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		whole, err := decoded(string(b))
		var pieces []string
		for part := range slices.Chunk(b, max(1, int(step))) {
			pieces = append(pieces, string(part))
		}
		parts, err2 := decoded(pieces...)
		a, doneA := lengths(whole)
		c, doneC := lengths(parts)
		if (err == nil) != (err2 == nil) || err == nil && (!slices.Equal(a, c) ||
			!slices.Equal(doneA, doneC)) {
			t.Errorf("%v %v and %v %v: %v, %v", a, doneA, c, doneC, err, err2)
		}
		requests(mine, func(*request) {}).feed(b)
	})
}
