package peer_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path/pathtest"
)

// serveEnv makes this binary serve a language model on another machine of the test.
const serveEnv = "PEER_TEST_SERVE"

func TestMain(m *testing.M) {
	if at := os.Getenv(serveEnv); at != "" {
		fmt.Fprintln(os.Stderr, http.ListenAndServe(at, model()))
		os.Exit(1)
	}
	code := m.Run()
	pathtest.RemoveToll()
	os.Exit(code)
}

func model() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":[{"id":"tiny"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range 2 {
			io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"word\"}}]}\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		io.WriteString(w, "data: [DONE]\n\n")
	})
	return mux
}
