package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

var chunks = []struct {
	name, data string
	want       piece
}{
	{"content", `{"choices":[{"delta":{"content":"a"}}]}`, piece{text: "a"}},
	{"space", `{"choices":[{"delta":{"content":" "}}]}`, piece{text: " "}},
	{"role", `{"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
		piece{}},
	{"null", `{"choices":[{"delta":{"role":"assistant","content":null}}]}`, piece{}},
	{"no-delta", `{"choices":[{"delta":null,"finish_reason":"stop"}]}`, piece{finish: "stop"}},
	{"reasoning-content", `{"choices":[{"delta":{"content":null,"reasoning_content":"a"}}]}`,
		piece{text: "a"}},
	{"reasoning", `{"choices":[{"delta":{"content":"","reasoning":"a"}}]}`, piece{text: "a"}},
	{"tool", `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}`,
		piece{text: "{"}},
	{"no-tools", `{"choices":[{"delta":{"tool_calls":[ ]}}]}`, piece{}},
	{"parts", `{"choices":[{"delta":{"content":[{"type":"text","text":"a"}]}}]}`,
		piece{text: "a"}},
	{"text", `{"choices":[{"text":"a","finish_reason":"length"}]}`,
		piece{text: "a", finish: "length"}},
	{"usage", `{"choices":[],"usage":{"completion_tokens":5}}`, piece{tokens: 5}},
	{"usage-null", `{"choices":[{"delta":{"content":"a"}}],"usage":null}`, piece{text: "a"}},
	{"usage-odd", `{"choices":[],"usage":{"completion_tokens":"many"}}`, piece{}},
	{"usage-impossible", `{"choices":[],"usage":{"completion_tokens":-1}}`, piece{}},
	{"no-arguments", `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]}}]}`,
		piece{}},
	{"custom-tool", `{"choices":[{"delta":{"tool_calls":[{"index":0,"type":"custom",` +
		`"custom":{"name":"a","input":"b"}}]}}]}`, piece{text: "ab"}},
	{"arguments-as-object",
		`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"a","arguments":{"b":1}}}]}}]}`,
		piece{text: `a{"b":1}`}},
	{"audio", `{"choices":[{"delta":{"audio":{"id":"x","data":"UklG"}}}]}`, piece{text: "UklG"}},
	{"transcript", `{"choices":[{"delta":{"audio":{"transcript":"a"}}}]}`, piece{text: "a"}},
	{"end-of-audio", `{"choices":[{"delta":{"audio":{"id":"x","expires_at":1}}}]}`, piece{}},
	{"image", `{"choices":[{"delta":{"images":[{"type":"image_url","image_url":{"url":"data:"}}]}}]}`,
		piece{text: "data:"}},
	{"signature", `{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text",` +
		`"signature":"x"}]}}]}`, piece{}},
	{"annotations", `{"choices":[{"delta":{"annotations":[{"type":"url_citation"}]}}]}`, piece{}},
	{"second-choice", `{"choices":[{"index":1,"delta":{"content":"a"}}]}`,
		piece{text: "a", choice: 1}},
	{"only-a-second-choice", `{"choices":[{"delta":{}},{"delta":{"content":"a"}}]}`,
		piece{text: "a", choice: 1}},
	{"two-choices", `{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":` +
		`{"content":"b"},"finish_reason":"stop"}]}`, piece{text: "a"}},
	{"nothing", `{}`, piece{other: true}},
	{"empty", "", piece{other: true}},
	{"blank", " \r\n", piece{other: true}},
	{"list", "[]", piece{other: true}},
	{"string", `"a"`, piece{other: true}},
	{"number", "5", piece{other: true}},
	{"null-event", "null", piece{other: true}},
	{"ping", `{"type":"ping"}`, piece{other: true}},
	{"choices-null", `{"choices":null,"usage":{"completion_tokens":2}}`, piece{tokens: 2}},
	{"message", `{"choices":[{"delta":{},"message":{"content":"a"}}]}`,
		piece{text: "a", whole: true}},
	{"groq", `{"choices":[{"delta":{}}],"x_groq":{"usage":{"completion_tokens":24}}}`,
		piece{tokens: 24}},
	{"error", `{"error":{"message":"oh"}}`, piece{fault: "oh"}},
	{"error-null", `{"error":null,"choices":[{"delta":{"content":"a"}}]}`, piece{text: "a"}},
	{"error-number", `{"error":5}`, piece{fault: "5"}},
	{"error-object", `{"error":{"code":5}}`, piece{fault: `{"code":5}`}},
	{"object-error", `{"object":"error","message":"oh"}`, piece{fault: "oh"}},
}

func TestChunks(t *testing.T) {
	for _, tt := range chunks {
		got, err := parseChunk([]byte(tt.data), -1)
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
	for _, bad := range []string{"{", `{"choices":{}}`, `{"choices":[5]}`, `{}{}`} {
		if p, err := parseChunk([]byte(bad), -1); err == nil {
			t.Errorf("%s: %+v", bad, p)
		}
	}
}

func FuzzChunk(f *testing.F) {
	for _, tt := range chunks {
		f.Add([]byte(tt.data))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseChunk(b, -1)
		if err != nil && p != (piece{}) {
			t.Errorf("%+v beside %v", p, err)
		}
		if p.tokens < 0 || p.tokens > maxTokens {
			t.Errorf("%d tokens", p.tokens)
		}
		if p.fault != "" && (p.text != "" || p.finish != "") || p.other && p != (piece{other: true}) {
			t.Errorf("%+v", p)
		}
		faultText(b)
	})
}

// FuzzBody compares the chunked coding with the standard library's, which is the stricter one.
func FuzzBody(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\n\r\n"))
	f.Add([]byte("5;a=b\r\nhello\r\n1 \r\nx\r\n0\r\nA: b\r\n\r\nrest"))
	f.Fuzz(func(t *testing.T, b []byte) {
		want, stdErr := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(b)))
		ours := newBody(bufio.NewReader(bytes.NewReader(b)),
			&http.Response{TransferEncoding: []string{"chunked"}}, maxBody, printable.Line)
		got, err := io.ReadAll(ours)
		if len(got) > len(b) {
			t.Fatalf("%d bytes out of %d", len(got), len(b))
		}
		// The library's reader leaves the trailers alone.
		if stdErr == nil && (!bytes.Equal(got, want) ||
			err != nil && !errors.Is(err, io.ErrUnexpectedEOF)) {
			t.Fatalf("%q, %v, want %q", got, err, want)
		}
	})
}
