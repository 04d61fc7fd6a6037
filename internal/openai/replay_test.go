package openai

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// responses are what servers sent, from the status line to the last byte, as
// `curl --raw -i -N` or a capture shows it. A file in testdata has a line here.
var responses = []struct {
	file   string
	tokens int // events with content
	usage  int // tokens as the server counts them
	finish string
}{
	{"shape-completions.http", 8, 0, "length"},
	{"shape-gateway.http", 9, 0, "stop"},
	{"shape-llama-cpp-python.http", 8, 0, "stop"},
	{"shape-llama.cpp-reasoning.http", 9, 0, "stop"},
	{"shape-llama.cpp.http", 8, 9, "length"},
	{"shape-ollama.http", 8, 9, "stop"},
	{"shape-vllm.http", 8, 8, "length"},
}

func TestEveryFileIsReplayed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.http")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, r := range responses {
		known[r.file] = true
	}
	for _, f := range files {
		if !known[filepath.Base(f)] {
			t.Errorf("%s is not in the table of responses", f)
		}
	}
}

// A response is read alike wherever it is cut.
func TestReplay(t *testing.T) {
	for _, tt := range responses {
		t.Run(tt.file, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("testdata", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			raw := string(b)
			e := endpoint(t, "http://server", Options{})
			ask := func(cut string, pieces ...string) *Response {
				t.Helper()
				piped(e, pieces...)
				r, err := session(t, e).Ask(t.Context())
				if err != nil {
					t.Fatalf("%s: %v", cut, err)
				}
				if len(r.Arrivals) != tt.tokens || r.Tokens != tt.usage || r.Finish != tt.finish {
					t.Fatalf("%s: %d events with content, %d tokens, finish %q, want %d, %d, %q", cut, len(r.Arrivals), r.Tokens, r.Finish, tt.tokens, tt.usage, tt.finish)
				}
				if !slices.IsSorted(r.Arrivals) || r.Arrivals[0] < 0 || r.End < r.Arrivals[tt.tokens-1] {
					t.Fatalf("%s: out of order: %v, end %v", cut, r.Arrivals, r.End)
				}
				return r
			}
			if r := ask("whole", raw); len(raw) < pieceSize && r.Glued != tt.tokens {
				t.Errorf("whole: %d of %d are glued", r.Glued, tt.tokens)
			}
			if r := ask("bytes", bytewise(raw)...); r.Glued != 0 {
				t.Errorf("byte by byte: %d are glued", r.Glued)
			}
			step := max(1, len(raw)/200)
			for i := 1; i < len(raw); i += step {
				ask("two pieces", raw[:i], raw[i:])
			}
		})
	}
}

// bytewise cuts a text into its bytes.
func bytewise(s string) []string {
	var out []string
	for i := range len(s) {
		out = append(out, s[i:i+1])
	}
	return out
}
