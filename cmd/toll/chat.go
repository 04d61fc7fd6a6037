package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/openai"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// chatFlags say what is asked of a language model's server.
type chatFlags struct {
	model, prompt, keyEnv string
	tokens                int
	requests, sessions    int
	stall, timeout        time.Duration
}

func (f *chatFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.model, "model", "", "the model (default the first that the server lists)")
	fl.StringVar(&f.prompt, "prompt", "Tell a long story about a container ship and the keeper of a toll bridge.", "what each request asks")
	fl.IntVar(&f.tokens, "tokens", 64, "most tokens of a response")
	fl.IntVar(&f.requests, "requests", 1, "requests of each session in a visit, one after another")
	fl.IntVar(&f.sessions, "sessions", 1, "sessions at one time, each with a connection of its own")
	fl.StringVar(&f.keyEnv, "api-key-env", "", "environment variable that holds the API key")
	fl.DurationVar(&f.stall, "stall", 200*time.Millisecond, "a gap between two tokens that is longer is a stall")
	fl.DurationVar(&f.timeout, "timeout", 30*time.Second, "longest wait for a connection and for the next token")
}

// Bounds of what the flags take.
const (
	maxChatTokens   = 100_000
	maxRequests     = 1000
	maxChatSessions = 256
	maxWait         = 10 * time.Minute
	maxPrompt       = 1 << 20 // bytes
)

func newStream(e env) *cobra.Command {
	var (
		f runFlags
		s chatFlags
	)
	c := &cobra.Command{
		Use:   "stream [NAME=]URL…",
		Short: "Is it the network or the model? Time the token streams of a real LLM server",
		Long: `stream asks an OpenAI-compatible server (llama.cpp, vLLM, Ollama …) for streamed
responses over each URL, in shuffled rounds: each URL is another way to the same
server, such as its published port and its container's address. It compares time to
first token, gaps between tokens and response times, and says whether what makes
them vary is the way or the server.

A URL is that of the server, of its /v1 or of its chat/completions. Without a way
of your own to try, toll compare --load stream shows what each mode does to tokens.`,
		Example: `  toll stream http://127.0.0.1:8080
  toll stream published=http://127.0.0.1:8080 direct=http://172.17.0.2:8000 --tokens 128
  toll stream lan=http://10.0.0.5:8000 vpn=http://10.8.0.5:8000 --api-key-env VLLM_API_KEY --budget 5m`,
		RunE: func(c *cobra.Command, args []string) error {
			const example = "toll stream published=http://127.0.0.1:8080 direct=http://172.17.0.2:8000"
			w, err := parseWays(args, "stream", "URL", example)
			if err == nil {
				err = s.check()
			}
			if err != nil {
				return err
			}
			key, err := secret("api-key-env", s.keyEnv)
			if err != nil {
				return err
			}
			chat, err := endpoint.NewChat(w, openai.Options{Model: s.model, Prompt: s.prompt, MaxTokens: s.tokens, Key: key, Timeout: s.timeout})
			if err != nil {
				return usage(err, example)
			}
			return f.endpoints(c, e, chat, s.load())
		},
	}
	fl := c.Flags()
	fl.SortFlags = false
	s.add(fl)
	f.addWays(fl)
	return c
}

func (f *chatFlags) check() error {
	for _, n := range []struct {
		flag       string
		value, top int
	}{{"tokens", f.tokens, maxChatTokens}, {"requests", f.requests, maxRequests}, {"sessions", f.sessions, maxChatSessions}} {
		if n.value < 1 || n.value > n.top {
			return usage(fmt.Errorf("--%s %d: must be from 1 to %d", n.flag, n.value, n.top), "")
		}
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
		least time.Duration
	}{{"stall", f.stall, time.Millisecond}, {"timeout", f.timeout, 100 * time.Millisecond}} {
		if d.value < d.least || d.value > maxWait {
			return usage(fmt.Errorf("--%s %s: must be from %s to %s", d.flag, d.value, d.least, maxWait), "")
		}
	}
	if n := len(f.prompt); n == 0 || n > maxPrompt {
		return usage(fmt.Errorf("--prompt: has %d bytes, must have from 1 to %d", n, maxPrompt), "")
	}
	return nil
}

// usualResponse is how long a response may take, in seconds, as far as estimates
// go before one was seen.
const usualResponse = 2

func (f *chatFlags) load() sample.Load {
	return sample.Load{Kind: "chat", Streams: f.sessions, Requests: f.requests, Tokens: f.tokens, Prompt: f.prompt,
		Stall: f.stall.Seconds(), Window: usualResponse * float64(f.requests)}
}
