package openai

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// body is a response's, without the chunked coding (RFC 9112, 7.1). A Read returns
// what has come and does not wait for the rest of its chunk.
type body struct {
	br      *bufio.Reader
	framing framing
	left    uint64 // bytes of the chunk, or of the body
	within  bool   // a chunk's end has not been read
	err     error  // that ended it; io.EOF if it is whole
}

// framing is what tells where a body ends.
type framing int

const (
	byChunks framing = iota
	byLength
	byClose // the connection's end
)

func newBody(br *bufio.Reader, resp *http.Response) *body {
	b := &body{br: br, framing: byClose}
	switch {
	case slices.Contains(resp.TransferEncoding, "chunked"):
		b.framing = byChunks
	case resp.ContentLength >= 0:
		b.framing, b.left = byLength, uint64(resp.ContentLength)
	}
	return b
}

func (b *body) Read(p []byte) (int, error) {
	if b.err == nil && b.left == 0 {
		switch b.framing {
		case byChunks:
			b.err = b.next()
		case byLength:
			b.err = io.EOF
		}
	}
	if b.err != nil {
		return 0, b.err
	}
	if b.framing != byClose {
		p = p[:min(uint64(len(p)), b.left)]
	}
	n, err := b.br.Read(p)
	if b.framing != byClose {
		b.left -= uint64(n)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}
	b.err = err
	return n, err
}

// next reads up to the data of the next chunk. Behind the last one it is io.EOF.
func (b *body) next() error {
	if b.within {
		if end, err := b.line(); err != nil {
			return err
		} else if end != "" {
			return errors.New("a chunk is longer than it says")
		}
	}
	size, err := b.line()
	if err != nil {
		return err
	}
	digits, _, _ := strings.Cut(size, ";") // an extension may follow
	digits = strings.TrimRight(digits, " \t")
	if b.left, err = strconv.ParseUint(digits, 16, 64); err != nil {
		return fmt.Errorf("malformed size of a chunk: %.40q", size)
	}
	if b.within = b.left > 0; b.within {
		return nil
	}
	for { // trailers
		if t, err := b.line(); err != nil {
			return err
		} else if t == "" {
			return io.EOF
		}
	}
}

// line reads a line of the coding.
func (b *body) line() (string, error) {
	s, err := b.br.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF):
		return "", io.ErrUnexpectedEOF
	case errors.Is(err, bufio.ErrBufferFull):
		return "", errors.New("a line of the chunked coding is too long")
	case err != nil:
		return "", err
	}
	return strings.TrimSuffix(string(s[:len(s)-1]), "\r"), nil
}

// whole reports whether the body was read to an end behind which another response
// can follow.
func (b *body) whole() bool { return errors.Is(b.err, io.EOF) && b.framing != byClose }
