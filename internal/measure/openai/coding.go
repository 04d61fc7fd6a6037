package openai

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Coding returns the names of content codings, or "" if the values of a Content-Encoding, joined by
// commas, mean none.
func Coding(values string) string {
	var names []string
	for name := range strings.SplitSeq(values, ",") {
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case "", "identity", "none":
		case "x-gzip":
			names = append(names, "gzip")
		default:
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func (a *answer) coding() string {
	return Coding(strings.Join(a.Header.Values("Content-Encoding"), ","))
}

// content returns a reader of the body without its coding.
func (s *Session) content(a *answer) (io.Reader, error) {
	switch enc := a.coding(); enc {
	case "":
		return a.body, nil
	case "gzip":
		return &gunzip{from: bufio.NewReader(a.body), left: s.e.mostBytes, most: s.e.mostBytes,
			whole: a.body.whole}, nil
	default:
		return nil, fmt.Errorf(
			"the server or a gateway in front of it compresses the response with %s, which was not offered",
			s.e.secrets.clean(enc))
	}
}

// gunzip returns what the compressor has flushed as soon as it has come, and the rest when it
// flushes again, fills its window or ends. The end of a member (RFC 1952, 2.2), which each event
// may be, is one, too: gzip.Reader by itself would wait for the next member's header.
type gunzip struct {
	from       *bufio.Reader
	z          gzip.Reader
	within     bool        // a member has begun, and not ended
	left, most int         // bytes that may still come out, and at first
	whole      func() bool // whether from has ended; nil: unknown
}

func (g *gunzip) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil && len(p) > 0 {
		n, err = g.read(p)
	}
	return n, err
}

// read returns 0 and nil at the end of a member without further text.
func (g *gunzip) read(p []byte) (n int, err error) {
	if !g.within {
		if err = g.z.Reset(g.from); err != nil {
			return 0, err
		}
		g.z.Multistream(false)
		g.within = true
	}
	if g.left == 0 {
		return 0, fmt.Errorf("the response is longer than %d MiB without its compression",
			g.most>>20)
	}
	n, err = g.z.Read(p[:min(len(p), g.left)])
	g.left -= n
	if errors.Is(err, io.EOF) {
		g.within = false
		return n, nil
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && g.whole != nil && g.whole() {
		err = io.EOF // clients do not miss the end of the coding
	}
	return n, err
}
