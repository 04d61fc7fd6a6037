package load

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

type sseEvent int

const (
	noEvent   sseEvent = iota // more bytes are needed
	aToken                    // due and sent are in the reader
	aFinish                   // the last chunk, without content
	endOfBody                 // of a response; the next may follow
)

// streamReader reads the responses of streamServer, which may be cut into pieces anywhere. Anything
// else is an error.
type streamReader struct {
	part             httpPart
	head             httpLine
	data             httpLine
	left             int // bytes left of the chunk
	chunked, streams bool
	kind             sseEvent
	full             bool // a data line of an event was read
	done             bool
	due, sent        int64
}

type httpPart int

const (
	inStatus httpPart = iota
	inHead
	inSize
	inChunk
	afterChunk
	inTrailer
)

// next reads b up to the end of an event, or all of it. used is the number of bytes read.
func (r *streamReader) next(b []byte) (used int, e sseEvent, err error) {
	for used < len(b) {
		if r.part == inChunk {
			n, e, err := r.body(b[used:min(len(b), used+r.left)])
			used += n
			if r.left -= n; r.left == 0 {
				r.part = afterChunk
			}
			if err != nil || e != noEvent {
				return used, e, err
			}
			continue
		}
		n, whole, err := r.head.take(b[used:])
		used += n
		if err != nil {
			return used, noEvent, err
		}
		if !whole {
			continue
		}
		s, ok := r.head.text(true)
		if !ok {
			return used, noEvent, fmt.Errorf("a line of HTTP ends without CR: %.80q", s)
		}
		if e, err := r.line(s); err != nil || e != noEvent {
			return used, e, err
		}
	}
	return used, noEvent, nil
}

func (r *streamReader) line(s []byte) (sseEvent, error) {
	switch r.part {
	case inStatus:
		if string(s) != "HTTP/1.1 200 OK" {
			return noEvent, fmt.Errorf("the server answered %.80q", s)
		}
		r.part = inHead
		r.chunked, r.streams, r.done = false, false, false
	case inHead:
		return noEvent, r.header(s)
	case inSize:
		return noEvent, r.size(s)
	case afterChunk:
		if len(s) > 0 {
			return noEvent, fmt.Errorf("a chunk is longer than it says: %.80q", s)
		}
		r.part = inSize
	case inTrailer:
		switch {
		case len(s) > 0:
			return noEvent, fmt.Errorf("the server sent a trailer: %.80q", s)
		case !r.done || r.full || r.data.n > 0:
			return noEvent, errors.New("the response ended before its stream did")
		}
		r.part = inStatus
		return endOfBody, nil
	}
	return noEvent, nil
}

func (r *streamReader) header(s []byte) error {
	if len(s) == 0 {
		if !r.chunked || !r.streams {
			return errors.New("the response is not a chunked stream of events")
		}
		r.part = inSize
		return nil
	}
	if v, ok := headerValue(s, "Transfer-Encoding"); ok {
		r.chunked = string(v) == "chunked"
	}
	if v, ok := headerValue(s, "Content-Type"); ok {
		r.streams = bytes.HasPrefix(v, []byte("text/event-stream"))
	}
	return nil
}

func (r *streamReader) size(s []byte) error {
	const digits = 6
	if len(s) == 0 || len(s) > digits {
		return fmt.Errorf("chunk size %q", s)
	}
	r.left = 0
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return fmt.Errorf("chunk size %q", s)
		}
		r.left = r.left<<4 | int(c)
	}
	r.part = inChunk
	if r.left == 0 {
		r.part = inTrailer
	}
	return nil
}

