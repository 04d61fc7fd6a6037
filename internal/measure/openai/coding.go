package openai

import (
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
		return &gunzip{from: a.body, left: s.e.mostBytes, most: s.e.mostBytes,
			whole: a.body.whole}, nil
	default:
		return nil, fmt.Errorf(
			"the server or a gateway in front of it compresses the response with %s, which was not offered",
			s.e.secrets.clean(enc))
	}
}

// gunzip returns what the compressor has flushed as soon as it has come, and the rest when it
// flushes again, fills its window or ends.
type gunzip struct {
	from       io.Reader
	z          *gzip.Reader // nil until the first Read
	left, most int          // bytes that may still come out, and at first
	whole      func() bool  // whether from has ended; nil: unknown
}

func (g *gunzip) Read(p []byte) (n int, err error) {
	if g.z == nil {
		if g.z, err = gzip.NewReader(g.from); err != nil {
			g.z = nil
			return 0, err
		}
	}
	if g.left == 0 {
		return 0, fmt.Errorf("the response is longer than %d MiB without its compression",
			g.most>>20)
	}
	n, err = g.z.Read(p[:min(len(p), g.left)])
	g.left -= n
	if errors.Is(err, io.ErrUnexpectedEOF) && g.whole != nil && g.whole() {
		err = io.EOF // clients do not miss the end of the coding
	}
	return n, err
}
