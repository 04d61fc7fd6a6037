package peer_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent/box"
	"github.com/bridgetoll/bridgetoll/internal/paths/docker"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// serveEnv makes this binary serve a language model on another machine of the test.
const serveEnv = "PEER_TEST_SERVE"

// pauseEnv is for how long it pauses before each token.
const pauseEnv = "PEER_TEST_PAUSE"

func TestMain(m *testing.M) {
	if at := os.Getenv(serveEnv); at != "" {
		fmt.Fprintln(os.Stderr, http.ListenAndServe(at, model()))
		os.Exit(1)
	}
	pathtest.Main()
	ours, err := docker.Inner(os.Args[1:])
	if len(os.Args) > 3 && os.Args[1] == agent.Arg {
		ours, err = true, asAgent(os.Args[3])
	}
	if ours {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	pathtest.RemoveToll()
	os.Exit(code)
}

const testVersion = "test"

// asAgent is toll on the peer of a conformance test, as boot.sh starts it.
func asAgent(id string) error {
	fmt.Printf("\n%s agent\n", id)
	in := bufio.NewReader(os.Stdin)
	var size int
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	if _, err := fmt.Sscan(line, &size); err != nil {
		return err
	}
	_, name, _ := strings.Cut(strings.TrimSpace(line), " ")
	c := agent.Config{Bundle: make([]byte, size), ID: id, Name: name, Version: testVersion,
		Starts: []string{pathtest.Arg}}
	if _, err := io.ReadFull(in, c.Bundle); err != nil {
		return err
	}
	carrier, err := agent.AtAgent(struct {
		io.Reader
		io.WriteCloser
	}{in, os.Stdout})
	if err != nil {
		return err
	}
	engine := &box.Engine{}
	c.Open, c.Engine, c.Router = carrier.Open, engine, engine
	return errors.Join(agent.Main(context.Background(), c), engine.Close())
}

func model() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":[{"id":"tiny"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		pause, _ := time.ParseDuration(os.Getenv(pauseEnv))
		for range 2 {
			time.Sleep(pause)
			io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"word\"}}]}\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		io.WriteString(w, "data: [DONE]\n\n")
	})
	return mux
}