func (r *streamReader) body(b []byte) (used int, e sseEvent, err error) {
	for used < len(b) {
		n, whole, err := r.data.take(b[used:])
		used += n
		if err != nil {
			return used, noEvent, err
		}
		if !whole {
			continue
		}
		s, _ := r.data.text(false)
		switch {
		case len(s) == 0 && r.full:
			r.full = false
			return used, r.kind, nil
		case len(s) == 0: // an additional blank line
		case r.done || r.full:
			return used, noEvent, fmt.Errorf("data after the end of the stream: %.80q", s)
		default:
			if err := r.field(s); err != nil {
				return used, noEvent, err
			}
		}
	}
	return used, noEvent, nil
}

func (r *streamReader) field(s []byte) error {
	data, ok := bytes.CutPrefix(s, []byte("data: "))
	if !ok {
		return fmt.Errorf("a line that is not an event's data: %.80q", s)
	}
	r.full, r.kind = true, noEvent
	if string(data) == doneData {
		r.done = true
		return nil
	}
	if bytes.Contains(data, []byte(finishMark)) {
		r.kind = aFinish
		return nil
	}
	i := bytes.Index(data, []byte(dueKey))
	if i < 0 {
		return fmt.Errorf("a chunk without its due time: %.80q", data)
	}
	at := data[i+len(dueKey):]
	var okDue, okSent bool
	r.due, okDue = readStamp(at)
	if okDue && bytes.HasPrefix(at[stampWidth:], []byte(sentKey)) {
		r.sent, okSent = readStamp(at[stampWidth+len(sentKey):])
	}
	if !okSent {
		return fmt.Errorf("a chunk's times cannot be read: %.80q", at)
	}
	r.kind = aToken
	return nil
}

type requestReader struct {
	line   httpLine
	inHead bool
	inBody bool
	length int // of the body
	body   [maxLine]byte
	n      int
	tokens int
}

// next reads b up to the end of a request, or all of it. used is the number of bytes read; whole
// means that a request ended.
func (a *requestReader) next(b []byte) (used int, whole bool, err error) {
	for used < len(b) {
		if a.inBody {
			n := copy(a.body[a.n:a.length], b[used:])
			a.n += n
			used += n
			if a.n == a.length {
				a.inBody = false
				return used, true, a.parse(a.body[:a.n])
			}
			continue
		}
		n, line, err := a.line.take(b[used:])
		used += n
		if err != nil {
			return used, false, err
		}
		if !line {
			continue
		}
		s, ok := a.line.text(true)
		if !ok {
			return used, false, fmt.Errorf("a line of HTTP ends without CR: %.80q", s)
		}
		if err := a.header(s); err != nil {
			return used, false, err
		}
	}
	return used, false, nil
}

func (a *requestReader) header(s []byte) error {
	switch {
	case !a.inHead:
		if string(s) != "POST "+streamPath+" HTTP/1.1" {
			return fmt.Errorf("the client sent the request %.80q", s)
		}
		a.inHead, a.length = true, 0
	case len(s) == 0:
		if a.length == 0 {
			return errors.New("a request without a body")
		}
		a.inHead, a.inBody, a.n = false, true, 0
	default:
		if v, ok := headerValue(s, "Content-Length"); ok {
			n, ok := smallNumber(v)
			if !ok || n < 1 || n > maxLine {
				return fmt.Errorf("a body of %q bytes", v)
			}
			a.length = n
		}
	}
	return nil
}

func (a *requestReader) parse(body []byte) error {
	const key = `"max_tokens":`
	i := bytes.Index(body, []byte(key))
	if i < 0 {
		return errors.New("a request without max_tokens")
	}
	digits := body[i+len(key):]
	end := bytes.IndexFunc(digits, func(c rune) bool { return c < '0' || c > '9' })
	if end < 0 {
		end = len(digits)
	}
	n, ok := smallNumber(digits[:end])
	if !ok || n < 1 || n > workload.MaxTokens {
		return fmt.Errorf("max_tokens %q", digits[:end])
	}
	a.tokens = n
	return nil
}

func smallNumber(s []byte) (n int, ok bool) {
	const most = 9
	if len(s) == 0 || len(s) > most {
		return 0, false
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}
