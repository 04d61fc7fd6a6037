package openai

import "encoding/json"

// native is an event of a server's own interface, by which a gateway may ask it.
type native struct {
	Message  *said `json:"message"`  // of Ollama's chat
	Response texts `json:"response"` // of its generate
	Thinking texts `json:"thinking"`

	Type  string      `json:"type"` // of Anthropic's messages and OpenAI's responses
	Delta nativeDelta `json:"delta"`
	Block called      `json:"content_block"`
	Item  called      `json:"item"`

	Candidates []struct {
		Index   count `json:"index"`
		Content struct {
			Parts texts `json:"parts"`
		} `json:"content"`
	} `json:"candidates"` // of Gemini

	Content texts `json:"content"` // of llama.cpp's completion and LM Studio's chat
	Token   struct {
		Text    string `json:"text"`
		Special bool   `json:"special"`
	} `json:"token"` // of TGI's generate_stream
}

// called is a call of a tool that begins.
type called struct {
	Name string `json:"name"`
}

// nativeDelta is a text, or an object that has one.
type nativeDelta string

func (d *nativeDelta) UnmarshalJSON(b []byte) error {
	var o struct {
		Text      string `json:"text"`
		Thinking  string `json:"thinking"`
		Arguments string `json:"partial_json"`
	}
	if json.Unmarshal(b, (*string)(d)) != nil {
		_ = json.Unmarshal(b, &o) // without what is of another type
		*d = nativeDelta(o.Text + o.Thinking + o.Arguments)
	}
	return nil
}

// nativeText returns the text that an event of a server's own interface brings, or "", and of which
// choice that is.
func nativeText(data []byte) (text string, choice int) {
	var n native
	_ = json.Unmarshal(data, &n) // without what is of another type
	switch {
	case n.Type == "content_block_start":
		return n.Block.Name, 0
	case n.Type == "response.output_item.added":
		return n.Item.Name, 0
	case n.Type == "message.delta", n.Type == "reasoning.delta": // of LM Studio's chat
		return string(n.Content), 0
	case n.Type != "":
		return string(n.Delta), 0
	case len(n.Candidates) > 0:
		first := n.Candidates[0]
		return string(first.Content.Parts), int(first.Index)
	case n.Token.Text != "" && !n.Token.Special:
		return n.Token.Text, 0
	}
	return string(n.Thinking+n.Response) + n.Message.text() + string(n.Content), 0
}
