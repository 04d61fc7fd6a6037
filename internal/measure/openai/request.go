package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type ask struct {
	Model     string    `json:"model"`
	Messages  []message `json:"messages,omitempty"`
	Prompt    string    `json:"prompt,omitempty"`
	MaxTokens int       `json:"max_tokens,omitempty"`
	Newer     int       `json:"max_completion_tokens,omitempty"`
	// no randomness, and a seed, for the same response each time, as far as possible
	Temperature *int           `json:"temperature,omitempty"`
	Seed        int            `json:"seed,omitempty"`
	Stream      bool           `json:"stream"`
	Options     *streamOptions `json:"stream_options,omitempty"` // refused without a stream
}

// optional lists the members of a request that servers refuse, each with the one that replaces it,
// or "". Each name is a word of the answers that refuse it.
var optional = map[string]string{"stream_options": "", "temperature": "", "seed": "",
	"max_tokens": "max_completion_tokens"}

// mark returns the mark of the next request, 0 for none.
func (e *Endpoint) mark() uint32 {
	if e.o.Mark == nil {
		return 0
	}
	return e.o.Mark()
}

func (e *Endpoint) ask(tokens int, stream bool, mark uint32) ([]byte, error) {
	if e.o.Body != nil {
		return e.own(stream)
	}
	a := ask{Model: e.model(), MaxTokens: tokens, Temperature: new(int),
		Seed: max(1, int(mark)), Stream: stream}
	if stream {
		a.Options = &streamOptions{true}
	}
	if e.legacy {
		a.Prompt = e.o.Prompt
	} else {
		a.Messages = []message{{"user", e.o.Prompt}}
	}
	for _, name := range e.without {
		switch name {
		case "stream_options":
			a.Options = nil
		case "temperature":
			a.Temperature = nil
		case "seed":
			a.Seed = 0
		case "max_tokens":
			a.MaxTokens, a.Newer = 0, tokens
		}
	}
	return json.Marshal(a)
}

func (e *Endpoint) model() string {
	if e.o.Model == "" {
		return defaultModel
	}
	return e.o.Model
}

// own returns the caller's body with the model and stream.
func (e *Endpoint) own(stream bool) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(e.o.Body, &members); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for name, value := range members {
		out[name] = value
	}
	if out["model"], out["stream"] = e.model(), stream; !stream {
		delete(out, "stream_options") // refused without a stream
	}
	return json.Marshal(out)
}

// CheckBody returns the model and the most tokens that a request's body asks for, "" and 0 if it
// says nothing of them. It fails unless the body is a JSON object.
func CheckBody(body []byte) (model string, tokens int, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return "", 0, fmt.Errorf("is no JSON object: %w", err)
	}
	if members == nil {
		return "", 0, errors.New("is no JSON object")
	}
	_ = json.Unmarshal(members["model"], &model)
	for _, name := range []string{"max_tokens", optional["max_tokens"]} {
		var n count
		if raw := members[name]; raw != nil {
			_ = n.UnmarshalJSON(raw)
		}
		tokens = max(tokens, int(n))
	}
	return model, tokens, nil
}

// Several reports whether a request's body asks for several choices.
func Several(body []byte) bool {
	var n struct {
		N    count `json:"n"`
		Cmpl count `json:"n_cmpl"` // llama.cpp
	}
	_ = json.Unmarshal(body, &n)
	return max(n.N, n.Cmpl) > 1
}

func (e *Endpoint) chatRequest(tokens int, stream bool, mark uint32) ([]byte, error) {
	body, err := e.ask(tokens, stream, mark)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, e.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	kind := plainJSON
	if stream {
		kind = eventStream
	}
	req.Header.Set("Accept", kind)
	req.Header.Set("Content-Type", plainJSON)
	if mark != 0 {
		req.Header.Set("X-Request-Id", fmt.Sprintf("toll-%d", mark))
	}
	return e.render(req)
}

func (e *Endpoint) render(req *http.Request) ([]byte, error) {
	req.Header.Set("User-Agent", "toll")
	offer := "identity" // a server that compresses a stream holds its events back
	if e.o.Compressed {
		offer = "gzip"
	}
	req.Header.Set("Accept-Encoding", offer)
	if e.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+e.o.Key)
	}
	var b bytes.Buffer
	err := req.Write(&b)
	return b.Bytes(), err
}

var memberName = regexp.MustCompile(`[a-z_]+`)

// refusedMembers returns the members of a request that the text of an answer refuses. It prefers
// the places in which answers name a member to words of their messages.
func refusedMembers(text []byte) []string {
	var named []string
	var v any
	if json.Unmarshal(text, &v) == nil {
		named = namedIn(v, false)
	}
	if len(named) == 0 {
		named = memberName.FindAllString(string(text), -1)
	}
	named = slices.DeleteFunc(named, func(s string) bool { _, ok := optional[s]; return !ok })
	slices.Sort(named)
	return slices.Compact(named)
}

// namedIn returns the strings of the members param and loc.
func namedIn(v any, place bool) (out []string) {
	switch v := v.(type) {
	case string:
		if _, ok := optional[v]; place && ok {
			return []string{v}
		}
	case []any:
		for _, x := range v {
			out = append(out, namedIn(x, place)...)
		}
	case map[string]any:
		for name, x := range v {
			out = append(out, namedIn(x, name == "param" || name == "loc")...)
		}
	}
	return out
}

// leaveOut makes later requests do without the members that err says the server refuses. It
// reports whether that changes the request.
func (e *Endpoint) leaveOut(err error) bool {
	var refused *StatusError
	if !errors.As(err, &refused) || e.o.Body != nil {
		return false
	}
	changed := false
	for _, name := range refused.members {
		if !slices.Contains(e.without, name) {
			e.without, changed = append(e.without, name), true
		}
	}
	return changed
}

// Changes describes how requests differ from the usual ones since the server refused them: "": they
// do not.
func (e *Endpoint) Changes() string {
	var out []string
	for _, name := range e.without {
		text := "without " + name
		if instead := optional[name]; instead != "" {
			text = "with " + instead + " instead of " + name
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}
