package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
)

type piece struct {
	token  bool
	text   string // of the token
	whole  bool   // the token is of a message, which has all so far if there were deltas
	finish string // reason for the stop; "": none yet
	tokens int    // so far, as the server counts; 0: unknown
	fault  string // server's error; "": none
	other  bool   // an event that is no part of a response, such as a ping
}

type chunk struct {
	Object  string   `json:"object"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage"`
	Groq    struct {
		Usage *usage `json:"usage"`
	} `json:"x_groq"`
	Error filled `json:"error"`
}

type choice struct {
	Delta   *said  `json:"delta"`
	Message *said  `json:"message"` // of a response in one piece; some servers stream it
	Text    texts  `json:"text"`    // of the older completions
	Finish  string `json:"finish_reason"`
}

// said has what a model says, under the names that servers give it.
type said struct {
	Content          texts `json:"content"`
	ReasoningContent texts `json:"reasoning_content"` // llama.cpp, vLLM
	Reasoning        texts `json:"reasoning"`         // Ollama, gateways
	ReasoningText    texts `json:"reasoning_text"`
	ReasoningDetails texts `json:"reasoning_details"` // OpenRouter
	Thinking         texts `json:"thinking"`
	Refusal          texts `json:"refusal"`
	ToolCalls        calls `json:"tool_calls"`
	FunctionCall     calls `json:"function_call"`
}

type usage struct {
	Tokens count `json:"completion_tokens"`
}

func (d *said) something() bool {
	return d != nil && bool(d.Content.filled || d.ReasoningContent.filled || d.Reasoning.filled ||
		d.ReasoningText.filled || d.ReasoningDetails.filled || d.Thinking.filled ||
		d.Refusal.filled || d.ToolCalls.filled || d.FunctionCall.filled)
}

// text returns what is said. A server that says the same under two names is read once.
func (d *said) text() string {
	if d == nil {
		return ""
	}
	reasoning := cmp.Or(d.ReasoningContent.text, d.Reasoning.text, d.ReasoningText.text,
		d.Thinking.text, d.ReasoningDetails.text)
	return reasoning + d.Content.text + d.Refusal.text + d.ToolCalls.text + d.FunctionCall.text
}

func (c choice) something() bool {
	return bool(c.Text.filled) || c.Delta.something() || c.whole()
}

// whole reports whether only a message brings something.
func (c choice) whole() bool {
	return !bool(c.Text.filled) && !c.Delta.something() && c.Message.something()
}

// text returns what a choice brings. Some servers repeat all so far in a message beside the delta.
func (c choice) text() string {
	if c.whole() {
		return c.Message.text()
	}
	return c.Text.text + c.Delta.text()
}

func (u *usage) tokens() int {
	if u == nil {
		return 0
	}
	return int(u.Tokens)
}

// parseChunk returns what an event brings. It fails for data that begins like a chunk and is none.
func parseChunk(data []byte) (piece, error) {
	if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '{' {
		return piece{other: true}, nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return piece{}, err
	}
	p := piece{tokens: cmp.Or(c.Usage.tokens(), c.Groq.Usage.tokens())}
	switch {
	case bool(c.Error) || c.Object == "error": // vLLM
		p.fault = faultText(data)
	case len(c.Choices) > 0:
		first := c.Choices[0]
		p.token, p.text, p.finish = first.something(), first.text(), first.Finish
		p.whole = first.whole()
	case c.Choices == nil && c.Usage == nil:
		p.other = true
	}
	return p, nil
}

// ends reports whether data is the mark at the end of a stream.
func ends(data []byte) bool { return string(bytes.Trim(data, " \t\"'")) == "[DONE]" }

// filled is true for a JSON member that is not empty. With some servers the members are lists.
type filled bool

func (f *filled) UnmarshalJSON(b []byte) error {
	if len(b) > 1 && (b[0] == '[' || b[0] == '{') {
		*f = len(bytes.TrimSpace(b[1:len(b)-1])) > 0
		return nil
	}
	switch string(b) {
	case "null", "false", `""`:
		*f = false
	default:
		*f = true
	}
	return nil
}

// texts is a JSON member with a text: a string, or the texts in a list of parts.
type texts struct {
	filled
	text string
}

func (t *texts) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &t.text) != nil {
		var parts []struct {
			Text     string `json:"text"`
			Summary  string `json:"summary"`  // OpenRouter
			Data     string `json:"data"`     // OpenRouter, encrypted
			Thinking texts  `json:"thinking"` // Mistral
		}
		if json.Unmarshal(b, &parts) == nil {
			for _, p := range parts {
				t.text += p.Text + p.Summary + p.Data + p.Thinking.text
			}
		}
	}
	return t.filled.UnmarshalJSON(b)
}

// calls is a JSON member with calls of tools, or of one function, whose text is their names and
// arguments.
type calls struct {
	filled
	text string
}

type function struct {
	Name      texts `json:"name"`
	Arguments texts `json:"arguments"`
}

func (f *function) text() string { return f.Name.text + f.Arguments.text }

func (c *calls) UnmarshalJSON(b []byte) error {
	var all []struct {
		Function function `json:"function"`
	}
	var one function
	if json.Unmarshal(b, &all) == nil {
		for _, call := range all {
			c.text += call.Function.text()
		}
	} else if json.Unmarshal(b, &one) == nil {
		c.text = one.text()
	}
	return c.filled.UnmarshalJSON(b)
}

// count is a number of tokens. Anything else in JSON counts as 0.
type count int

func (c *count) UnmarshalJSON(b []byte) error {
	n, err := strconv.Atoi(string(b))
	if err != nil || n < 0 || n > maxTokens {
		n = 0
	}
	*c = count(n)
	return nil
}

func faultText(b []byte) string {
	var members struct {
		Error   json.RawMessage `json:"error"`
		Detail  json.RawMessage `json:"detail"`
		Message json.RawMessage `json:"message"`
	}
	if json.Unmarshal(b, &members) == nil {
		for _, m := range []json.RawMessage{members.Error, members.Detail, members.Message} {
			if t := memberText(m); t != "" {
				return t
			}
		}
	}
	return canonical(b)
}

// memberText returns the text of a string or of an object's message, and the JSON of anything else
// that is not empty.
func memberText(m json.RawMessage) string {
	var has filled
	if len(m) == 0 || has.UnmarshalJSON(m) != nil || !bool(has) {
		return ""
	}
	var s string
	if json.Unmarshal(m, &s) == nil {
		return s
	}
	var o struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(m, &o) == nil && o.Message != "" {
		return o.Message
	}
	return canonical(m)
}

func canonical(b []byte) string {
	var v any
	if json.Unmarshal(b, &v) != nil {
		return ""
	}
	out, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(out)
}
