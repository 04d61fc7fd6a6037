package openai

// Text stands for the text of a response up to an event. Two with the same length and hash are of
// the same text, however that was divided among events.
type Text struct {
	Len  int // bytes
	Hash uint64
}

// Add appends the text that an event of a stream brings. It reports whether there was any.
func (t *Text) Add(data []byte) bool {
	p, err := parseChunk(data)
	if err != nil || p.text == "" {
		return false
	}
	t.add(p.text)
	return true
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
