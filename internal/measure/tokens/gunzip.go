package tokens

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
)

// gunzip decodes a gzip stream that comes in pieces, as far as its compressor has flushed it.
// Compressors of streams end what they flush at a byte (Z_SYNC_FLUSH). Only what comes after that is
// kept, with the text to which it may refer.
type gunzip struct {
	begun bool   // the header has come
	rest  []byte // from the last flush on, or of the header
	given int    // decoded bytes of rest that were returned
	work  int    // bytes that were read and decoded since the last flush
	text  []byte // decoded before rest, as much as it may refer to
	from  io.ReadCloser
}

const (
	// mostUnflushed bounds the bytes between two flushes, and what they are decoded to.
	mostUnflushed = 256 << 10
	mostFlushed   = 4 << 20
	// mostWork bounds what decoding the same bytes again with each piece takes.
	mostWork = 32 << 20
	window   = 32 << 10 // RFC 1951
)

// flushed is how a flush ends: the lengths of an empty block without compression.
var flushed = []byte{0, 0, 0xff, 0xff}

// feed returns what more of the text the next bytes bring. What follows the text's end is ignored.
func (g *gunzip) feed(b []byte) (text []byte, err error) {
	g.rest = append(g.rest, b...)
	if !g.begun && !g.header() {
		if len(g.rest) > 0 && !bytes.HasPrefix(gzipHead, g.rest[:min(len(g.rest), len(gzipHead))]) {
			return nil, errForeign
		}
		return nil, nil
	}
	if len(g.rest) > mostUnflushed {
		return nil, errForeign
	}
	all, err := g.decode()
	g.work += len(g.rest) + len(all)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) || len(all) == mostFlushed ||
		g.work > mostWork {
		return nil, errForeign
	}
	text = all[g.given:]
	g.given = len(all)
	if err != nil && bytes.HasSuffix(g.rest, flushed) {
		g.text = append(g.text, all...)
		g.text = bytes.Clone(g.text[max(0, len(g.text)-window):])
		g.rest, g.given, g.work = g.rest[:0], 0, 0
	}
	return text, nil
}

// decode returns what the rest is decoded to. The error is io.ErrUnexpectedEOF before the text's end.
func (g *gunzip) decode() ([]byte, error) {
	b := bytes.NewReader(g.rest)
	if g.from == nil {
		g.from = flate.NewReaderDict(b, g.text)
	} else if err := g.from.(flate.Resetter).Reset(b, g.text); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(g.from, mostFlushed))
}

// gzipHead begins the header of a gzip stream that has no optional fields, as those of HTTP servers.
var gzipHead = []byte{0x1f, 0x8b, 8, 0}

// header takes the header from the rest. It reports whether all of it has come.
func (g *gunzip) header() bool {
	const size = 10
	if len(g.rest) < size || !bytes.HasPrefix(g.rest, gzipHead) {
		return false
	}
	g.rest, g.begun = g.rest[size:], true
	return true
}
