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

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// body reads a response's body, and decodes it if it is chunked (RFC 9112, 7.1). A Read does not
// wait for the rest of its chunk.
type body struct {
	br      *bufio.Reader
	framing framing
	left    uint64              // bytes of the chunk, or of the body
	most    uint64              // bytes that may come
	within  bool                // inside a chunk
	broken  string              // incomplete part of the coding; "": none
	clean   func(string) string // makes the server's text fit for errors
	err     error               // io.EOF if it is whole
}

const (
	chunkSize  = "size of a chunk"
	chunkEnd   = "end of a chunk"
	trailers   = "trailers"
	maxTrailer = maxHead
)

type framing int

const (
	byChunks framing = iota
	byLength
	byClose // the connection's end
)

func newBody(br *bufio.Reader, resp *http.Response, most int, clean func(string) string) *body {
	b := &body{br: br, framing: byClose, most: uint64(most), clean: clean}
	switch {
	case slices.Contains(resp.TransferEncoding, "chunked"):
		b.framing = byChunks
	case resp.ContentLength >= 0:
		b.framing, b.left = byLength, uint64(resp.ContentLength)
		b.err = b.bearable("a response", strconv.FormatUint(b.left, 10)+" bytes")
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

func (b *body) bearable(what, size string) error {
	if b.left <= b.most {
		return nil
	}
	return fmt.Errorf("the server announces %s of %s; the limit is %d MiB", what, size,
		b.most>>20)
}

func (b *body) next() error {
	if b.within {
		if end, err := b.line(chunkEnd); err != nil {
			return err
		} else if end != "" {
			return errors.New("a chunk is longer than it says")
		}
	}
	size, err := b.line(chunkSize)
	if err != nil {
		return err
	}
	const most = 40                        // characters in errors
	digits, _, _ := strings.Cut(size, ";") // an extension may follow
	digits = strings.TrimRight(digits, " \t")
	b.left, err = strconv.ParseUint(digits, 16, 64) // the maximum, if it overflows
	over := errors.Is(err, strconv.ErrRange)
	if err != nil && !over {
		return fmt.Errorf("malformed size of a chunk: \"%s\"", b.clean(printable.Start(size, most)))
	}
	size = fmt.Sprintf("%#x bytes", b.left)
	if over {
		size += " or more"
	}
	if err := b.bearable("a chunk", size); err != nil {
		return err
	}
	if b.within = b.left > 0; b.within {
		return nil
	}
	for n := 0; ; {
		t, err := b.line(trailers)
		if err != nil {
			return err
		}
		if t == "" {
			return io.EOF
		}
		if n += len(t); n > maxTrailer {
			return fmt.Errorf("the trailers of the response are longer than %d KiB", maxTrailer>>10)
		}
	}
}

func (b *body) line(part string) (string, error) {
	s, err := b.br.ReadSlice('\n')
	if err != nil && (len(s) > 0 || part == trailers) {
		b.broken = part
	}
	switch {
	case errors.Is(err, io.EOF):
		return "", io.ErrUnexpectedEOF
	case errors.Is(err, bufio.ErrBufferFull):
		return "", fmt.Errorf("the line with the %s is longer than %d KiB", part, b.br.Size()>>10)
	case err != nil:
		return "", err
	}
	return strings.TrimSuffix(string(s[:len(s)-1]), "\r"), nil
}

// whole reports whether another response can follow.
func (b *body) whole() bool { return errors.Is(b.err, io.EOF) && b.framing != byClose }
