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
		Content struct {
			Parts texts `json:"parts"`
		} `json:"content"`
	} `json:"candidates"` // of Gemini

	Content texts `json:"content"` // of llama.cpp's completion
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

// nativeText returns the text that an event of a server's own interface brings, or "".
func nativeText(data []byte) (text string) {
	var n native
	_ = json.Unmarshal(data, &n) // without what is of another type
	switch {
	case n.Type == "content_block_start":
		return n.Block.Name
	case n.Type == "response.output_item.added":
		return n.Item.Name
	case n.Type != "":
		return string(n.Delta)
	case len(n.Candidates) > 0:
		return n.Candidates[0].Content.Parts.text
	case n.Token.Text != "" && !n.Token.Special:
		return n.Token.Text
	}
	return n.Thinking.text + n.Response.text + n.Message.text() + n.Content.text
}
