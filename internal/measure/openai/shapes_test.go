package openai

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

// delta is the event of a token under a name, as JSON.
func delta(name, value string) string {
	return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{%q:%s}}]}\n\n", name, value)
}

func withHeader(line string) string { return strings.Replace(head, "\r\n", "\r\n"+line+"\r\n", 1) }

func ofType(line string) string {
	return strings.Replace(head, "Content-Type: text/event-stream\r\n", line, 1)
}

// shapes are streams of three tokens, as real servers and gateways send them. Independent clients
// count three tokens in each.
var shapes = []struct {
	name, head string
	between    string // before each token
	token      string
	end        string
	others     int
	other      string
}{
	{name: "plain"},
	{name: "comments", between: ": OPENROUTER PROCESSING\n\n"},
	{name: "ids", between: "id: 7\nretry: 3000\n\n: ping\n\n"},
	{name: "empty-data", between: "data: \n\n", others: 3, other: "data:"},
	{name: "empty-pings", between: "event: ping\ndata:\n\n", others: 3, other: "event: ping, data:"},
	{name: "comments-as-data", between: "data: : OPENROUTER PROCESSING\n\n", others: 3,
		other: "data: : OPENROUTER PROCESSING"},
	{name: "pings-of-json", between: "event: ping\ndata: {\"type\":\"ping\"}\n\n", others: 3,
		other: `event: ping, data: {"type":"ping"}`},
	{name: "pings-of-text", between: "event: ping\ndata: 2026-01-01T00:00:00Z\n\n", others: 3,
		other: "event: ping, data: 2026-01-01T00:00:00Z"},
	{name: "pings-of-strings", between: "data: \"ping\"\n\n", others: 3, other: `data: "ping"`},
	{name: "nulls", between: "data: null\n\n", others: 3, other: "data: null"},
	{name: "lists", between: "data: [1]\n\n", others: 3, other: "data: [1]"},
	{name: "long-pings", between: "data: " + strings.Repeat("x", 5000) + "\n\n", others: 3,
		other: "data: " + strings.Repeat("x", 54) + "…"},
	{name: "filters", // Azure's first event
		between: "data: {\"choices\":[],\"prompt_filter_results\":[{\"prompt_index\":0}]}\n\n"},
	{name: "reasoning_content", token: delta("reasoning_content", `"a"`)},
	{name: "reasoning", token: delta("reasoning", `"a"`)},
	{name: "reasoning_text", token: delta("reasoning_text", `"a"`)},
	{name: "reasoning_details",
		token: delta("reasoning_details", `[{"type":"reasoning.text","text":"a"}]`)},
	{name: "reasoning-summaries",
		token: delta("reasoning_details", `[{"type":"reasoning.summary","summary":"a"}]`)},
	{name: "encrypted",
		token: delta("reasoning_details", `[{"type":"reasoning.encrypted","data":"a"}]`)},
	{name: "thinking", token: delta("thinking", `"a"`)},
	{name: "function_call", token: delta("function_call", `{"arguments":"a"}`)},
	{name: "parts", token: delta("content", `[{"type":"text","text":"a"}]`)},
	{name: "thinking-parts", // Mistral
		token: delta("content", `[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]`)},
	{name: "all-so-far-beside-delta", // Perplexity
		token: `data: {"choices":[{"delta":{"content":"a"},"message":{"content":"a a"}}]}` + "\n\n",
		end: `data: {"choices":[{"finish_reason":"stop","delta":{"content":""},` +
			`"message":{"content":"a a a"}}]}` + "\n\n" + done},
	{name: "all-again-at-the-end", // MiniMax
		end: `data: {"object":"chat.completion","choices":[{"finish_reason":"stop",` +
			`"message":{"content":"a a a"}}]}` + "\n\n" + done},
	{name: "filters-without-delta", // Azure's asynchronous filter
		between: `data: {"choices":[{"index":0,"finish_reason":null,"content_filter_offsets":` +
			`{"check_offset":44},"content_filter_results":{}}]}` + "\n\n"},
	{name: "usage-in-each", // vLLM's and SGLang's continuous_usage_stats
		token: `data: {"choices":[{"delta":{"content":"a","reasoning_content":null}}],` +
			`"usage":{"completion_tokens":1}}` + "\n\n"},
	{name: "progress", // llama.cpp's return_progress
		between: `data: {"choices":[{"delta":{"role":"assistant","content":null}}],` +
			`"prompt_progress":{"total":9,"processed":3}}` + "\n\n"},
	{name: "keep-alive", between: ": keep-alive\n\n"}, // DeepSeek
	{name: "obfuscation", // OpenAI
		token: `data: {"choices":[{"delta":{"content":"a"}}],"obfuscation":"x9"}` + "\n\n"},
	{name: "thoughts", // Gemini
		token: `data: {"choices":[{"delta":{"content":"a","extra_content":{"google":` +
			`{"thought":true}}}}]}` + "\n\n"},
	{name: "audio", token: delta("audio", `{"id":"x","data":"UklG"}`),
		end: delta("audio", `{"id":"x","expires_at":1}`) + done},
	{name: "custom_tool", token: delta("tool_calls", `[{"index":0,"custom":{"input":"a"}}]`)},
	{name: "calls-without-arguments", // vLLM's first and last ones
		between: delta("tool_calls", `[{"index":0,"function":{"arguments":""}}]`)},
	{name: "marked-file", head: head + "3\r\n\xef\xbb\xbf\r\n"}, // a byte order mark
	{name: "message", token: "data: {\"choices\":[{\"message\":{\"content\":\"a\"}}]}\n\n"},
	{name: "no-type", head: ofType("")},
	{name: "json-type", head: ofType("Content-Type: application/json\r\n")},
	{name: "text-type", head: ofType("Content-Type: text/plain; charset=utf-8\r\n")},
	{name: "html-type", head: ofType("Content-Type: text/html\r\n")},
	{name: "encoding-none", head: withHeader("Content-Encoding: none")},
	{name: "encoding-empty", head: withHeader("Content-Encoding:")},
	{name: "encodings-none", head: withHeader("Content-Encoding: Identity, NONE")},
	{name: "done-and-blank", end: "data: [DONE] \n\n"},
	{name: "done-in-quotes", end: "data: \"[DONE]\"\n\n"},
	{name: "done-without-blank-line", end: "data: [DONE]\n"},
	{name: "last-token-without-blank-line", end: strings.TrimSuffix(stops, "\n")},
	{name: "blank-lines-first", between: "\r\n\r\n"},
}

