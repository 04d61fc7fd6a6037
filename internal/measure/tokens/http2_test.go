package tokens

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// http2Message is a frame of HTTP/2.
func http2Message(kind, flags byte, stream byte, body string) string {
	n := len(body)
	return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, 0, 0, 0, stream}) + body
}

// http2Of has a request of each stream, and a reply that ends with a frame of its own.
func http2Of(stream byte) (ask, answer, end string) {
	return http2Message(http2Headers, 4, stream, "get") + http2Message(http2Data, 1, stream, "x"),
		http2Message(http2Headers, 4, stream, "200") + http2Message(http2Data, 0, stream, "body"),
		http2Message(http2Headers, 5, stream, "0")
}

// conversation has packets between a client and theServer, 10 µs apart.
type conversation struct {
	log            *Log
	at             int64
	asked, replied uint32
	client         netip.AddrPort
	captured       int // at most of each packet; 0: all
}

func (c *conversation) send(out bool, texts ...string) {
	b := []byte(strings.Join(texts, ""))
	c.at += 10 * us
	p := &capture.Packet{At: c.at, Src: c.client, Dst: serverAt, Flags: capture.ACK, Seq: c.asked,
		Ack: c.replied, Size: len(b), Payload: b}
	if out {
		p.Out, p.Src, p.Dst, p.Seq, p.Ack = true, serverAt, c.client, c.replied, c.asked
		c.replied += uint32(len(b))
	} else {
		c.asked += uint32(len(b))
	}
	if c.captured > 0 {
		p.Payload = b[:min(len(b), c.captured)]
	}
	c.log.Add(2, p)
}

func (c *conversation) served() *sample.Served {
	var all Requests
	all.Take(c.log, theServer, math.MaxInt64)
	e := &sample.Served{}
	all.Note(e, time.Unix(0, 0))
	return e
}

// TestServedStreams has three requests of HTTP/2 at a time, which are answered in another order, on
// connections that are new, whose server greets first, and that are older than the log.
func TestServedStreams(t *testing.T) {
	settings := http2Message(http2Settings, 0, 0, "")
	for name, begin := range map[string]func(*conversation){
		"new": func(c *conversation) { c.send(false, http2Preface, settings) },
		"greeted": func(c *conversation) {
			c.send(true, settings)
			c.send(false, http2Preface, settings)
		},
		"older": func(*conversation) {},
		"amid a reply": func(c *conversation) {
			c.send(false, http2Message(http2Ping, 0, 0, "12345678"))
			c.send(true, "rest of a frame")
		},
	} {
		l := NewServer()
		l.Serve(theServer, nil)
		c := &conversation{log: l, asked: 100, replied: 9000,
			client: netip.AddrPortFrom(relayAt2, 41000)}
		if name == "new" || name == "greeted" {
			c.log.Add(2, &capture.Packet{At: 1, Src: c.client, Dst: serverAt, Flags: capture.SYN,
				Seq: 99})
			c.log.Add(2, &capture.Packet{At: 2, Out: true, Src: serverAt, Dst: c.client,
				Flags: capture.SYN | capture.ACK, Seq: 8999, Ack: 100})
		}
		begin(c)
		ask1, answer1, end1 := http2Of(1)
		ask3, answer3, end3 := http2Of(3)
		ask5, answer5, end5 := http2Of(5)
		c.send(false, ask1)         // 0 µs
		c.send(false, ask3)         // 10
		c.send(true, answer3)       // 20
		c.send(false, ask5)         // 30
		c.send(true, answer1, end3) // 40
		c.send(true, answer5, end5) // 50
		c.send(true, end1)          // 60
		e := c.served()
		if e.Requests != 3 || e.Pipelined != 2 || e.Unread+e.Unmatched+e.Unanswered != 0 ||
			e.Connections != 1 {
			t.Errorf("%s: %+v", name, e)
			continue
		}
		for i, want := range []float64{0, 70e-6 / 3, 40e-6 / 3} { // receiving, server, sending
			if p := e.Parts[i]; math.Abs(p.Mean-want) > 1e-9 {
				t.Errorf("%s: %s %g s, want %g", name, p.Part, p.Mean, want)
			}
		}
	}
}

