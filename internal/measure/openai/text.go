package openai

// Text stands for the text of a response up to an event. Two with the same length and hash are of
// the same text, however that was divided among events.
type Text struct {
	Len  int // bytes
	Hash uint64
}

// add continues an FNV-1a hash.
func (t *Text) add(s string) {
	const offset, prime = 14695981039346656037, 1099511628211
	if t.Len == 0 {
		t.Hash = offset
	}
	for i := range len(s) {
		t.Hash = (t.Hash ^ uint64(s[i])) * prime
	}
	t.Len += len(s)
}

// Reader reads the text of a response, event by event.
type Reader struct {
	Text
	parser parser
	deltas bool // a whole message repeats what came
}

// Add appends the text that an event of a stream brings, also of another interface than OpenAI's.
// It reports whether there was any.
func (r *Reader) Add(data []byte) bool {
	p, err := r.parser.parse(data)
	if err == nil && p.other {
		p.text = nativeText(data)
	}
	if err != nil || p.text == "" || !r.new(p) {
		return false
	}
	r.add(p.text)
	return true
}

// new reports whether a piece with a token brings something, and is no message at the end that
// repeats what came in deltas, as of MiniMax and Perplexity.
func (r *Reader) new(p piece) bool {
	if p.whole {
		return !r.deltas
	}
	r.deltas = true
	return true
}