func TestShapes(t *testing.T) {
	for _, tt := range shapes {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			token, end, begin := tt.token, tt.end, tt.head
			if token == "" {
				token = says("a")
			}
			if end == "" {
				end = done
			}
			if begin == "" {
				begin = head
			}
			one := tt.between + token
			raw := begin + inChunks(one, one, one, end)
			for cut, pieces := range map[string][]string{"whole": {raw}, "bytes": bytewise(raw)} {
				e := endpoint(t, "http://server", Options{Mark: func() uint32 { return 1 }})
				piped(e, pieces...)
				s := e.Open()
				r, err := s.Ask(t.Context())
				s.Close()
				if err != nil {
					t.Fatalf("%s: %v", cut, err)
				}
				for i, text := range r.Texts { // what packets show of a token
					if n := text.Len; n == 0 || i > 0 && n == r.Texts[i-1].Len {
						t.Errorf("%s: token %d has no text", cut, i)
					}
				}
				if len(r.Arrivals) != 3 || r.Others != tt.others || r.Other != tt.other {
					t.Errorf("%s: %d tokens, %d other events, the first %q, want 3, %d, %q", cut,
						len(r.Arrivals), r.Others, r.Other, tt.others, tt.other)
				}
			}
		})
	}
}

// Of two choices that come in turns, as from vLLM and llama.cpp, one is read, and the server's
// count is of both. Servers that send one may give it any index, as TGI before 1.4.4 did.
func TestChoices(t *testing.T) {
	of := func(index int, text string) string {
		return fmt.Sprintf("data: {\"choices\":[{\"index\":%d,\"delta\":{\"content\":%q}}]}\n\n", index,
			text)
	}
	const counts = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":6}}\n\n"
	for name, tt := range map[string]struct {
		body    string
		indexes [6]int
		arrive  int
		tokens  int
	}{
		"two":          {`{"n":2}`, [...]int{0, 1, 0, 1, 1, 0}, 3, 0},
		"two, by name": {`{"n_cmpl":2}`, [...]int{1, 0, 0, 1, 1, 0}, 3, 0},
		"one of six":   {`{"n":1}`, [...]int{1, 2, 3, 4, 5, 6}, 6, 6},
		"one":          {"", [...]int{1, 2, 3, 4, 5, 6}, 6, 6},
	} {
		raw := head
		for i, index := range tt.indexes {
			raw += inChunk(of(index, strings.Repeat("x", i+1)))
		}
		raw += inChunks(counts, stops, done)
		o := Options{Model: "m", Mark: func() uint32 { return 1 }}
		if tt.body != "" {
			o.Body = []byte(tt.body)
		}
		e := endpoint(t, "http://server", o)
		piped(e, raw)
		r, err := session(t, e).Ask(t.Context())
		if err != nil || len(r.Arrivals) != tt.arrive || r.Tokens != tt.tokens {
			t.Errorf("%s: %+v, %v", name, r, err)
			continue
		}
		length := 0 // of the texts of the choice that came first
		for i, index := range tt.indexes {
			if index == tt.indexes[0] || tt.arrive == len(tt.indexes) {
				length += i + 1
			}
		}
		if got := r.Texts[len(r.Texts)-1].Len; got != length {
			t.Errorf("%s: %d bytes, want %d", name, got, length)
		}
	}
}

