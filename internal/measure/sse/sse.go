// Package sse reads server-sent events (WHATWG HTML, 9.2). The caller feeds a Decoder the pieces of
// the body and gets each event with the piece that completes it, because only the caller knows when
// a piece arrived. Invalid UTF-8 is passed on.
package sse

import (
	"bytes"
	"errors"
)

// DefaultLimit bounds a line or an event, in bytes.
const DefaultLimit = 1 << 20

// Errors for an event, or a line also outside of events, that is longer than the limit.
var (
	ErrTooLong  = errors.New("an event is too long")
	ErrLongLine = errors.New("a line is too long")
)

// Event is an event with data.
type Event struct {
	Type string // "message" by default
	ID   string // the stream's last one
	Data []byte // lines joined by \n; valid until the callback returns
}

// Decoder is the state of one stream. The zero value is ready. Not for concurrent use.
type Decoder struct {
	// Limit bounds a line and an event's data, in bytes; 0: DefaultLimit.
	Limit int
	// Unknown, if set, gets the fields that the standard ignores. The slices are valid until it
	// returns.
	Unknown func(name, value []byte) error

	line    []byte // the front of an incomplete line
	data    []byte // of the event, with a \n after each of its lines
	kind    string
	id      string
	field   bool // the event has one
	started bool // the first line has been read, where a byte order mark is allowed
	afterCR bool // a \n that comes next belongs to the last line end
	err     error
}

// Feed calls emit for each event that the piece completes. After an error, including emit's, every
// call returns that error.
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
	line := part // most lines are complete and not copied
	if len(d.line) > 0 {
		d.line = append(d.line, part...)
		line = d.line
	}
	// The event ends with the first byte of its line end: a \n after a \r may come later.
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
		return nil
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
		// this package does not reconnect
	default:
		if d.Unknown != nil {
			return d.Unknown(name, value)
		}
	}
	return nil
}

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

// Pending reports whether the stream broke off within an event or a line.
func (d *Decoder) Pending() bool { return d.field || len(d.line) > 0 }
