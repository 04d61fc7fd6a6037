// Package sse reads a stream of server-sent events (WHATWG HTML, 9.2). The
// caller pushes the pieces of the body into a Decoder as they arrive, cut
// anywhere, and gets each event with the piece that completes it: only the caller
// knows when a piece came.
//
//	var d sse.Decoder
//	err := d.Feed(piece, func(e sse.Event) error { … })
//	// at the end of the body:
//	cut := d.Pending()
//
// Be aware that bytes are kept as they come: what is not UTF-8 is not replaced.
// A line and an event are at most Limit bytes long, which bounds the memory.
package sse

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"time"
)

// DefaultLimit is how long a line or an event may be, in bytes.
const DefaultLimit = 1 << 20

// The errors say that an event, or a line, which may be none of an event, is longer
// than the limit.
var (
	ErrTooLong  = errors.New("an event is too long")
	ErrLongLine = errors.New("a line is too long")
)

// Event is one that has data.
type Event struct {
	Type string // "message" if the stream does not say
	ID   string // the last one that the stream set, maybe with an earlier event
	Data []byte // its lines, joined by \n; valid until the function returns that got it
}

// Decoder is the state of one stream; its zero value is ready. It is not safe for
// concurrent use.
type Decoder struct {
	// Limit is of a line and of an event's data, in bytes; 0: DefaultLimit.
	Limit int
	// Unknown, if set, gets the fields that the standard tells to ignore. The
	// slices are valid until it returns.
	Unknown func(name, value []byte) error

	line    []byte // the front of a line whose end has not come
	data    []byte // of the event, a \n after each of its lines
	kind    string
	id      string
	retry   time.Duration
	field   bool // the event has one
	started bool // the first line is over, and with it a byte order mark
	afterCR bool // a \n that comes next belongs to the line end before
	err     error
}

// Feed takes the next piece of the stream and calls emit for each event that it
// completes. After an error, emit's included, every call returns that error.
func (d *Decoder) Feed(b []byte, emit func(Event) error) error {
	for d.err == nil && len(b) > 0 {
		if d.afterCR {
			d.afterCR = false
			if b[0] == '\n' {
				b = b[1:]
				continue
			}
		}
		b, d.err = d.take(b, emit)
	}
	return d.err
}

// take reads up to the end of a line and returns what is behind it.
func (d *Decoder) take(b []byte, emit func(Event) error) (rest []byte, err error) {
	end := bytes.IndexAny(b, "\r\n")
	part := b
	if end >= 0 {
		part = b[:end]
	}
	if len(d.line)+len(part) > d.limit() {
		return nil, ErrLongLine
	}
	if end < 0 {
		d.line = append(d.line, part...)
		return nil, nil
	}
	line := part // most lines come whole and are not copied
	if len(d.line) > 0 {
		d.line = append(d.line, part...)
		line = d.line
	}
	// The event ends with the first byte of its line end: a \n after a \r may
	// come later than the event.
	d.afterCR = b[end] == '\r'
	err = d.ended(line, emit)
	d.line = d.line[:0]
	return b[end+1:], err
}

func (d *Decoder) limit() int {
	if d.Limit > 0 {
		return d.Limit
	}
	return DefaultLimit
}

// ended reads a whole line.
func (d *Decoder) ended(line []byte, emit func(Event) error) error {
	if !d.started {
		d.started = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if len(line) == 0 {
		return d.dispatch(emit)
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	if len(name) == 0 {
		return nil // a comment
	}
	value = bytes.TrimPrefix(value, []byte{' '})
	d.field = true
	switch string(name) {
	case "data":
		if len(d.data)+len(value)+1 > d.limit() {
			return ErrTooLong
		}
		d.data = append(append(d.data, value...), '\n')
	case "event":
		d.kind = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			d.id = string(value)
		}
	case "retry":
		d.setRetry(value)
	default:
		if d.Unknown != nil {
			return d.Unknown(name, value)
		}
	}
	return nil
}

// setRetry overlooks what is no number of milliseconds, as the standard says.
func (d *Decoder) setRetry(value []byte) {
	for _, c := range value {
		if c < '0' || c > '9' {
			return
		}
	}
	ms, err := strconv.ParseInt(string(value), 10, 64)
	if err == nil && ms <= math.MaxInt64/int64(time.Millisecond) {
		d.retry = time.Duration(ms) * time.Millisecond
	}
}

// dispatch ends an event. One without a data line is none.
func (d *Decoder) dispatch(emit func(Event) error) error {
	e := Event{Type: d.kind, ID: d.id}
	d.field, d.kind = false, ""
	if len(d.data) == 0 {
		return nil
	}
	e.Data = d.data[:len(d.data)-1]
	d.data = d.data[:0]
	if e.Type == "" {
		e.Type = "message"
	}
	return emit(e)
}

// Retry is how long the stream asks to wait before connecting again; 0: it did
// not say.
func (d *Decoder) Retry() time.Duration { return d.retry }

// Pending reports whether the stream broke off within an event or a line. The
// standard throws that rest away.
func (d *Decoder) Pending() bool { return d.field || len(d.line) > 0 }