// A choice is not complete because another one is.
func TestChoiceBreaksOff(t *testing.T) {
	for index, want := range map[int]string{0: "", 1: "ask http://server/v1/chat/completions: the server " +
		"ended its response after 1 token without saying why: neither [DONE] nor a finish_reason came"} {
		e := endpoint(t, "http://server", Options{Model: "m", Body: []byte(`{"n":2}`)})
		piped(e, head+inChunks(`data: {"choices":[{"index":0,"delta":{"content":"a"}}]}`+"\n\n",
			fmt.Sprintf("data: {\"choices\":[{\"index\":%d,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
				index)))
		if _, err := session(t, e).Ask(t.Context()); err == nil && want != "" ||
			err != nil && err.Error() != want {
			t.Errorf("choice %d finished: %v, want %q", index, err, want)
		}
	}
}

// What cannot be read is quoted.
func TestUnreadable(t *testing.T) {
	const webServer = "toll stream needs an OpenAI-compatible server; any web server: toll run " +
		"server:80 --client 'curl -so /dev/null http://{addr}/'"
	for _, tt := range []struct{ name, raw, want, hint string }{
		{"text", ofType("Content-Type: text/html\r\n") + inChunks("hello", " you"),
			"ask http://server/v1/chat/completions: the server does not stream: it answered text/html and not text/event-stream: hello you",
			webServer},
		{"web-server", "HTTP/1.1 501 No\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n<p>",
			"ask http://server/v1/chat/completions: the server answered 501 No: an HTML page", webServer},
		{"proxy", "HTTP/1.1 502 No\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n<p>",
			"ask http://server/v1/chat/completions: the server answered 502 No: an HTML page", ""},
		{"websocket",
			"HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\nws\n",
			"ask http://server/v1/chat/completions: the server answered 426 Upgrade Required: ws",
			"toll stream speaks HTTP/1.1, and not WebSocket or HTTP/2; any client: toll run server:80 " +
				"--client COMMAND"},
		{"websocket-by-its-words", // gorilla's
			"HTTP/1.1 400 Bad Request\r\nContent-Length: 70\r\n\r\n" +
				"Bad Request\nwebsocket: the client is not using the websocket protocol\n",
			"ask http://server/v1/chat/completions: the server answered 400 Bad Request: Bad Request " +
				"websocket: the client is not using the websocket protocol",
			"toll stream speaks HTTP/1.1, and not WebSocket or HTTP/2; any client: toll run server:80 " +
				"--client COMMAND"},
		{"no-path", "HTTP/1.1 404 Not Found\r\nContent-Length: 22\r\n\r\n" +
			`{"detail":"Not Found"}`, "ask http://server/v1/chat/completions: the server answered 404 Not Found: Not Found", webServer},
		{"no-model", "HTTP/1.1 404 Not Found\r\nContent-Length: 28\r\n\r\n" +
			`{"error":"no such Model: a"}`, "ask http://server/v1/chat/completions: the server answered 404 Not Found: no such Model: a", ""},
		{"html", head + inChunks("<html>busy</html>"),
			"ask http://server/v1/chat/completions: the server does not stream: it sent no events as text/event-stream: <html>busy</html>", ""},
		{"completion", head + inChunks(`{"choices":[{"message":{"content":"a"}}]}`),
			`ask http://server/v1/chat/completions: the server does not stream: it sent no events as text/event-stream: {"choices":[{"message":{"content":"a"}}]}`, "--load batch asks for whole responses"},
		{"ollama", ofType("Content-Type: application/x-ndjson\r\n") +
			inChunks("{\"done\":false}\n", "{\"done\":true}\n"),
			`ask http://server/v1/chat/completions: the server sends lines of JSON (application/x-ndjson), not events: {"done":false} {"done":true}`,
			"Ollama's OpenAI-compatible interface is at its /v1: http://server/v1"},
		{"text-events", head + inChunks("data: model overloaded\n\n"),
			"ask http://server/v1/chat/completions: the server ended its response after 0 tokens without saying why: neither [DONE] nor a finish_reason came; one of its events was no completion chunk: data: model overloaded",
			""},
		{"field", head + inChunks("busy\n\n"), "ask http://server/v1/chat/completions: the server ended its response after 0 tokens without saying why: neither [DONE] nor a finish_reason came; it sent no event, but: busy", ""},
		{"chunk", head + inChunks("data: {\"choices\":5}\n\n"),
			`ask http://server/v1/chat/completions: the server sent an event that is not a completion chunk: {"choices":5}`, ""},
		{"error-without-text", head + inChunks("event: error\ndata:\n\n"),
			"ask http://server/v1/chat/completions: the server broke off after 0 tokens: an event of the type error", ""},
		{"brotli", withHeader("Content-Encoding: br") + inChunks(done),
			"ask http://server/v1/chat/completions: the server or a gateway in front of it compresses the response with br, which was not offered", ""},
		{"envoy-cut", withHeader("Server: envoy") + inChunk(says("a")),
			"ask http://server/v1/chat/completions: the server closed the connection after 1 token, before the end of its response",
			"Envoy ends responses after the timeout of its route, 15 s if none is set, also while " +
				"tokens come: timeout: 0s there turns it off"},
		{"nginx-cut", withHeader("Server: nginx") + inChunk(says("a")),
			"ask http://server/v1/chat/completions: the server closed the connection after 1 token, before the end of its response", ""},
		{"no-gzip", withHeader("Content-Encoding: gzip") + inChunks("hello hello"), "ask http://server/v1/chat/completions: read the response after 0 tokens: gzip: invalid header", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := endpoint(t, "http://server", Options{})
			piped(e, tt.raw)
			_, err := session(t, e).Ask(t.Context())
			if err == nil || err.Error() != tt.want {
				t.Errorf("%v\nwant %q", err, tt.want)
			}
			if got := hint.Of(err); got != tt.hint {
				t.Errorf("hint %q, want %q", got, tt.hint)
			}
		})
	}
}

