package tokens

import (
	"math"
	"strings"
	"testing"
)

// TestServedHTTPEarly has replies to requests whose bodies go on, and a pause and queries behind them.
func TestServedHTTPEarly(t *testing.T) {
	const post = "POST / HTTP/1.1\r\nContent-Length: 4000\r\n\r\n"
	const chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
	const get, ok = "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	const refused = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"
	half := strings.Repeat("x", 2000)
	for name, said := range map[string][]string{
		"refused":            {post, refused, half, "", half},
		"refused amid":       {post + half, refused, half},
		"refused, continued": {post, "HTTP/1.1 100 Continue\r\n\r\n", half, refused, half},
		"both at once": {chunks, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
			"1\r\na\r\n", "1\r\na\r\n", "0\r\n\r\n", "0\r\n\r\n"},
		"then pipelined": {post, refused, half, "", half + get, ok},
	} {
		c := conversing()
		for i, text := range said {
			c.send(i%2 == 1, text)
		}
		for range 4 {
			c.at += 1_000_000 * us
			c.send(false, get)
			c.send(true, ok)
		}
		got := c.served()
		want := 5 + strings.Count(strings.Join(said, ""), get)
		if got.Requests != want || got.Unread+got.Unmatched+got.Unanswered > 0 ||
			math.Abs(got.Whole.P50-10e-6) > 1e-9 || got.Whole.Max > 60e-6 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestServedBehindPROXY has relays that write a header of the PROXY protocol, by itself or in
// pieces, before requests of different protocols.
func TestServedBehindPROXY(t *testing.T) {
	const v1, v2 = "PROXY TCP4 10.0.0.1 10.0.0.2 40000 80\r\n",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x0a\x00\x00\x01\x0a\x00\x00\x02\x9c\x40\x00\x50"
	for name, said := range map[string][2]string{
		"HTTP":  {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
		"Redis": {"*1\r\n$4\r\nPING\r\n", "+PONG\r\n"},
	} {
		for how, lead := range map[string][]string{"version 1": {v1}, "version 2": {v2},
			"in pieces": {v1[:9], v1[9:]}, "with the request": nil} {
			c := conversing()
			for _, part := range lead {
				c.send(false, part)
			}
			if lead == nil {
				c.send(false, v1, said[0])
				c.send(true, said[1])
			}
			c.at += 1_000_000 * us // of no request
			for range 4 {
				c.send(false, said[0])
				c.send(true, said[1])
			}
			got, want := c.served(), 4
			if lead == nil {
				want = 5
			}
			if got.Requests != want || got.Unread+got.Unmatched+got.Unanswered > 0 ||
				math.Abs(got.Whole.Max-10e-6) > 1e-9 {
				t.Errorf("%s, %s: %+v", name, how, got)
			}
		}
	}
}
