package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
)

type piece struct {
	token  bool
	finish string // reason for the stop; "": none yet
	tokens int    // so far, as the server counts; 0: unknown
	fault  string // server's error; "": none
}

type chunk struct {
	Object  string `json:"object"`
	Choices []struct {
		Delta struct {
			Content          filled `json:"content"`
			ReasoningContent filled `json:"reasoning_content"` // llama.cpp, vLLM
			Reasoning        filled `json:"reasoning"`         // Ollama, gateways
			Refusal          filled `json:"refusal"`
			ToolCalls        filled `json:"tool_calls"`
		} `json:"delta"`
		Text   filled `json:"text"` // of the older completions
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		Tokens count `json:"completion_tokens"`
	} `json:"usage"`
	Error filled `json:"error"`
}

func parseChunk(data []byte) (piece, error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return piece{}, err
	}
	p := piece{tokens: int(c.Usage.Tokens)}
	if c.Error || c.Object == "error" { // vLLM
		p.fault = faultText(data)
		return p, nil
	}
	if len(c.Choices) > 0 {
		first := c.Choices[0]
		d := first.Delta
		p.token = bool(d.Content || d.ReasoningContent || d.Reasoning || d.Refusal || d.ToolCalls ||
			first.Text)
		p.finish = first.Finish
	}
	return p, nil
}

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