// gzipped returns the head and a piece for each event. Unless flush is set, the compressor holds
// all of them back until its end, which is a piece of its own.
func gzipped(t *testing.T, flush bool, events ...string) (pieces []string) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	pieces = []string{withHeader("Content-Encoding: gzip")}
	for _, ev := range events {
		if _, err := io.WriteString(z, ev); err != nil {
			t.Fatal(err)
		}
		if flush {
			z.Flush()
		}
		if b.Len() > 0 {
			pieces = append(pieces, inChunk(b.String()))
		}
		b.Reset()
	}
	z.Close()
	return append(pieces, inChunks(b.String()))
}

func TestGzip(t *testing.T) {
	for _, flush := range []bool{true, false} {
		e := endpoint(t, "http://server", Options{Compressed: true})
		piped(e, gzipped(t, flush, says("a"), says("b"), says("c"), stops)...)
		r, err := session(t, e).Ask(t.Context())
		if err != nil || len(r.Arrivals) != 3 || (r.Glued == 0) != flush {
			t.Errorf("flushed %v: %+v, %v", flush, r, err)
		}
	}
	var asked string
	unended := gzipped(t, true, says("a"), stops)
	e := endpoint(t, "http://server", Options{})
	piped(e, append(unended[:len(unended)-1], "0\r\n\r\n")...)
	if r, err := session(t, e).Ask(t.Context()); err != nil || len(r.Arrivals) != 1 {
		t.Errorf("without the coding's end: %+v, %v", r, err)
	}
	e = endpoint(t, listen(t, talk(func(c net.Conn, _ int, r *http.Request) bool {
		asked = r.Header.Get("Accept-Encoding")
		io.WriteString(c, strings.Join(gzipped(t, true, says("a"), stops, done), ""))
		return true
	}).serve), Options{Compressed: true, Model: "m"})
	f, err := e.Probe(t.Context())
	if err != nil || f.Coding != "gzip" || asked != "gzip" {
		t.Errorf("%+v, asked for %q, %v", f, asked, err)
	}
}

