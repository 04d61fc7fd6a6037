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
		"two choices": {[]string{`{"choices":[{"index":1,"delta":{"role":"assistant","content":""}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"one "}}]}`,
			`{"choices":[{"index":1,"delta":{"content":"un "}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"two "}},{"index":1,"delta":{"content":"deux"}}]}`,
			`{"choices":[{"index":1,"delta":{"content":"trois"}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"three"}}]}`}, 3},
		"two choices at once": {[]string{
			`{"choices":[{"index":0,"delta":{"content":""}},{"index":1,"delta":{"content":"one "}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"un "}},{"index":1,"delta":{"content":"two "}}]}`,
			`{"choices":[{"index":1,"delta":{"content":"three"}},{"index":0,"delta":{"content":"deux"}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"trois"}},{"index":1,"delta":{}}]}`}, 3},
	} {
		if got, said := textOf(tt.events...); got != whole || said != tt.said {
			t.Errorf("%s: %+v of %d events, want %+v", name, got, said, whole)
		}
	}
	other, _ := textOf(delta + `"one two thre3"}}]}`)
	if other.Len != whole.Len || other.Hash == whole.Hash || whole.Len != 13 {
		t.Errorf("%+v and %+v", whole, other)
	}
	for name, events := range map[string][]string{
		"Ollama's chat": {`{"model":"m","message":{"role":"assistant","content":"","thinking":"one two "},"done":false}`,
			`{"model":"m","message":{"role":"assistant","content":"three"},"done":false}`,
			`{"model":"m","message":{"role":"assistant","content":""},"done":true,"eval_count":2}`},
		"Ollama's generate": {`{"model":"m","response":"one two ","done":false}`,
			`{"model":"m","response":"three","done":false}`, `{"response":"","done":true,"context":[1]}`},
		"Anthropic's messages": {`{"type":"message_start","message":{"content":[],"usage":{"input_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"ping"}`, `{"type":"content_block_delta","delta":{"type":"text_delta","text":"one two "}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"three"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`,
			`{"type":"message_stop"}`},
		"Anthropic's call": {`{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"one "}}`,
			`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"two three"}}`},
		"OpenAI's responses": {`{"type":"response.created","response":{"id":"r","output":[]}}`,
			`{"type":"response.output_item.added","item":{"type":"message","content":[]}}`,
			`{"type":"response.reasoning_text.delta","item_id":"m","delta":"one two "}`,
			`{"type":"response.reasoning_text.done","item_id":"m","text":"one two "}`,
			`{"type":"response.output_text.delta","item_id":"m","delta":"three"}`,
			`{"type":"response.output_text.done","text":"one two three"}`,
			`{"type":"response.completed","response":{"output":[{"content":[{"text":"one two three"}]}]}}`},
		"a call in OpenAI's responses": {`{"type":"response.output_item.added","item":{"type":"function_call","name":"one "}}`,
			`{"type":"response.function_call_arguments.delta","delta":"two three"}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","name":"one ","arguments":"two three"}}`},
		"a custom call in OpenAI's responses": {
			`{"type":"response.output_item.added","item":{"type":"custom_tool_call","name":"one "}}`,
			`{"type":"response.custom_tool_call_input.delta","delta":"two three"}`},
		"Gemini": {`{"candidates":[{"content":{"parts":[{"text":"one ","thought":true},{"text":"two "}]}}]}`,
			`{"candidates":[{"content":{"parts":[{"text":"un"}]},"index":1}]}`,
			`{"candidates":[{"content":{"parts":[{"text":"three"}]},"finishReason":"STOP"}],"usageMetadata":{}}`},
		"LM Studio's chat": {`{"type":"reasoning.start"}`,
			`{"type":"reasoning.delta","content":"one two "}`,
			`{"type":"message.delta","content":"three"}`, `{"type":"message.end"}`,
			`{"type":"chat.end","result":{"output":[{"type":"message","content":"three"}]}}`},
		"llama.cpp's completion": {`{"index":0,"content":"one two ","tokens":[],"stop":false}`,
			`{"index":0,"content":"three","stop":false}`, `{"content":"","stop":true,"timings":{}}`},
		"TGI's": {`{"index":1,"token":{"id":5,"text":"one two ","special":false},"generated_text":null}`,
			`{"index":2,"token":{"id":6,"text":"three","special":false}}`,
			`{"index":3,"token":{"id":2,"text":"</s>","special":true},"generated_text":"one two three"}`},
	} {
		if got, said := textOf(events...); got != whole || said != 2 {
			t.Errorf("%s: %+v of %d events, want %+v", name, got, said, whole)
		}
	}
	if empty, said := textOf("", "{", `{"choices":[{"delta":{"tool_calls":7}}]}`); empty != (Text{}) ||
		said != 0 {
		t.Errorf("%+v", empty)
	}
	if _, said := textOf(`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]}`); said != 1 {
		t.Error("a call of a tool is no text")
	}
}
