package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

type chatFlags struct {
	model, prompt, keyEnv string
	tokens                int
	requests, sessions    int
	stall, timeout        time.Duration
	places                placeFlags
	batch, noStream       bool
}

const chatPrompt = "Tell a long story about a container ship and the keeper of a toll bridge."

func (f *chatFlags) add(fl *pflag.FlagSet) {
	f.places.add(fl)
	fl.StringVar(&f.model, "model", "", "the model (default the first that the server lists)")
	fl.StringVar(&f.prompt, "prompt", chatPrompt, "what each request asks")
	fl.Var(wholeFlag(&f.tokens, 64, 1, maxChatTokens), "tokens", "the most tokens of a response")
	fl.Var(wholeFlag(&f.requests, 1, 1, maxRequests), "requests",
		"requests of each session in a visit, one after another")
	fl.Var(wholeFlag(&f.sessions, 1, 1, maxChatSessions), "sessions",
		"sessions at one time, each with a connection of its own")
	fl.BoolVar(
		&f.batch, "batch", false,
		"also ask for whole responses, which are not streamed, in the same rounds")
	fl.BoolVar(&f.noStream, "no-stream", false, "ask for whole responses only")
	fl.StringVar(&f.keyEnv, "api-key-env", "", "environment variable that holds the API key")
	fl.Var(timeFlag(&f.stall, 200*time.Millisecond, time.Millisecond, maxWait), "stall",
		"a gap between two tokens that is longer is a stall")
	fl.Var(timeFlag(&f.timeout, 30*time.Second, minWait, maxWait), "timeout",
		"longest wait for a connection and for the next token")
}

const (
	maxChatTokens   = 100_000
	maxRequests     = 1000
	maxChatSessions = 256
	minWait         = 100 * time.Millisecond
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
		Short: "Is it the network or the model? Time an LLM server's tokens",
		Long: `stream asks an OpenAI-compatible server (llama.cpp, vLLM, Ollama …) for streamed
responses over each URL, in shuffled rounds. Each URL is another route to the same
server, such as its published port and its container's address. It compares the time
to the first token, the gaps between tokens and the response times, and says whether
they vary because of the route or of the server. With --batch it also compares the times
of responses that are not streamed.

A URL is that of the server, of its /v1 or of its chat/completions. If you have no
server, toll compare --load stream shows what each mode does to tokens.`,
		Example: `  toll stream http://127.0.0.1:8080
  toll stream published=http://127.0.0.1:8080 direct=http://172.17.0.2:8000
  toll stream lan=http://10.0.0.5:8000 vpn=http://10.8.0.5:8000 \
      --api-key-env VLLM_API_KEY --budget 5m`,
		RunE: func(c *cobra.Command, args []string) error {
			const example = "toll stream published=http://127.0.0.1:8080 direct=http://172.17.0.2:8000"
			w, err := parseEndpoints(args, "stream", "URL", example)
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
			chat, from, err := s.places.ask(c.Flags(),
				endpoint.Client{Chat: &openai.Options{
					Model: s.model, Prompt: s.prompt, MaxTokens: s.tokens, Key: key,
					Timeout: s.timeout},
					Whole: s.batch || s.noStream, Locate: locateServers()}, w, example)
			if err != nil {
				return err
			}
			return f.endpoints(c, e, chat, s.loads(), from)
		},
	}
	fl := c.Flags()
	fl.SortFlags = false
	s.add(fl)
	f.addEndpoints(fl)
	f.out.addDetails(fl)
	return c
}

func (f *chatFlags) check() error {
	if n := len(f.prompt); n == 0 || n > maxPrompt {
		return usage(fmt.Errorf("--prompt has %d bytes: must be from 1 to %d", n, maxPrompt), "")
	}
	if f.batch && f.noStream {
		return usage(
			errors.New(
				"--batch is both kinds of requests, --no-stream only those that are not streamed"),
			"one of them")
	}
	return nil
}

// usualResponse is the duration, in seconds, that is assumed for a response until one was timed.
const usualResponse = 2

func (f *chatFlags) loads() (out []sample.Load) {
	for _, k := range []struct {
		kind  string
		asked bool
	}{{workload.Chat, !f.noStream}, {workload.Batch, f.batch || f.noStream}} {
		o := sample.ChatOptions{Requests: f.requests, Tokens: f.tokens, Prompt: f.prompt,
			Stall: f.stall.Seconds()}
		if k.kind == workload.Batch {
			o.Stall = 0 // a whole response has no gaps
		}
		if k.asked {
			out = append(out, sample.Load{Kind: k.kind, Streams: f.sessions,
				Window: usualResponse * float64(f.requests), Options: o})
		}
	}
	return out
}