// A response that compresses well is bounded by what comes out of it.
func TestGzipBomb(t *testing.T) {
	e := endpoint(t, "http://server", Options{})
	e.mostBytes = 1 << 20
	piped(e, gzipped(t, false, strings.Repeat(": x\n", 1<<20), done)...)
	_, err := session(t, e).Ask(t.Context())
	const want = "the response is longer than 1 MiB without its compression"
	if err == nil || err.Error() != "ask http://server/v1/chat/completions: read the response after 0 "+
		"tokens: "+want {
		t.Error(err)
	}
	piped(e, gzipped(t, false, strings.Repeat(" ", 4<<20))...)
	if _, err = session(t, e).AskWhole(t.Context()); err == nil ||
		err.Error() != "ask http://server/v1/chat/completions: "+want {
		t.Errorf("in one piece: %v", err)
	}
}

// Each member is read before the next one has come, as of a server that compresses each event.
func TestGzipMembers(t *testing.T) {
	member := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, text)
		z.Close()
		return b.String()
	}
	from, to := io.Pipe()
	g := &gunzip{from: bufio.NewReader(from), left: 100, most: 100}
	for _, tt := range [][2]string{{member("first"), "first"},
		{member("") + member("second"), "second"}} {
		go io.WriteString(to, tt[0])
		got := make([]byte, 9)
		if n, err := g.Read(got); err != nil || string(got[:n]) != tt[1] {
			t.Fatalf("%q, %v, want %q", got[:n], err, tt[1])
		}
	}
	to.Close()
	if rest, err := io.ReadAll(g); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

func FuzzGunzip(f *testing.F) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, strings.Repeat("a", 5000))
	z.Close()
	f.Add(b.Bytes(), 100)
	f.Add(append(b.Bytes(), b.Bytes()...), 10_000)
	f.Fuzz(func(t *testing.T, in []byte, most int) {
		most = max(0, min(most, 1<<16))
		want, wantErr := []byte(nil), error(nil)
		if z, err := gzip.NewReader(bytes.NewReader(in)); err == nil {
			want, wantErr = io.ReadAll(io.LimitReader(z, int64(most)+1))
		} else if !errors.Is(err, io.EOF) { // nothing is an empty text
			wantErr = err
		}
		got, err := io.ReadAll(&gunzip{from: bufio.NewReader(iotest.OneByteReader(
			bytes.NewReader(in))), left: most, most: most})
		if len(got) > most || !bytes.HasPrefix(want, got) {
			t.Fatalf("%d bytes, at most %d, want the front of %d", len(got), most, len(want))
		}
		if err == nil && (wantErr != nil || len(got) != len(want)) {
			t.Fatalf("%d bytes of %d without error, want %v", len(got), len(want), wantErr)
		}
	})
}

func refuses(status int, text string, when func(members map[string]any) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var members map[string]any
		if json.NewDecoder(r.Body).Decode(&members) != nil || when(members) {
			w.WriteHeader(status)
			io.WriteString(w, text)
			return
		}
		if members["stream"] == true {
			io.WriteString(w, says("a")+stops+done)
		} else {
			io.WriteString(w, `{"choices":[{"message":{"content":"a"}}]}`)
		}
	}
}

