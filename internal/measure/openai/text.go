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

// Reader reads the text of a response, event by event. Of several choices, which come in turns, it
// reads the one that begins.
type Reader struct {
	Text
	parser parser
	one    bool // there is one choice, whatever its index: that of the token with old servers
	begun  bool
	choice int  // that is read
	deltas bool // a whole message repeats what came
}

// NewReader returns a reader of responses with one choice, or several.
func NewReader(several bool) Reader { return Reader{one: !several} }

// Add appends the text that an event of a stream brings, also of another interface than OpenAI's.
// It reports whether there was any.
func (r *Reader) Add(data []byte) bool {
	p, err := r.parser.parse(data, r.read())
	if err == nil && p.other {
		p.text, p.choice = nativeText(data)
	}
	if err != nil || p.text == "" || !r.new(p) {
		return false
	}
	r.add(p.text)
	return true
}

// read returns the choice that is read; -1: the next with a text.
func (r *Reader) read() int {
	if r.one || !r.begun {
		return -1
	}
	return r.choice
}

// new reports whether a piece with a text is of the choice that is read, and is no message at the
// end that repeats what came in deltas, as of MiniMax and Perplexity.
func (r *Reader) new(p piece) bool {
	if !r.begun {
		r.begun, r.choice = true, p.choice
	}
	switch {
	case p.choice != r.choice && !r.one:
		return false
	case p.whole:
		return !r.deltas
	}
	r.deltas = true
	return true
}
