package openai

import (
	"fmt"
	"testing"
)

// Events like one before are parsed without decoding them, to the same.
func TestParser(t *testing.T) {
	const vllm = `{"id":"c","object":"chat.completion.chunk","created":%d,"choices":[{"index":0,` +
		`"delta":{"content":"%s"},"finish_reason":null}]}`
	with := func(created int, text string) string { return fmt.Sprintf(vllm, created, text) }
	for name, tt := range map[string]struct {
		events []string
		known  bool // after the first
	}{
		"alike":        {[]string{with(1, "one"), with(1, " two"), with(1, "\u00e9")}, true},
		"another time": {[]string{with(1, "one"), with(2, "two"), with(2, "three")}, true},
		"escapes": {[]string{with(1, "one"), with(1, `\n`), with(1, `\"`), with(1, `\u00e9`)},
			true},
		"no text":       {[]string{with(1, "one"), with(1, ""), with(1, "two")}, true},
		"not UTF-8":     {[]string{with(1, "one"), with(1, "\xff"), with(1, "\xc3")}, true},
		"control":       {[]string{with(1, "one"), with(1, "\n")}, true},
		"an end inside": {[]string{with(1, "one"), with(1, `two"},"finish_reason":"stop`)}, true},
		"cut": {[]string{with(1, "one"), with(1, "two")[:60],
			with(1, "two")[60:]}, true},
		"text before": {[]string{`{"x":"a","choices":[{"delta":{"content":"a"}}]}`,
			`{"x":"b","choices":[{"delta":{"content":"a"}}]}`}, false},
		"text twice": {[]string{`{"choices":[{"delta":{"content":"a"},"logprobs":{"token":"a"}}]}`,
			`{"choices":[{"delta":{"content":"b"},"logprobs":{"token":"b"}}]}`}, true},
		"reasoning and text": {[]string{`{"choices":[{"delta":{"content":"a","reasoning":"a"}}]}`,
			`{"choices":[{"delta":{"content":"b","reasoning":"a"}}]}`}, false},
		"finish": {[]string{`{"choices":[{"finish_reason":"stop","delta":{"content":"stop"}}]}`,
			`{"choices":[{"finish_reason":"x","delta":{"content":"stop"}}]}`}, false},
		"the last of two counts": {[]string{`{"choices":[{"delta":{"content":"a","content":"a"}}]}`,
			`{"choices":[{"delta":{"content":"b","content":"a"}}]}`}, false},
		"arguments": {[]string{`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"a"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"b"}}]}}]}`}, true},
		"fault": {[]string{with(1, "one"), `{"error":{"message":"oh"}}`}, true},
	} {
		var p parser
		for i, e := range tt.events {
			want, errWant := parseChunk([]byte(e), -1)
			got, err := p.parse([]byte(e), -1)
			if got != want || (err == nil) != (errWant == nil) {
				t.Errorf("%s: %s: %+v, %v, want %+v, %v", name, e, got, err, want, errWant)
			}
			if i == 0 && p.known != tt.known {
				t.Errorf("%s: known: %v", name, p.known)
			}
		}
	}
}

// Of events that all differ, few are parsed twice.
func TestParserGivesUp(t *testing.T) {
	var p parser
	for i := range 10 {
		if _, err := p.parse(fmt.Appendf(nil, odd, i), -1); err != nil {
			t.Fatal(err)
		}
	}
	if p.unused != mostUnused || string(p.before) != `{"id":2,"choices":[{"delta":{"content":"` {
		t.Errorf("%+v", p)
	}
}

const odd = `{"id":%d,"choices":[{"delta":{"content":"a"}}]}`

// A stream that begins with events that all differ may go on with events that are alike.
func TestParserLearnsLater(t *testing.T) {
	var p parser
	for i := range 10 * seldom {
		if _, err := p.parse(fmt.Appendf(nil, odd, min(i, 2*mostUnused)), -1); err != nil {
			t.Fatal(err)
		}
	}
	if p.decoded != seldom {
		t.Errorf("%d events were decoded", p.decoded)
	}
}

func FuzzParser(f *testing.F) {
	for i, tt := range chunks {
		f.Add([]byte(tt.data), []byte(chunks[(i+1)%len(chunks)].data))
	}
	f.Add([]byte(`{"choices":[{"delta":{"content":"a"}}]}`),
		[]byte(`{"choices":[{"delta":{"content":"b"}}]}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var p parser
		_, _ = p.parse(a, -1)
		got, err := p.parse(b, -1)
		want, errWant := parseChunk(b, -1)
		if got != want || (err == nil) != (errWant == nil) {
			t.Errorf("%+v, %v, want %+v, %v", got, err, want, errWant)
		}
	})
}