// TestDecodedStreams has the tokens of two replies at a time, which end in another order than their
// requests, a request that is cancelled, and one that has no body.
func TestDecodedStreams(t *testing.T) {
	settings := http2Message(http2Settings, 0, 0, "")
	const proxied = "PROXY TCP4 10.0.0.1 10.0.0.2 40000 80\r\n"
	for name, begin := range map[string]func(*conversation){
		"new": func(c *conversation) { c.send(false, http2Preface, settings) },
		"greeted": func(c *conversation) {
			c.send(true, settings)
			c.send(false, http2Preface, settings)
		},
		"in pieces": func(c *conversation) {
			c.send(false, http2Preface[:3])
			c.send(false, http2Preface[3:20])
			c.send(false, http2Preface[20:], settings[:4])
			c.send(false, settings[4:])
		},
		"proxied": func(c *conversation) { c.send(false, proxied, http2Preface, settings) },
		"older":   nil,
		"amid a reply": func(c *conversation) {
			c.send(false, http2Message(http2Ping, 0, 0, "12345678"))
			c.send(true, "rest of a frame")
		},
	} {
		l := NewLog(mine)
		l.Serve(theServer, nil)
		c := &conversation{log: l, asked: 100, replied: 9000,
			client: netip.AddrPortFrom(relayAt2, 41000)}
		if name != "older" && name != "amid a reply" {
			l.Add(2, &capture.Packet{At: 1, Src: c.client, Dst: serverAt, Flags: capture.SYN, Seq: 99})
			l.Add(2, &capture.Packet{At: 2, Out: true, Src: serverAt, Dst: c.client,
				Flags: capture.SYN | capture.ACK, Seq: 8999, Ack: 100})
		}
		if begin != nil {
			begin(c)
		}
		c.at = 0
		head := func(stream byte) string { return http2Message(http2Headers, 4, stream, "head") }
		data := func(stream byte, text string) string { return http2Message(http2Data, 0, stream, text) }
		body := func(stream byte, text string) string { return http2Message(http2Data, 1, stream, text) }
		two := says("two ")
		c.send(false, head(1), body(1, "{}"), head(9), body(9, "{}"))                   // 10 µs
		c.send(false, head(3), data(3, `{"seed":12345`), body(3, `67890}`))             // 20
		c.send(false, http2Message(http2Headers, 5, 5, "get"))                          // 30
		c.send(true, head(3), data(3, says("one ")+two[:9]))                            // 40
		c.send(true, head(1), http2Message(http2Data, http2Padded, 1, "\x03"+says("x")+ // 50
			"\x00\x00\x00"))
		c.send(true, head(5), body(5, "ok"), head(9), data(9, says("gone")))         // 60
		c.send(false, http2Message(http2Reset, 0, 9, "\x00\x00\x00\x08"))            // 70
		c.send(true, data(3, two[9:]), http2Message(http2Headers, 5, 3, "trailers")) // 80
		c.send(true, data(1, says("y")))                                             // 90
		if seen := l.Take(theServer); len(seen) != 1 || seen[0].Mark != theMark || seen[0].ByID ||
			seen[0].Came != 20*us || !slices.Equal(seen[0].Departed, []int64{40 * us, 80 * us}) ||
			seen[0].Events[1].Len != len("one two ") {
			t.Errorf("%s: %+v", name, seen)
		}
		c.send(false, head(11), body(11, "{}"), head(13), body(13, "1234567890"))
		const line = `{"message":{"content":"x"}}`
		c.send(true, head(11), data(11, line+"\n"+line+"\n{}\n"), body(11, ""))
		c.send(true, head(13), body(13, line)) // in one piece
		if seen := l.Take(theServer); len(seen) != 2 || len(seen[0].Events) != 2 || seen[0].Reply != Streamed ||
			seen[1].Mark != theMark || seen[1].Reply != Plain {
			t.Errorf("%s: %+v", name, seen)
		}
		c.send(true, body(1, "data: [DONE]\n\n"))
		if seen := l.Take(theServer); len(seen) != 1 || seen[0].Mark != 0 || seen[0].Came != 10*us ||
			!slices.Equal(seen[0].Departed, []int64{50 * us, 90 * us}) || seen[0].Events[1].Len != len("xy") {
			t.Errorf("%s: %+v", name, seen)
		}
	}
}

