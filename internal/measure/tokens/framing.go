package tokens

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// frame is a request or a reply: its end is the offset behind it.
type frame struct {
	end     int64
	login   bool   // no request of the client's
	several bool   // statements that are answered together
	start   int64  // if it is behind the end of the one before
	stream  uint32 // of HTTP/2's, which may alternate
	open    bool   // a reply that may go on until the next one
	sync    bool   // a request of PostgreSQL's extended protocol
	copied  bool   // the same, of which only the data of a COPY have come
	news    bool   // Redis': it begins or is publish/subscribe, and more may follow unasked
}

// framer finds where the messages of one direction of a connection end.
type framer interface {
	feed(b []byte)
	skip(n int64) // bytes that were not captured
	found() *framed
}

// framed is what a framer has found.
type framed struct {
	at     int64 // bytes so far
	frames []frame
	failed bool // the bytes are not the protocol's, or those that matter were not captured
	twoWay bool // it failed because from now on both sides send what answers nothing
}

func (f *framed) found() *framed { return f }

// framersOf returns framers of a connection's requests and replies by how its requests begin, or nil
// if the protocol is another one.
func framersOf(b []byte) (asks, answers framer) {
	const ofHTTP = " HTTP/1.1\r\n"
	switch {
	case len(b) > 1 && b[0] == '*' && b[1] >= '1' && b[1] <= '9':
		return newRESP(true), newRESP(false)
	case bytes.Contains(b, []byte(ofHTTP)):
		return newHTTP()
	case len(b) >= 8 && b[0] == 0 && postgresStart(b) != 0:
		p := newPostgres(true)
		return p, p.answers
	case arePostgres(b):
		p := newPostgres(false)
		p.answers.joins = strings.IndexByte("cdf", b[0]) >= 0
		return p, p.answers
	case areMySQL(b, false):
		asks, answers := newMySQL(false)
		return asks, answers
	}
	if asks, answers := newHTTP2(b); asks != nil {
		return asks, answers
	}
	return nil, nil
}

// counted are the bytes of a direction in which data of a known length follow headers.
type counted struct {
	framed
	left int64  // bytes of data
	end  func() // called at the end of data
}

// take takes data from the beginning of b. It returns the rest, which begins with a header.
func (c *counted) take(b []byte) []byte {
	if c.failed || c.left == 0 || len(b) == 0 {
		return b
	}
	n := min(c.left, int64(len(b)))
	c.data(n)
	return b[n:]
}

func (c *counted) skip(n int64) {
	if n > c.left {
		c.failed = true
		return
	}
	c.data(n)
}

func (c *counted) data(n int64) {
	c.at += n
	if c.left -= n; c.left == 0 {
		c.end()
	}
}

// resp is Redis' protocol, versions 2 and 3. Its data are strings with their ends.
type resp struct {
	counted
	asks   bool
	line   []byte
	want   []int64 // elements that are missing, by depth
	push   bool    // the message answers nothing
	start  int64   // of the next message that counts
	named  int     // elements of the message that have begun, up to two
	naming bool    // the last one of them is a string, which goes on
	words  []byte  // how they begin, with their ends
	tells  bool    // a client asked for news
}

func newRESP(asks bool) *resp {
	r := &resp{asks: asks}
	r.end = r.ended
	return r
}

const (
	longestLine  = 64 << 10
	deepest      = 32
	longestWords = 16
)

// take takes bytes as counted.take does, and notes the message's first words.
func (r *resp) take(b []byte) []byte {
	if r.naming {
		n := min(int64(len(b)), r.left, int64(longestWords-len(r.words)))
		r.words = append(r.words, b[:n]...)
	}
	return r.counted.take(b)
}

// isNews reports whether the message asks for publish/subscribe or monitoring, or is part of it.
func (r *resp) isNews() bool {
	first, _, _ := strings.Cut(strings.ToLower(string(r.words)), "\r\n")
	switch first {
	case "message", "pmessage", "smessage", "subscribe", "psubscribe", "ssubscribe", "unsubscribe",
		"punsubscribe", "sunsubscribe", "monitor":
		return true
	}
	return false
}

// asked handles the end of a command. Behind some of them, not each one has a reply.
func (r *resp) asked() {
	words := strings.ToLower(string(r.words))
	is := func(command string) bool { return strings.HasPrefix(words, command) }
	switch {
	case r.named == 0: // it is empty, and nobody answers
		r.start = r.at
	case is("sync\r\n"), is("psync\r\n"), is("replconf\r\nack\r\n"): // replication
		r.failed, r.twoWay = true, true
	case is("client\r\nreply\r\n"):
		r.failed = true
	default:
		r.tells = r.tells || r.isNews()
		r.frames = append(r.frames, frame{start: r.start, end: r.at})
	}
}

