package openai

import "testing"

func textOf(events ...string) (t Text, said int) {
	var r Reader
	for _, e := range events {
		if r.Add([]byte(e)) {
			said++
		}
	}
	return r.Text, said
}

func TestText(t *testing.T) {
	const delta = `{"choices":[{"delta":{"content":`
	whole, _ := textOf(delta + `"one two three"}}]}`)
	for name, tt := range map[string]struct {
		events []string
		said   int
	}{
		"divided":       {[]string{delta + `"one"}}]}`, delta + `" two th"}}]}`, delta + `"ree"}}]}`}, 3},
		"another shape": {[]string{`{"id":"x","choices":[{"delta":{"role":"assistant","content":"one two "}}]}`, delta + `[{"type":"text","text":"three"}]}}]}`}, 2},
		"completions":   {[]string{`{"choices":[{"text":"one two three"}]}`}, 1},
		"with others": {[]string{`{"choices":[]}`, `: ping`, `[DONE]`, delta + `""}}]}`, delta + `null}}]}`,
			`{"choices":[{"message":{"content":"one two three"}}]}`, `{"choices":[{"delta":{"content":{"x":1}}}]}`}, 1},
		"all so far beside": {[]string{`{"choices":[{"delta":{"content":"one two "},"message":{"content":"one two "}}]}`,
			`{"choices":[{"delta":{"content":"three"},"message":{"content":"one two three"}}]}`,
			`{"choices":[{"delta":{},"message":{"content":"one two three"}}]}`}, 2},
		"reasoning, twice": {[]string{`{"choices":[{"delta":{"reasoning":"one two ","reasoning_content":"one two "}}]}`,
			delta + `"three"}}]}`}, 2},
	} {
		if got, said := textOf(tt.events...); got != whole || said != tt.said {
			t.Errorf("%s: %+v of %d events, want %+v", name, got, said, whole)
		}
	}
	other, _ := textOf(delta + `"one two thre3"}}]}`)
	if other.Len != whole.Len || other.Hash == whole.Hash || whole.Len != 13 {
		t.Errorf("%+v and %+v", whole, other)
	}
	if empty, said := textOf("", "{", `{"choices":[{"delta":{"tool_calls":7}}]}`); empty != (Text{}) ||
		said != 0 {
		t.Errorf("%+v", empty)
	}
	if _, said := textOf(`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]}`); said != 1 {
		t.Error("a call of a tool is no text")
	}
}
