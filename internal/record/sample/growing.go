package sample

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Growing reads a results file while it is written. Not for concurrent use.
type Growing struct {
	file  File
	seen  bool
	lines int
	cut   []byte // incomplete line
	torn  error  // why the incomplete last line was ignored; nil: it was not
}

// NewGrowing returns an empty file.
func NewGrowing() *Growing {
	return &Growing{file: File{Truncated: true, End: End{Reason: EndedCutShort}}}
}

var errTooLong = fmt.Errorf("longer than %d MiB", maxLine>>20)

// Write parses the lines that end in b. After a *syntaxError, the records of earlier lines remain
// valid.
func (g *Growing) Write(b []byte) (int, error) {
	n := len(b)
	for {
		end := bytes.IndexByte(b, '\n')
		if len(g.cut)+max(end, 0) > maxLine || end < 0 && len(g.cut)+len(b) > maxLine {
			return 0, &syntaxError{g.lines + 1, errTooLong}
		}
		if end < 0 {
			g.cut = append(g.cut, b...)
			return n, nil
		}
		whole := b[:end]
		if len(g.cut) > 0 {
			g.cut = append(g.cut, whole...)
			whole = g.cut
		}
		err := g.line(bytes.TrimSuffix(whole, []byte{'\r'}))
		g.cut, b = g.cut[:0], b[end+1:]
		if err != nil {
			return 0, err
		}
	}
}

func (g *Growing) line(b []byte) error {
	g.lines++
	switch {
	case len(b) == 0:
		return nil
	case !g.file.Truncated:
		return &syntaxError{g.lines, errors.New("a record after the end")}
	}
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		if err = (&syntaxError{g.lines, err}); !g.seen {
			err = fmt.Errorf("%w (%w)", ErrEmpty, err)
		}
		return err
	}
	if !printable.Plain(b) { // text of files is made printable here only
		printable.Fields(&l)
	}
	err := g.file.add(l, &g.seen)
	if err == nil || errors.Is(err, ErrEmpty) {
		return err
	}
	return &syntaxError{g.lines, err}
}

func (g *Growing) end() error {
	if len(g.cut) > 0 && g.file.Truncated && !json.Valid(g.cut) {
		g.torn = &syntaxError{g.lines + 1, errors.New("it was cut off")}
		return nil
	}
	return g.line(bytes.TrimSuffix(g.cut, []byte{'\r'}))
}

// File returns what has been read so far, unaffected by later writes, or ErrEmpty before the
// header.
func (g *Growing) File() (*File, error) {
	switch {
	case !g.seen && g.torn != nil:
		return nil, fmt.Errorf("%w (%w)", ErrEmpty, g.torn)
	case !g.seen:
		return nil, ErrEmpty
	}
	f := g.file
	switch {
	case !f.Truncated:
	case f.Header.Plan.Mesh != nil:
		f.End.Rounds, f.End.Sweeps = f.completeMesh()
	default:
		f.End.Rounds = f.completeRounds()
	}
	return &f, nil
}