// Servers refuse members of a request in their own ways. The request does without them, or with
// their successors, on every route once.
func TestRefusedMembers(t *testing.T) {
	has := func(names ...string) func(map[string]any) bool {
		return func(members map[string]any) bool {
			for _, n := range names {
				if _, ok := members[n]; ok {
					return true
				}
			}
			return false
		}
	}
	for _, tt := range []struct {
		name   string
		status int
		text   string
		when   func(map[string]any) bool
		want   string
	}{
		{"mistral", 422,
			`{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options","include_usage"],"msg":"Extra inputs are not permitted","input":true}]}}`,
			has("stream_options"), "without stream_options"},
		{"mistral-seed", 422,
			`{"detail":[{"loc":["body","seed"],"msg":"Extra inputs are not permitted","input":{"temperature":0}}]}`,
			has("seed"), "without seed"},
		{"gpt-5", 400,
			`{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens"}}`,
			has("max_tokens"), "with max_completion_tokens instead of max_tokens"},
		{"gpt-5-temperature", 400,
			`{"error":{"message":"Unsupported value: 'temperature' does not support 0","param":"temperature"}}`,
			has("temperature"), "without temperature"},
		{"words", 400, `unknown field "seed"`, has("seed"), "without seed"},
		{"several", 422, `{"detail":[{"loc":["body","seed"]},{"loc":["body","stream_options"]}]}`,
			has("seed", "stream_options"), "without seed, without stream_options"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			server := serveHTTP(t, refuses(tt.status, tt.text, func(m map[string]any) bool {
				asked++
				return tt.when(m)
			}))
			e := endpoint(t, server, Options{Model: "m"})
			if _, err := e.Probe(t.Context()); err != nil || e.Changes() != tt.want || asked != 2 {
				t.Fatalf("%v, %q, asked %d times", err, e.Changes(), asked)
			}
			if _, err := e.ProbeWhole(t.Context()); err != nil {
				t.Errorf("in one piece: %v", err)
			}
			if _, err := session(t, e).Ask(t.Context()); err != nil || asked != 4 {
				t.Errorf("%v, asked %d times", err, asked)
			}
		})
	}
	// What the server still refuses, or refuses for another reason, is an error.
	for _, tt := range []struct {
		status int
		text   string
		asked  int
	}{{400, "no seed, no max_tokens", 2}, {400, "the prompt is too long", 1}, {401, "seed", 1},
		{500, "seed", 1}} {
		asked := 0
		server := serveHTTP(t, refuses(tt.status, tt.text, func(map[string]any) bool {
			asked++
			return true
		}))
		e := endpoint(t, server, Options{Model: "m"})
		want := fmt.Sprintf("%sthe server answered %d %s: %s", asking, tt.status,
			http.StatusText(tt.status), tt.text)
		if _, err := e.Probe(t.Context()); err == nil || testgolden.Stable(err.Error()) != want ||
			asked != tt.asked {
			t.Errorf("%v, want %q; asked %d times", err, want, asked)
		}
	}
}

func FuzzRefusedMembers(f *testing.F) {
	f.Add([]byte(`{"detail":[{"loc":["body",["seed"]]}]}`))
	f.Add([]byte("max_tokens"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, name := range refusedMembers(text) {
			if _, ok := optional[name]; !ok {
				t.Errorf("%q", name)
			}
		}
	})
}

