package tokens

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// message is a message of PostgreSQL's protocol.
func message(kind byte, body string) string {
	n := len(body) + 4
	return string([]byte{kind, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + body
}

// TestFramers finds the messages of each protocol, whatever packets they come in.
func TestFramers(t *testing.T) {
	const get = "*2\r\n$3\r\nGET\r\n$1\r\na\r\n"
	start := "\x00\x00\x00\x09\x00\x03\x00\x00\x00"
	post := "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"
	for name, tt := range map[string]struct {
		asks, answers []string // messages
		failed        bool
	}{
		"RESP": {asks: []string{get, "*1\r\n$4\r\nPING\r\n", get, get, get}, answers: []string{
			"$3\r\na\nb\r\n", "+PONG\r\n", "*2\r\n*1\r\n:1\r\n$-1\r\n", "%1\r\n+a\r\n*0\r\n", "*-1\r\n"}},
		"RESP pushes": {asks: []string{get}, answers: []string{">1\r\n+x\r\n_\r\n"}},
		"no RESP":     {asks: []string{get, "PING\r\n"}, failed: true},
		"HTTP": {asks: []string{post, "GET / HTTP/1.1\r\n\r\n"}, answers: []string{
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
			"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
				"1\r\na\r\n0\r\n\r\n"}},
		"HTTP HEAD": {asks: []string{"HEAD / HTTP/1.1\r\n\r\n"}, failed: true},
		"PostgreSQL": {asks: []string{start, message('Q', "select 1\x00"),
			message('P', "x") + message('E', "") + message('S', "")},
			answers: []string{message('R', "ok") + message('Z', "I"),
				message('T', "x") + message('D', "1") + message('C', "SELECT 1") + message('Z', "I"),
				message('1', "") + message('Z', "I")}},
		"PostgreSQL, no TLS": {asks: []string{"\x00\x00\x00\x08\x04\xd2\x16\x2f" + start},
			answers: []string{"N" + message('R', "ok") + message('Z', "I")}},
	} {
		for size := range 7 {
			asks, answers := framersOf([]byte(strings.Join(tt.asks, "")))
			for i, list := range [][]string{tt.asks, tt.answers} {
				f := []framer{asks, answers}[i]
				var want []int64
				end := int64(0)
				for _, m := range list {
					end += int64(len(m))
					want = append(want, end)
				}
				for part := range slices.Chunk([]byte(strings.Join(list, "")), size+1) {
					feed(f, part, 0)
				}
				var got []int64
				for _, x := range f.found().frames {
					got = append(got, x.end)
				}
				if f.found().failed != (tt.failed && i == 0) || !tt.failed && !slices.Equal(got, want) {
					t.Errorf("%s in parts of %d: %d, want %d: %+v", name, size+1, got, want, f.found())
				}
			}
		}
	}
	if f, _ := framersOf([]byte("\x16\x03\x01")); f != nil {
		t.Error("reads TLS")
	}
}

// TestFramersSkip has values of which only the beginnings were captured.
func TestFramersSkip(t *testing.T) {
	for first, after := range map[string]string{"$5000\r\nab": "\r\n+OK\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\nab": "HTTP/1.1 204 No\r\n\r\n",
		message('D', strings.Repeat("x", 5000))[:7]:         message('Z', "I")} {
		for missing, ok := range map[int64]bool{4998: true, 9000: false} {
			for _, asks := range []string{"*1\r\n", "GET / HTTP/1.1\r\n\r\n", message('Q', "x")} {
				_, f := framersOf([]byte(asks))
				if fmt.Sprintf("%T", f) != map[byte]string{'$': "*tokens.resp", 'H': "*tokens.http",
					'D': "*tokens.postgres"}[first[0]] {
					continue
				}
				feed(f, []byte(first), missing)
				feed(f, []byte(after), 0)
				n := len(f.found().frames)
				if f.found().failed == ok || ok && n == 0 {
					t.Errorf("%q, %d missing: %+v", first, missing, f.found())
				}
			}
		}
	}
}

// FuzzFramers feeds any bytes.
func FuzzFramers(f *testing.F) {
	f.Add([]byte("*1\r\n$4\r\nPING\r\n"), []byte("*99\r\n%1\r\n"), int64(3))
	f.Add([]byte(message('Q', "select 1")), []byte(message('Z', "I")), int64(0))
	ask, answer, end := http2Of(1)
	f.Add([]byte(http2Preface+ask), []byte(answer+end), int64(0))
	f.Fuzz(func(t *testing.T, asks, answers []byte, missing int64) {
		var k talk
		k.request(asks, missing)
		k.reply(answers, missing)
		k.request(asks, 0)
		k.reply(answers, 0)
		if k.reads() {
			for _, x := range k.asks.found().frames {
				if x.end <= 0 {
					t.Errorf("a request ends at %d", x.end)
				}
			}
		}
	})
}
