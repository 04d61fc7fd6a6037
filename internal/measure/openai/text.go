package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
)

// Text stands for the text of a response up to an event. Two with the same length and hash are of
// the same text, however that was divided among events.
type Text struct {
	Len  int // bytes
	Hash uint64
}

// Add appends the text that an event of a stream brings. It reports whether there was any.
func (t *Text) Add(data []byte) bool {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return false
	}
	var c struct {
		Choices []struct {
			Delta   saying `json:"delta"`
			Message saying `json:"message"`
			Text    text   `json:"text"`
		} `json:"choices"`
	}
	if json.Unmarshal(data, &c) != nil || len(c.Choices) == 0 {
		return false
	}
	before := t.Len
	first := c.Choices[0]
	t.add(string(first.Text) + first.Delta.all() + first.Message.all())
	return t.Len > before
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

// saying has the texts of the members that said has.
type saying struct {
	Content          text `json:"content"`
	ReasoningContent text `json:"reasoning_content"`
	Reasoning        text `json:"reasoning"`
	ReasoningText    text `json:"reasoning_text"`
	Thinking         text `json:"thinking"`
	Refusal          text `json:"refusal"`
	ToolCalls        []struct {
		Function struct {
			Name      text `json:"name"`
			Arguments text `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// all returns the texts as one. A server that says the same under two names is read once.
func (w saying) all() string {
	var b strings.Builder
	b.WriteString(string(cmp.Or(w.ReasoningContent, w.Reasoning, w.ReasoningText, w.Thinking)))
	b.WriteString(string(w.Content) + string(w.Refusal))
	for _, c := range w.ToolCalls {
		b.WriteString(string(c.Function.Name) + string(c.Function.Arguments))
	}
	return b.String()
}

// text is a string, or the texts in a list of parts. Any other JSON is no text.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = text(s)
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(b, &parts) == nil {
		for _, p := range parts {
			*t += text(p.Text)
		}
	}
	return nil
}