func TestOwnBody(t *testing.T) {
	var got []string
	server := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = append(got, string(b))
		refuses(400, "", func(map[string]any) bool { return false })(w,
			&http.Request{Body: io.NopCloser(bytes.NewReader(b))})
	})
	e := endpoint(t, server, Options{Body: json.RawMessage(
		`{"messages":[],"max_tokens":9,"n":12345678901234567890,"stream":7,"stream_options":{"x":1},"model":"q"}`)})
	_, err := e.Probe(t.Context())
	_, wholeErr := e.ProbeWhole(t.Context())
	if err != nil || wholeErr != nil || e.o.MaxTokens != 9 {
		t.Fatalf("%v, %v, %+v", err, wholeErr, e.o)
	}
	for i, want := range []string{
		`{"max_tokens":9,"messages":[],"model":"q","n":12345678901234567890,"stream":true,"stream_options":{"x":1}}`,
		`{"max_tokens":9,"messages":[],"model":"q","n":12345678901234567890,"stream":false}`} {
		if got[i] != want {
			t.Errorf("sent %s\nwant %s", got[i], want)
		}
	}
	e = endpoint(t, server, Options{Body: json.RawMessage(`{"model":"q"}`), Model: "mine"})
	if _, err := e.Probe(t.Context()); err != nil || got[2] != `{"model":"mine","stream":true}` {
		t.Errorf("%v: sent %s", err, got[2])
	}
	for _, bad := range []string{"", "null", "[]", `"a"`, "{", `{"a":1}{}`} {
		if _, err := New("http://h", Options{Body: json.RawMessage(bad)}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// Responses in one piece come in these shapes.
func TestWholeShapes(t *testing.T) {
	const answer = `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"completion_tokens":3}}`
	for name, raw := range map[string]string{
		"json":               answered(answer, ""),
		"blank-lines-first":  head + inChunks("\n", "\n", answer),
		"byte-order-mark":    answered("\xef\xbb\xbf"+answer, ""),
		"as-events":          head + inChunks(answer),
		"one-event":          head + inChunks("data: "+answer+"\n\n", done),
		"comments-and-event": head + inChunks(": wait\n\n", "data: "+answer+"\n\n"),
		"json-and-done":      head + inChunks(answer+"\n\n"+done),
		"no-type":            ofType("") + inChunks(answer),
	} {
		e := endpoint(t, "http://server", Options{})
		piped(e, raw)
		if r, err := session(t, e).AskWhole(t.Context()); err != nil || r.Tokens != 3 ||
			r.Finish != "stop" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	for name, body := range map[string]string{
		"stream":    says("a") + stops + done,
		"one-delta": says("a"),
		"lines":     `{"done":false}` + "\n" + `{"done":true}`,
		"messages":  "data: " + answer + "\n\ndata: " + answer + "\n\n",
	} {
		if _, err := answerIn([]byte(body)); !errors.Is(err, errStreams) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, text := range []string{`{"choices":[{"text":"a"}]}`, says("a"), "data: {}\n\n" + done,
		`{"error":5}data:[DONE]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := answerIn(b)
		if err == nil && c.Choices == nil && !bool(c.Error) && bytes.HasPrefix(b, []byte("data")) {
			t.Errorf("%q: %+v", b, c)
		}
	})
}

// A server without HTTP/1.1 is named, with another client to measure it by.
func TestOnlyHTTP2(t *testing.T) {
	e := endpoint(t, "http://server", Options{Model: "m"})
	piped(e, "\x00\x00\x12\x04\x00\x00\x00\x00\x00", "\x00\x03\x00\x00\x00\x80")
	_, plain := session(t, e).Ask(t.Context())
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	// crypto/tls forgives a client of HTTP/1.1 if the server has h2, unlike other servers
	only := &tls.Config{Certificates: server.TLS.Certificates, NextProtos: []string{"h2-only"}}
	_, secure := session(t, endpoint(t, strings.Replace(listen(t, func(c net.Conn) {
		tls.Server(c, only).Handshake()
		c.Close()
	}), "http:", "https:", 1), Options{Model: "m"})).Ask(t.Context())
	for _, tt := range []struct {
		err            error
		url, host, how string
	}{
		{plain, "http://server", "server:80", "--http2-prior-knowledge"},
		{secure, "https://127.0.0.1:PORT", "127.0.0.1:PORT", "--http2"},
	} {
		wantsOnlyHTTP2(t, tt.err, tt.url+"/v1/chat/completions", tt.host, tt.how)
	}
}

func wantsOnlyHTTP2(t *testing.T, err error, url, host, how string) {
	t.Helper()
	if err == nil || testgolden.Stable(err.Error()) != "ask "+url+
		": the server speaks HTTP/2 only, and toll HTTP/1.1" ||
		testgolden.Stable(hint.Of(err)) != "let it accept HTTP/1.1, or measure with another "+
			"client, "+
			"of gRPC with one of its own: toll run "+host+" --client 'curl -sNo /dev/null "+how+" "+
			url+"'" {
		t.Errorf("%v; hint: %s", err, hint.Of(err))
	}
}

// A real server of HTTP/2 without TLS, which clients of HTTP/2 get answers from, is named.
func TestServerOfHTTP2(t *testing.T) {
	served := 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served++
		io.WriteString(w, says("a")+done)
	}))
	only := &http.Protocols{}
	only.SetUnencryptedHTTP2(true)
	s.Config.Protocols = only
	s.Start()
	defer s.Close()
	client := http.Client{Transport: &http.Transport{Protocols: only}}
	r, err := client.Get(s.URL)
	if err != nil || r.ProtoMajor != 2 {
		t.Fatalf("a client of HTTP/2: %v", err)
	}
	r.Body.Close()
	_, err = endpoint(t, s.URL, Options{}).Probe(t.Context())
	wantsOnlyHTTP2(t, err, "http://127.0.0.1:PORT/v1/chat/completions", "127.0.0.1:PORT",
		"--http2-prior-knowledge")
	if served != 1 {
		t.Errorf("%d served", served)
	}
	for said, want := range map[string]string{"": asking + "the server closed the connection without a response",
		"-ERR hello\r\n": asking + "read the response: malformed HTTP status code \"hello\""} {
		other := listen(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 64<<10))
			_, _ = io.WriteString(c, said)
			c.Close()
		})
		_, err = endpoint(t, other, Options{Model: "m"}).Probe(t.Context())
		if err == nil || testgolden.Stable(err.Error()) != want ||
			!strings.HasSuffix(hint.Of(err), needsHTTP) ||
			said == "" && hint.Of(err) != "if the server speaks TLS, its URL begins with https://; toll stream needs an HTTP server; toll ports PORT shows which program listens on a port" {
			t.Errorf("a server that says %q: %v, want %q and a hint", said, err, want)
		}
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	_, err = endpoint(t, strings.Replace(plain.URL, "http:", "https:", 1),
		Options{}).Probe(t.Context())
	if err == nil || !strings.HasSuffix(hint.Of(err), "begins with http://") {
		t.Errorf("a server without TLS: %v, want a hint", err)
	}
}

// A server of WebSocket may answer a GET only, as Python's websockets does.
func TestServerOfWebSocket(t *testing.T) {
	server := listen(t, func(c net.Conn) {
		defer c.Close()
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil && r.Method == http.MethodGet {
			_, _ = io.WriteString(c, "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\n"+
				"Connection: close\r\n\r\nmissing Connection header")
		}
	})
	for _, model := range []string{"", "m"} {
		_, err := endpoint(t, server, Options{Model: model}).Probe(t.Context())
		if err == nil || testgolden.Stable(err.Error()) != asking+
			"the server answered 426 Upgrade Required: missing Connection header" {
			t.Errorf("%v", err)
		}
		if got, want := testgolden.Stable(hint.Of(err)),
			"toll stream speaks HTTP/1.1, and not WebSocket or HTTP/2; any client: toll run "+
				"127.0.0.1:PORT --client COMMAND"; got != want {
			t.Errorf("hint %q, want %q", got, want)
		}
	}
}

// A response that drips without end is ended, in one piece and after the tokens that were asked
// for.
func TestEndlessDrips(t *testing.T) {
	drip := func(before, every string) string {
		return listen(t, talk(func(c net.Conn, _ int, _ *http.Request) bool {
			io.WriteString(c, before)
			for {
				if _, err := io.WriteString(c, every); err != nil {
					return false
				}
				time.Sleep(time.Millisecond)
			}
		}).serve)
	}
	const timeout = 400 * time.Millisecond
	o := Options{Model: "m", Timeout: timeout, MaxTokens: 4}
	_, err := session(t, endpoint(t, drip(head, inChunk(says("a"))), o)).Ask(t.Context())
	came := regexp.MustCompile(`\d+ (tokens|bytes) came$`)
	if err == nil || came.ReplaceAllString(testgolden.Stable(err.Error()), "N came") != asking+
		"the response did not end within 400ms after the 4 tokens that were asked for: N came" {
		t.Error(err)
	}
	_, err = session(t, endpoint(t, drip("HTTP/1.1 200 OK\r\n\r\n{", " "), o)).AskWhole(
		t.Context())
	if err == nil || came.ReplaceAllString(testgolden.Stable(err.Error()), "N came") != asking+
		"the response did not end within 400ms: N came" {
		t.Error(err)
	}
}
