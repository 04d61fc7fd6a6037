package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
)

type piece struct {
	text   string // of the token; "": there is none
	whole  bool   // the text is of a message, which has all so far if there were deltas
	choice int    // of which text and finish are
	finish string // reason for the stop; "": none yet
	tokens int    // so far, of all choices, as the server counts; 0: unknown
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
	Index   count  `json:"index"`
	Delta   *said  `json:"delta"`
	Message *said  `json:"message"` // of a response in one piece; some servers stream it
	Text    texts  `json:"text"`    // of the older completions
	Finish  string `json:"finish_reason"`
}

// said has what a model says, under the names that servers give it.
type said struct {
	Content          texts `json:"content"`
	ReasoningContent texts `json:"reasoning_content"` // llama.cpp, SGLang
	Reasoning        texts `json:"reasoning"`         // vLLM, Ollama, gateways
	ReasoningText    texts `json:"reasoning_text"`
	ReasoningDetails texts `json:"reasoning_details"` // OpenRouter
	Thinking         texts `json:"thinking"`
	Refusal          texts `json:"refusal"`
	Audio            texts `json:"audio"`
	Images           texts `json:"images"`
	ToolCalls        calls `json:"tool_calls"`
	FunctionCall     calls `json:"function_call"`
}

type usage struct {
	Tokens count `json:"completion_tokens"`
}

// text returns what is said. A server that says the same under two names is read once.
func (d *said) text() string {
	if d == nil {
		return ""
	}
	return string(cmp.Or(d.ReasoningContent, d.Reasoning, d.ReasoningText, d.Thinking,
		d.ReasoningDetails)+d.Content+d.Refusal+d.Audio+d.Images) +
		string(d.ToolCalls+d.FunctionCall)
}

// text returns what a choice brings, and whether it is a whole message's. Some servers repeat all
// so far in a message beside the delta.
func (c choice) text() (text string, whole bool) {
	if text = string(c.Text) + c.Delta.text(); text != "" {
		return text, false
	}
	text = c.Message.text()
	return text, text != ""
}

func (u *usage) tokens() int {
	if u == nil {
		return 0
	}
	return int(u.Tokens)
}

// said sets what a choice brings: the one that is read or, without it, the first with a text.
func (p *piece) said(all []choice, read int) {
	for i, c := range all {
		text, whole := c.text()
		at := max(int(c.Index), i)
		if at != read && i > 0 && (p.text != "" || text == "") {
			continue
		}
		p.text, p.whole, p.finish, p.choice = text, whole, c.Finish, at
		if at == read {
			return
		}
	}
}

// parseChunk returns what an event brings, of several choices that which is read; -1: any. It fails
// for data that begins like a chunk and is none.
func parseChunk(data []byte, read int) (piece, error) {
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
		p.said(c.Choices, read)
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

// texts is a JSON member with a text: a string, a number, a part with a text, or a list of parts.
type texts string

type part struct {
	Text       texts `json:"text"`
	Summary    texts `json:"summary"`  // OpenRouter
	Data       texts `json:"data"`     // of audio; OpenRouter's, encrypted
	Thinking   texts `json:"thinking"` // Mistral
	Transcript texts `json:"transcript"`
	Image      texts `json:"image_url"`
	URL        texts `json:"url"`
}

func (t *texts) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*string)(t)) == nil {
		return nil
	}
	var parts []part
	switch {
	case b[0] == '{':
		parts = make([]part, 1)
		_ = json.Unmarshal(b, &parts[0]) // without what is of another type
	case b[0] == '[':
		_ = json.Unmarshal(b, &parts)
	case b[0] == '-' || b[0] >= '0' && b[0] <= '9':
		*t = texts(b)
	}
	for _, p := range parts {
		*t += p.Text + p.Summary + p.Data + p.Thinking + p.Transcript + p.Image + p.URL
	}
	return nil
}

// calls is a JSON member with calls of tools, or of one function: their names and arguments.
type calls string

type call struct {
	function
	Function function `json:"function"`
	Custom   function `json:"custom"`
}

type function struct {
	Name      texts     `json:"name"`
	Arguments arguments `json:"arguments"`
	Input     arguments `json:"input"` // of a custom tool
}

// arguments are a string, or any other JSON.
type arguments string

func (a *arguments) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*string)(a)) != nil {
		*a = arguments(b)
	}
	return nil
}

func (f *function) text() calls { return calls(f.Name) + calls(f.Arguments+f.Input) }

func (c *calls) UnmarshalJSON(b []byte) error {
	var all []call
	if b[0] == '{' {
		all = make([]call, 1)
		_ = json.Unmarshal(b, &all[0])
	} else {
		_ = json.Unmarshal(b, &all)
	}
	for _, x := range all {
		*c += x.text() + x.Function.text() + x.Custom.text()
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
