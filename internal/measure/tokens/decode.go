package tokens

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

const (
	maxHead = 64 << 10
	// markDigits is the length of a mark in decimal.
	markDigits = 10
)

// errForeign means that bytes are not what the decoder reads, so nothing more is read.
var errForeign = errors.New("not HTTP/1.1")

// errHTTP2 means that what follows are frames of HTTP/2, behind the rest of its preface.
var errHTTP2 = errors.New("HTTP/2")

// messages splits one direction of a connection into HTTP/1.1 messages.
type messages struct {
	// head handles the lines of a message's header. It returns the body's length, or a negative
	// number: noBody, chunked or untilClose.
	head func(lines []string) (length int64, err error)
	// body handles bytes of a body, without the chunks' framing. end is the offset behind them.
	body func(piece []byte, end int64) error
	// done is called behind the last byte of a message.
	done func(end int64)

	err    error
	offset int64 // of the next byte
	step   step
	line   []byte
	left   int64 // bytes of the body or the chunk
	until  bool  // the body ends with the connection
}

type step int

const (
	inHead step = iota
	inPreface
	inBody
	inSize
	inChunk
	afterChunk
	inTrailer
)

const (
	noBody     = -1 // the message is followed by another one of the same exchange
	chunked    = -2
	untilClose = -3
)

// feed decodes the next bytes. After an error it ignores all bytes.
func (m *messages) feed(b []byte) {
	for len(b) > 0 && m.err == nil {
		n := 0
		switch m.step {
		case inPreface:
			n = m.preface(b)
		case inHead:
			n = m.header(b)
		case inBody, inChunk:
			n = m.content(b)
		default:
			n = m.framing(b)
		}
		b = b[n:]
	}
}

// preface skips a header of the PROXY protocol, with which a relay may begin a connection.
func (m *messages) preface(b []byte) int {
	m.line = append(m.line, b...)
	if n, known := proxyHeader(m.line); known {
		begin := m.line
		m.step, m.line, m.offset = inHead, nil, int64(n)
		m.feed(begin[n:])
	}
	return len(b)
}

// header takes bytes of a header, and starts the body behind it.
func (m *messages) header(b []byte) int {
	before := len(m.line)
	m.line = append(m.line, b...)
	end := headEnd(m.line, max(0, before-len("\n\r")))
	if end < 0 || end > maxHead {
		if m.offset += int64(len(b)); len(m.line) > maxHead {
			m.err = errForeign
		}
		return len(b)
	}
	head := strings.TrimRight(strings.ReplaceAll(string(m.line[:end]), "\r\n", "\n"), "\n")
	lines := strings.Split(head, "\n")
	n := end - before
	m.offset, m.line = m.offset+int64(n), m.line[:0]
	length, err := m.head(lines)
	switch {
	case err != nil:
		m.err = err
	case length == noBody:
	case length == chunked:
		m.step = inSize
	case length == untilClose:
		m.step, m.until = inBody, true
	case length == 0:
		m.done(m.offset)
	default:
		m.step, m.left, m.until = inBody, length, false
	}
	return n
}

// headEnd returns the offset behind the blank line that ends a header, or -1 before that has come.
// Lines may end without a carriage return, as clients read them (RFC 9112, 2.2). An end is looked for
// from an offset on.
func headEnd(b []byte, from int) int {
	for i := from; ; {
		n := bytes.IndexByte(b[i:], '\n') + 1
		if n == 0 {
			return -1
		}
		i += n
		switch rest := b[i:]; {
		case bytes.HasPrefix(rest, []byte("\n")):
			return i + 1
		case bytes.HasPrefix(rest, []byte("\r\n")):
			return i + 2
		}
	}
}

// content takes bytes of a body or a chunk.
func (m *messages) content(b []byte) int {
	piece := b
	if !m.until || m.step == inChunk {
		piece = b[:min(int64(len(b)), m.left)]
	}
	m.offset += int64(len(piece))
	if err := m.body(piece, m.offset); err != nil {
		m.err = err
		return len(piece)
	}
	if m.step == inBody && m.until {
		return len(piece)
	}
	if m.left -= int64(len(piece)); m.left > 0 {
		return len(piece)
	}
	if m.step == inChunk {
		m.step = afterChunk
	} else {
		m.step = inHead
		m.done(m.offset)
	}
	return len(piece)
}

