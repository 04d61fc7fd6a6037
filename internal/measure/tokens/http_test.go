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
