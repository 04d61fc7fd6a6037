package openai

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// parser parses the events of a stream. Most differ from the one before in one string only, the
// text: those it need not decode. The zero value is ready.
type parser struct {
	before, after []byte // of an event, around its text
	like          piece  // what it brings
	known         bool   // another text there brings the same with that text
	unused        int    // events that were learned and had no successor like them
	decoded       int    // events that were decoded
}

const (
	// mostUnused is the number of learned events without a successor like them after which only
	// each seldom-th decoded one is learned: a stream may begin with others than it goes on with.
	mostUnused = 3
	seldom     = 32
)

// parse returns what an event brings, as parseChunk does. Once a choice is read, it is always that.
func (p *parser) parse(data []byte, read int) (piece, error) {
	if p.known && len(data) > len(p.before)+len(p.after) && bytes.HasPrefix(data, p.before) &&
		bytes.HasSuffix(data, p.after) {
		if text := data[len(p.before) : len(data)-len(p.after)]; literal(text) {
			p.unused = 0
			out := p.like
			out.text = string(text)
			return out, nil
		}
	}
	out, err := parseChunk(data, read)
	p.decoded++
	if err == nil && (p.unused < mostUnused || p.decoded%seldom == 0) {
		p.learn(data, out, read)
	}
	return out, err
}

// learn notes what is around the text of an event, if it is one string and all else is the same
// with another string there.
func (p *parser) learn(data []byte, x piece, read int) {
	i := bytes.Index(data, []byte(`"`+x.text+`"`)) + 1
	if x.text == "" || i == 0 || !literal([]byte(x.text)) {
		return
	}
	p.before = append(p.before[:0], data[:i]...)
	p.after = append(p.after[:0], data[i+len(x.text):]...)
	p.unused++
	other := x
	other.text += "."
	got, err := parseChunk(slices.Concat(p.before, []byte(other.text), p.after), read)
	p.like, p.known = x, err == nil && got == other
}

// literal reports whether bytes stand for themselves in a string of JSON.
func literal(b []byte) bool {
	ascii := true
	for _, c := range b {
		if c < ' ' || c == '"' || c == '\\' {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.Valid(b)
}