// framing takes bytes of a line between chunks.
func (m *messages) framing(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		m.line = append(m.line, b...)
		if m.offset += int64(len(b)); len(m.line) > maxHead {
			m.err = errForeign
		}
		return len(b)
	}
	m.offset += int64(end) + 1
	line := strings.TrimSpace(string(append(m.line, b[:end]...)))
	m.line = m.line[:0]
	switch m.step {
	case afterChunk:
		if m.step = inSize; line != "" {
			m.err = errForeign
		}
	case inSize:
		digits, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 16, 64)
		switch {
		case err != nil || n < 0:
			m.err = errForeign
		case n == 0:
			m.step = inTrailer
		default:
			m.step, m.left = inChunk, n
		}
	case inTrailer:
		if line == "" {
			m.step = inHead
			m.done(m.offset)
		}
	}
	return end + 1
}

// field returns the values of a header's field, joined by commas, in lower case.
func field(lines []string, name string) string {
	var values []string
	for _, l := range lines[1:] {
		n, v, _ := strings.Cut(l, ":")
		if strings.EqualFold(strings.TrimSpace(n), name) {
			values = append(values, strings.ToLower(strings.TrimSpace(v)))
		}
	}
	return strings.Join(values, ",")
}

// length returns the length of a body by its header, or without if that says nothing.
func length(lines []string, without int64) (int64, error) {
	if strings.Contains(field(lines, "Transfer-Encoding"), "chunked") {
		return chunked, nil
	}
	text := ""
	for i, one := range strings.Split(field(lines, "Content-Length"), ",") {
		if one = strings.TrimSpace(one); i > 0 && one != text {
			return 0, errForeign
		}
		text = one // it may come several times (RFC 9110, 8.6)
	}
	if text == "" {
		return without, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, errForeign
	}
	return n, nil
}

// digits finds marks in a text that comes in pieces: numbers of markDigits digits.
type digits struct {
	number uint64
	n      int
}

// find calls f with each number that a piece ends or that is followed by another character.
func (d *digits) find(b []byte, f func(uint64)) {
	for _, c := range b {
		if c >= '0' && c <= '9' {
			if d.n++; d.n <= markDigits {
				d.number = 10*d.number + uint64(c-'0')
			}
			continue
		}
		d.end(f)
	}
}

func (d *digits) end(f func(uint64)) {
	if d.n == markDigits {
		f(d.number)
	}
	*d = digits{}
}

// Marked reports whether a packet's payload has a request's mark.
func Marked(payload []byte, ours func(mark uint32) bool) (yes bool) {
	var d digits
	found := func(n uint64) { yes = yes || n < 1<<31 && ours(uint32(n)) }
	d.find(payload, found)
	d.end(found)
	return yes
}

// request is one that came to a server or relay.
type request struct {
	mark uint32 // 0: none
	byID bool   // the mark was in its header, and not only in its body
	chat bool   // it is a POST
	body bool   // it has one
	head bool   // it is a HEAD
	end  int64  // offset behind its last byte; 0: it has not come
}

// requests decodes a client's side of a connection. ours reports whether a number is a mark.
func requests(ours func(uint32) bool, begun func(*request)) *messages {
	var r *request
	var d digits
	note := func(header bool) func(uint64) {
		return func(n uint64) {
			if n < 1<<31 && r.mark == 0 && ours(uint32(n)) {
				r.mark, r.byID = uint32(n), header
			}
		}
	}
	m := &messages{step: inPreface}
	m.head = func(lines []string) (int64, error) {
		method, rest, ok := strings.Cut(lines[0], " ")
		if lines[0]+"\r\n\r\n"+http2Rest == http2Preface {
			return 0, errHTTP2
		}
		if !ok || !strings.Contains(rest, " HTTP/1.") {
			return 0, errForeign
		}
		r = &request{chat: method == "POST", head: method == "HEAD"}
		for _, l := range lines[1:] {
			d.find([]byte(l+"\n"), note(true))
		}
		begun(r)
		n, err := length(lines, 0)
		r.body = n != 0
		return n, err
	}
	m.body = func(piece []byte, _ int64) error {
		d.find(piece, note(false))
		return nil
	}
	m.done = func(end int64) {
		d.end(note(false))
		r.end = end
	}
	return m
}
