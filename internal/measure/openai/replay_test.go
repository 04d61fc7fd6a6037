package openai

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
)

// Files of testdata are what servers sent, from the status line to the last byte. Those named
// shape-… have the shape of a server's; test/llm/record recorded the others. Each is in one of
// these tables.

var responses = []struct {
	file   string
	tokens int // events with content
	usage  int // tokens as the server counts them
	finish string
}{
	{"llama-cpp-python-chat-no-usage.http", 24, 0, "length"},
	{"llama-cpp-python-chat-one.http", 1, 0, "length"},
	{"llama-cpp-python-chat-utf8.http", 20, 0, "stop"},
	{"llama-cpp-python-chat.http", 24, 0, "length"}, // it ignores include_usage
	{"llama-cpp-python-completion.http", 24, 0, "length"},
	{"llama.cpp-chat-no-usage.http", 24, 0, "length"},
	{"llama.cpp-chat-one.http", 1, 1, "length"},
	{"llama.cpp-chat-utf8.http", 22, 30, "stop"}, // an emoji is several tokens, and one event
	{"llama.cpp-chat.http", 24, 24, "length"},
	{"llama.cpp-completion.http", 24, 24, "length"},
	{"shape-completions.http", 8, 0, "length"},
	{"shape-gateway.http", 9, 0, "stop"},
	{"shape-llama-cpp-python.http", 8, 0, "stop"},
	{"shape-llama.cpp-reasoning.http", 9, 0, "stop"},
	{"shape-llama.cpp.http", 8, 9, "length"},
	{"shape-ollama.http", 8, 9, "stop"},
	{"shape-vllm.http", 8, 8, "length"},
}

var refusals = map[string]string{
	"llama-cpp-python-chat-whole.http": "the server does not stream: it answered " +
		"application/json and not " +
		"text/event-stream: " +
		`{"choices":[{"finish_reason":"length","index":0,"logprobs":null,"message":{"content":"The ` +
		"answer to this question lies in the intricate dance of light and color. The human " +
		"eye is designed to perceive …",
	"llama-cpp-python-error-json.http":  "the server answered 500 Internal Server Error: Internal Server Error",
	"llama-cpp-python-error-route.http": "the server answered 404 Not Found: Not Found",
	// It fails after a successful head, and sends nothing else.
	"llama-cpp-python-error-too-long.http": "the server ended its response after 0 tokens without saying why: neither [DONE] " +
		"nor a finish_reason came",
	"llama.cpp-chat-whole.http": "the server does not stream: it answered application/json and " +
		"not " +
		"text/event-stream: " +
		`{"choices":[{"finish_reason":"length","index":0,"message":{"content":"The answer ` +
		"to this question lies in the intricate dance of light and color. The sky appears " +
		`blue because of a phenomenon known","r…`,
	"llama.cpp-error-json.http": "the server answered 400 Bad Request: " +
		"[json.exception.parse_error.101] parse error " +
		"at line 1, column 13: syntax error while parsing value - unexpected end of input; " +
		"expected '[', '{', or a literal",
	"llama.cpp-error-route.http": "the server answered 404 Not Found: File Not Found",
	"llama.cpp-error-too-long.http": "the server answered 400 Bad Request: request (1231 " +
		"tokens) exceeds the available " +
		"context size (1024 tokens), try increasing it",
}

var lists = map[string]string{
	"llama-cpp-python-models.http": "smollm2-135m",
	"llama.cpp-models.http":        "smollm2-135m",
}

func TestEveryFileIsReplayed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.http")
	if err != nil {
		t.Fatal(err)
	}
	known := slices.Concat(slices.Collect(maps.Keys(refusals)), slices.Collect(maps.Keys(lists)))
	for _, r := range responses {
		known = append(known, r.file)
	}
	for _, f := range files {
		if !slices.Contains(known, filepath.Base(f)) {
			t.Errorf("%s is in none of the tables", f)
		}
	}
}

