package tokens

import (
	"fmt"
	"math"
	"testing"
)

func command(words ...string) string {
	out := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		out += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	return out
}

// TestServedRedis has a server that sends what answers nothing, and commands that nobody answers.
func TestServedRedis(t *testing.T) {
	const reply = "$1\r\nb\r\n"
	for name, tt := range map[string]struct {
		between          func(*conversation)
		requests, unread int
	}{
		"an invalidation": {func(c *conversation) {
			c.send(true, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n")
		}, 4, 0},
		"an empty command": {func(c *conversation) { c.send(false, "*0\r\n") }, 4, 0},
		"replies turned on": {func(c *conversation) {
			c.send(false, command("CLIENT", "REPLY", "ON"))
			c.send(true, "+OK\r\n")
		}, 5, 5},
		"a reply skipped": {func(c *conversation) {
			c.send(false, command("client", "reply", "skip"), command("SET", "a", "b"))
			c.send(false, command("GET", "a"))
			c.send(true, reply)
		}, 5, 5},
		"another setting": {func(c *conversation) {
			c.send(false, command("CLIENT", "REPLYING"))
			c.send(true, "-ERR unknown\r\n")
		}, 5, 0},
	} {
		c := conversing()
		for range 2 {
			c.send(false, command("GET", "a"))
			c.send(true, reply)
			c.at += 1_000_000 * us
		}
		tt.between(c)
		for range 2 {
			c.at += 1_000_000 * us
			c.send(false, command("GET", "a"))
			c.send(true, reply)
		}
		got := c.served()
		if got.Requests != tt.requests || got.Unread != tt.unread || got.Unmatched+got.Unanswered > 0 ||
			math.Abs(got.Whole.P50-10e-6) > 1e-9 || got.Whole.Max > 20.5e-6 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