func (r *resp) feed(b []byte) {
	for b = r.take(b); len(b) > 0 && !r.failed; b = r.take(b) {
		n := bytes.IndexByte(b, '\n') + 1
		if n == 0 {
			n = len(b)
		}
		r.line, r.at = append(r.line, b[:n]...), r.at+int64(n)
		if b = b[n:]; len(r.line) > longestLine {
			r.failed = true
		}
		if line, ok := bytes.CutSuffix(r.line, []byte("\r\n")); ok {
			r.element(line)
			r.line = r.line[:0]
		}
	}
}

// element handles the line with which an element begins.
func (r *resp) element(line []byte) {
	if len(line) == 0 || r.asks && !bytes.Contains([]byte("*$"), line[:1]) {
		r.failed = true
		return
	}
	if len(r.want) == 0 {
		r.push, r.named, r.words = line[0] == '>', 0, r.words[:0]
	} else if r.named < 2 {
		r.named, r.naming = r.named+1, line[0] == '$'
	}
	n := int64(0)
	if strings.IndexByte("$=!*~>%|", line[0]) >= 0 {
		var err error
		if n, err = strconv.ParseInt(string(line[1:]), 10, 64); err != nil || n > 1<<40 {
			r.failed = true
			return
		}
	}
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		r.ended()
	case '$', '=', '!':
		if r.left = n + 2; n < 0 {
			r.left = 0
			r.ended()
		}
	case '*', '~', '>':
		r.elements(n)
	case '%':
		r.elements(2 * n)
	case '|':
		r.elements(2*n + 1) // with the value that it is about
	default:
		r.failed = true
	}
}

func (r *resp) elements(n int64) {
	switch {
	case n <= 0:
		r.ended()
	case len(r.want) == deepest:
		r.failed = true
	default:
		r.want = append(r.want, n)
	}
}

// ended handles the end of an element.
func (r *resp) ended() {
	r.naming = false
	for n := len(r.want); n > 0; n-- {
		if r.want[n-1]--; r.want[n-1] > 0 {
			r.want = r.want[:n]
			return
		}
	}
	r.want = r.want[:0]
	switch {
	case r.asks:
		r.asked()
	case !r.push:
		r.frames = append(r.frames, frame{start: r.start, end: r.at, news: r.isNews()})
	case r.isNews(): // of version 3, in which it also is the reply to who subscribes
		r.failed, r.twoWay = true, true
	default: // it answers nothing, and the next reply begins behind it
		r.start = r.at
	}
}

// http is HTTP/1.1.
type http struct {
	framed
	messages
	start int64 // of the next message
	early bool  // the request under way is answered, and has a frame
}

// newHTTP returns framers of requests and replies.
func newHTTP() (asks, answers *http) {
	asks, answers = &http{}, &http{}
	for _, h := range []*http{asks, answers} {
		h.body, h.done = func([]byte, int64) error { return nil }, h.ended
	}
	asks.head = requestLength
	answers.head = func(lines []string) (int64, error) {
		n, err := replyLength(lines)
		if n == noBody { // the reply proper follows
			answers.start = answers.offset
		} else {
			asks.answered(len(answers.frames))
		}
		return n, err
	}
	return asks, answers
}

// answered handles the beginning of the nth reply. That to a request whose body has not ended refuses
// it, or is sent at the same time: the server began to reply to what had come.
func (h *http) answered(n int) {
	if h.step != inHead && n == len(h.frames) && !h.early {
		h.early, h.frames = true, append(h.frames, frame{start: h.start, end: h.offset})
	}
}

// ended handles the end of a message.
func (h *http) ended(end int64) {
	if !h.early {
		h.frames, end = append(h.frames, frame{start: h.start, end: end}), 0
	}
	h.start, h.early = end, false
}

func (h *http) feed(b []byte) {
	h.messages.feed(b)
	h.failed = h.failed || h.err != nil || h.until // such a body ends with the connection
	h.twoWay = errors.Is(h.err, errTwoWay)
}

func (h *http) skip(n int64) {
	if h.step != inBody && h.step != inChunk || n > h.left {
		h.failed = true
		return
	}
	h.offset += n
	if h.left -= n; h.left == 0 && h.step == inChunk {
		h.step = afterChunk
	} else if h.left == 0 {
		h.step = inHead
		h.done(h.offset)
	}
}

// requestLength refuses requests after which the replies' lengths have another meaning.
func requestLength(lines []string) (int64, error) {
	if strings.HasPrefix(lines[0], "HEAD ") || strings.HasPrefix(lines[0], "CONNECT ") ||
		!strings.HasSuffix(lines[0], " HTTP/1.1") {
		return 0, errForeign
	}
	return length(lines, 0)
}

func replyLength(lines []string) (int64, error) {
	_, code, _ := strings.Cut(lines[0], " ")
	switch {
	case strings.HasPrefix(code, "101") && field(lines, "Upgrade") == "websocket":
		return 0, errTwoWay
	case !strings.HasPrefix(lines[0], "HTTP/1.1 ") || strings.HasPrefix(code, "101"):
		return 0, errForeign
	case strings.HasPrefix(code, "1"):
		return noBody, nil
	case strings.HasPrefix(code, "204"), strings.HasPrefix(code, "304"):
		return 0, nil
	}
	return length(lines, untilClose)
}