func replayed(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReplay(t *testing.T) {
	for _, tt := range responses {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			if strings.HasPrefix(tt.file, "llama-cpp-python-") {
				testversions.Ran(t, "llama-cpp-python", "0.3.36", "recorded output read")
			}
			raw := replayed(t, tt.file)
			e := endpoint(t, "http://server", Options{})
			ask := func(cut string, pieces ...string) *Response {
				t.Helper()
				piped(e, pieces...)
				s := e.Open()
				defer s.Close()
				r, err := s.Ask(t.Context())
				if err != nil {
					t.Fatalf("%s: %v", cut, err)
				}
				if len(r.Arrivals) != tt.tokens || r.Tokens != tt.usage || r.Finish != tt.finish {
					t.Fatalf("%s: %d events with content, %d tokens, finish %q, want %d, %d, %q",
						cut, len(r.Arrivals), r.Tokens, r.Finish, tt.tokens, tt.usage, tt.finish)
				}
				if !slices.IsSorted(r.Arrivals) || r.Arrivals[0] < 0 ||
					r.End < r.Arrivals[tt.tokens-1] {
					t.Fatalf("%s: out of order: %v, end %v", cut, r.Arrivals, r.End)
				}
				return r
			}
			if r := ask("whole", raw); len(raw) < pieceSize && r.Glued != glued(tt.tokens) {
				t.Errorf("whole: %d of %d are glued", r.Glued, tt.tokens)
			}
			if r := ask("bytes", bytewise(raw)...); r.Glued != 0 {
				t.Errorf("byte by byte: %d are glued", r.Glued)
			}
			if r := ask("chunks", chunkwise(raw)...); r.Glued != 0 { // as its server wrote it
				t.Errorf("chunk by chunk: %d are glued", r.Glued)
			}
			first := 0
			// A response repeats one event some 20 times, and the cuts fall on other bytes of each.
			// Together, 200 cuts fall on every byte or two of an event.
			step := max(1, len(raw)/200) | 1
			for i := 1; i < len(raw); i += step {
				r := ask("cut at "+strconv.Itoa(i), raw[:i], raw[i:])
				for first < tt.tokens && r.Glued != glued(first)+glued(tt.tokens-first) {
					first++
				}
				if r.Glued != glued(first)+glued(tt.tokens-first) {
					t.Fatalf("cut at %d: %d of %d are glued", i, r.Glued, tt.tokens)
				}
			}
		})
	}
}

func glued(n int) int {
	if n == 1 {
		return 0
	}
	return n
}

func TestReplayRefusals(t *testing.T) {
	for file, want := range refusals {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			raw := replayed(t, file)
			for i := range len(raw) {
				e := endpoint(t, "http://server", Options{})
				piped(e, raw[:i], raw[i:])
				s := e.Open()
				_, err := s.Ask(t.Context())
				s.Close()
				if want := "ask http://server/v1/chat/completions: " + want; err == nil ||
					err.Error() != want {
					t.Fatalf("cut at %d: %q, want %q", i, err, want)
				}
			}
		})
	}
}

func TestReplayModels(t *testing.T) {
	for file, want := range lists {
		raw := replayed(t, file)
		for i := range len(raw) {
			e := endpoint(t, "http://server", Options{})
			piped(e, raw[:i], raw[i:])
			s := e.Open()
			got, err := s.firstModel(t.Context())
			s.Close()
			if err != nil || got != want {
				t.Fatalf("%s cut at %d: %q, %v", file, i, got, err)
			}
		}
	}
}

func chunkwise(raw string) []string {
	out := []string{""}
	for _, line := range strings.SplitAfter(raw, "\n") {
		last := &out[len(out)-1]
		switch *last += line; {
		case line == "\r\n", line == "\n" && !strings.Contains(raw, "chunked"):
			out = append(out, "")
		}
	}
	return out
}

func bytewise(s string) []string {
	var out []string
	for i := range len(s) {
		out = append(out, s[i:i+1])
	}
	return out
}