// However the bytes of both directions are divided among packets, the same is read.
func FuzzStreams(f *testing.F) {
	ask, _, _ := http2Of(1)
	head := http2Message(http2Headers, 4, 1, "200")
	end := http2Message(http2Data, http2Last, 1, "data: [DONE]\n\n")
	f.Add([]byte(ask), []byte(head+http2Message(http2Data, 0, 1, says("one "))+end), uint8(3))
	f.Add([]byte(ask), []byte(head+http2Message(http2Data, http2Padded, 1, "\x02"+says("one ")+
		"\x00\x00")+end), uint8(7))
	f.Add([]byte(ask), []byte(head+http2Message(http2Data, http2Padded, 1, "\xff")+end), uint8(1))
	f.Add([]byte(ask), []byte(head+http2Message(http2Data, 0, 1, "\x1f\x8b\x08\x08a\x00")+end), uint8(1))
	f.Fuzz(func(t *testing.T, asks, answers []byte, step uint8) {
		read := func(size int) (all []*reply) {
			s := newStreams(0, 0, mine, openai.NewReader(false), func(_ *request, r *reply) { all = append(all, r) })
			s.asks.synced, s.answers.synced = true, true
			for part := range slices.Chunk(asks, size) {
				s.asks.feed(part)
			}
			for part := range slices.Chunk(answers, size) {
				s.answers.feed(part)
			}
			return all
		}
		whole, _ := lengths(read(max(1, len(asks), len(answers))))
		if parts, _ := lengths(read(max(1, int(step)))); !slices.Equal(whole, parts) {
			t.Errorf("%v and %v", whole, parts)
		}
	})
}

// TestServedStreamsInPart captures 40 bytes of each packet: enough of a long frame, but not of several.
// Cancelled requests do not count.
func TestServedStreamsInPart(t *testing.T) {
	l := NewServer()
	l.Serve(theServer, nil)
	c := &conversation{log: l, asked: 100, replied: 9000, captured: 40,
		client: netip.AddrPortFrom(relayAt2, 41000)}
	ask, answer, end := http2Of(1)
	c.send(false, ask)
	c.send(true, answer)
	c.send(true, http2Message(http2Data, 0, 1, strings.Repeat("x", 900)))
	c.send(true, end)
	ask, answer, end = http2Of(3)
	c.send(false, ask)
	c.send(true, answer, http2Message(http2Data, 0, 3, strings.Repeat("x", 90)), end)
	ask, answer, end = http2Of(5)
	c.send(false, ask)
	c.send(true, answer, end)
	ask, _, _ = http2Of(7)
	c.send(false, ask)
	c.send(false, http2Message(http2Reset, 0, 7, "1234"))
	if e := c.served(); e.Requests != 2 || e.Unmatched != 1 || e.Unanswered+e.Unread != 0 ||
		math.Abs(e.Whole.Max-30e-6) > 1e-9 {
		t.Errorf("%+v", e)
	}
}

// TestServedResetBehindReply has a server that reads no body, as Go's does when a handler does not:
// it resets the stream behind its whole reply.
func TestServedResetBehindReply(t *testing.T) {
	l := NewServer()
	l.Serve(theServer, nil)
	c := &conversation{log: l, asked: 100, replied: 9000,
		client: netip.AddrPortFrom(relayAt2, 41000)}
	for stream := byte(1); stream < 7; stream += 2 {
		ask, answer, end := http2Of(stream)
		c.send(false, ask)
		c.send(true, answer, end, http2Message(http2Reset, 0, stream, "\x00\x00\x00\x00"))
	}
	if e := c.served(); e.Requests != 3 || e.Unmatched+e.Unanswered+e.Unread != 0 {
		t.Errorf("%+v", e)
	}
}

// TestServedFlush has a client of PostgreSQL that sends Flush behind Sync, as psycopg's pipelines do.
func TestServedFlush(t *testing.T) {
	l := NewServer()
	l.Serve(theServer, nil)
	c := &conversation{log: l, asked: 100, replied: 9000,
		client: netip.AddrPortFrom(relayAt2, 41000)}
	for range 3 {
		c.send(false, message('P', "select"), message('B', ""), message('H', ""), message('S', ""))
		c.send(false, message('H', ""))
		c.send(true, message('1', ""), message('Z', "I"))
	}
	if e := c.served(); e.Requests != 3 || e.Pipelined+e.Unanswered+e.Unmatched != 0 ||
		math.Abs(e.Whole.Max-20e-6) > 1e-9 {
		t.Errorf("%+v", e)
	}
}

func TestIsHTTP2(t *testing.T) {
	ask, _, _ := http2Of(1)
	for b, want := range map[string]bool{
		ask: true, ask[:12]: true, "": false, ask[:5]: false,
		"\x21\x00\x00\x00\x03select 1":                 false, // MySQL
		"\x00\x00\x00\x08\x04\xd2\x16\x2f":             false,
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03": false, // TLS
		"GET / HTTP/1.1\r\n":                           false,
		"get key\r\n":                                  false,
	} {
		if got := areHTTP2([]byte(b)); got != want {
			t.Errorf("%q: %v", b, got)
		}
	}
}
