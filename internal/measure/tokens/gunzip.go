package tokens

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
)

// gunzip decodes a gzip stream that comes in pieces, as far as its compressor has flushed it.
// Compressors of streams end what they flush at a byte (Z_SYNC_FLUSH). Only what comes after that is
// kept, with the text to which it may refer.
type gunzip struct {
	begun   bool   // the member's header has come
	later   bool   // a member has ended
	trailer int    // bytes behind that member that have yet to be skipped
	rest    []byte // from the last flush on, or of the header
	given   int    // decoded bytes of rest that were returned
	work    int    // bytes that were read and decoded since the last flush
	text    []byte // decoded before rest, as much as it may refer to
	from    io.ReadCloser
}

const (
	// mostUnflushed bounds the bytes between two flushes, and mostFlushed what they, or all that
	// comes at once, are decoded to.
	mostUnflushed = 256 << 10
	mostFlushed   = 4 << 20
	// mostWork bounds what decoding the same bytes again with each piece takes.
	mostWork = 32 << 20
	window   = 32 << 10 // RFC 1951
)

// flushed is how a flush ends: the lengths of an empty block without compression.
var flushed = []byte{0, 0, 0xff, 0xff}

// feed returns what more of the text the next bytes bring. The text may be of several members, as
// of a server that compresses each event by itself (RFC 1952, 2.2). Other bytes behind it are
// ignored.
func (g *gunzip) feed(b []byte) (text []byte, err error) {
	g.rest = append(g.rest, b...)
	for more := true; more && err == nil; {
		var piece []byte
		piece, more, err = g.step()
		if text = append(text, piece...); len(text) > mostFlushed {
			return nil, errForeign
		}
	}
	return text, err
}

// step returns what the rest adds to the text of one member, and whether that has ended.
func (g *gunzip) step() (text []byte, ended bool, err error) {
	skip := min(g.trailer, len(g.rest))
	g.rest, g.trailer = g.rest[skip:], g.trailer-skip
	if !g.begun {
		switch err := g.header(); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, false, nil
		case err != nil && g.later:
			g.rest = nil
			return nil, false, nil
		case err != nil:
			return nil, false, errForeign
		}
	}
	if len(g.rest) > mostUnflushed {
		return nil, false, errForeign
	}
	all, unread, err := g.decode()
	g.work += len(g.rest) + len(all)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) || len(all) == mostFlushed ||
		g.work > mostWork {
		return nil, false, errForeign
	}
	text = all[g.given:]
	g.given = len(all)
	if err == nil {
		*g = gunzip{rest: g.rest[len(g.rest)-unread:], later: true, trailer: 8, from: g.from}
		return text, true, nil
	}
	if bytes.HasSuffix(g.rest, flushed) {
		g.text = append(g.text, all...)
		g.text = bytes.Clone(g.text[max(0, len(g.text)-window):])
		g.rest, g.given, g.work = g.rest[:0], 0, 0
	}
	return text, false, nil
}

// decode returns what the rest is decoded to, and how many bytes are behind its end. The error is
// io.ErrUnexpectedEOF before that.
func (g *gunzip) decode() (text []byte, unread int, err error) {
	b := bytes.NewReader(g.rest)
	if g.from == nil {
		g.from = flate.NewReaderDict(b, g.text)
	} else if err := g.from.(flate.Resetter).Reset(b, g.text); err != nil {
		return nil, 0, err
	}
	text, err = io.ReadAll(io.LimitReader(g.from, mostFlushed))
	return text, b.Len(), err
}

// header takes the header of a member from the rest. The error is io.EOF or io.ErrUnexpectedEOF
// before all of it has come.
func (g *gunzip) header() error {
	b := bytes.NewReader(g.rest)
	_, err := gzip.NewReader(b)
	if err == nil {
		g.rest, g.begun = g.rest[len(g.rest)-b.Len():], true
	}
	return err
}
