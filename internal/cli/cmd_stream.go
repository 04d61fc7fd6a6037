package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

type chatFlags struct {
	model, prompt, keyEnv string
	kinds                 []string // of responses, by their loads
	tokens                int
	requests, sessions    int
	timeout               time.Duration
	places                placeFlags
	compressed            bool
	request               []byte // of the file of --prompt; nil: none
	requestName           string
}

const chatPrompt = "Tell a long story about a container ship and the keeper of a toll bridge."

func (f *chatFlags) add(fl *pflag.FlagSet) {
	f.places.beyond = true
	f.places.add(fl)
	add(fl,
		flagDef{name: "model", group: toMeasure, value: text(&f.model, ""), word: "NAME", main: "stream",
			help: "the model (default the first that the server lists)"},
		flagDef{name: "prompt", group: toMeasure, value: text(&f.prompt, chatPrompt), word: "TEXT|@FILE",
			help: "what each request asks, or the file with the JSON object that it sends, " +
				"in which toll sets stream, and model if it has none", main: "stream"},
		flagDef{name: "compressed", group: toMeasure, value: toggle(&f.compressed),
			help: "accept gzip, as browsers and most SDKs do: a gateway may hold tokens back only then"},
		flagDef{name: secretFlag, group: toMeasure, value: text(&f.keyEnv, ""), word: "VARIABLE",
			help: "environment variable that holds the API key", main: "stream"},
		flagDef{name: "load", group: toSend, value: list(&f.kinds, workload.Chat), word: "LOAD",
			help: "the responses: chat (streamed), batch (whole), or both in the same rounds",
			main: "stream", offer: chatLoads},
		sessionsOf(&f.sessions),
		flagDef{name: "tokens", group: toSend, value: wholeFlag(&f.tokens, 64, 1, maxChatTokens),
			help: "the most tokens of a response", main: "stream"},
		flagDef{name: "requests", group: toSend, value: wholeFlag(&f.requests, 1, 1, maxRequests),
			help: "requests of each session in a visit, one after another"},
		flagDef{name: "timeout", group: howLong, value: timeFlag(&f.timeout, 30*time.Second, minWait, maxWait),
			help: "longest wait for a connection and for the next token; a response may take ten times that"})
}

var chatLoads = []string{workload.Chat, workload.Batch}

func sessionsOf(to *int) flagDef {
	return flagDef{name: "sessions", group: toSend, value: wholeFlag(to, 1, 1, maxChatSessions),
		help: "sessions at one time, each with a connection of its own", main: "stream sql"}
}

const (
	maxChatTokens   = 100_000
	maxRequests     = 1000
	maxChatSessions = 1000
	minWait         = 100 * time.Millisecond
	maxWait         = 10 * time.Minute
	maxPrompt       = 1 << 20 // bytes, also of a file with a request
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
they vary because of the route or of the server. With --load chat,batch it also compares
the times of responses that are not streamed. What else the server sends between tokens, such as
pings, is counted; a part of the request that it refuses is left out, and named.

A URL is that of the server, of its /v1 or of its chat/completions. If you have no
server, toll compare --load stream shows what each mode does to tokens.`,
		Example: `  toll stream http://127.0.0.1:8080
  toll stream direct=http://172.17.0.2:8000 published=http://127.0.0.1:8080
  toll stream lan=http://10.0.0.5:8000 vpn=http://10.8.0.5:8000 \
      --secret-env VLLM_API_KEY --budget 5m
  sudo toll stream http://gpu1:8000 --from host --peer root@gpu1`,
		RunE: func(c *cobra.Command, args []string) error {
			const example = "toll stream direct=http://172.17.0.2:8000 published=http://127.0.0.1:8080"
			w, err := parseEndpoints(args, "stream", "URL", example)
			if err == nil {
				err = s.check()
			}
			if err == nil {
				err = s.readRequest(e, c.Flags())
			}
			if err != nil {
				return err
			}
			key, err := secret(secretFlag, s.keyEnv)
			if err != nil {
				return err
			}
			chat, from, err := s.places.ask(c.Flags(),
				endpoint.Client{Chat: &openai.Options{
					Model: s.model, Prompt: s.prompt, MaxTokens: s.tokens, Key: key,
					Timeout: s.timeout, Body: s.request, Compressed: s.compressed},
					Whole: s.asks(workload.Batch), NoStream: !s.asks(workload.Chat), Locate: locateServers()}, w, example)
			if err != nil {
				return err
			}
			return f.endpoints(c, e, chat, plan.Request{Loads: s.loads()}, from)
		},
	}
	fl := c.Flags()
	s.add(fl)
	f.addEndpoints(fl)
	return c
}

func (f *chatFlags) check() error {
	if n := len(f.prompt); n == 0 || n > maxPrompt {
		return usage(fmt.Errorf("--prompt has %d bytes: must be from 1 to %d", n, maxPrompt), "")
	}
	if _, err := parseAll(f.kinds, closed("load", chatLoads...)); err != nil {
		return err
	}
	return f.places.pod.check()
}

// readRequest reads the file of --prompt @FILE.
func (f *chatFlags) readRequest(e env, fl *pflag.FlagSet) error {
	name, is := strings.CutPrefix(f.prompt, "@")
	if !is {
		return nil
	}
	if fl.Changed("tokens") {
		return usage(errors.New("--tokens is not for a request of your own"),
			"give the file max_tokens or max_completion_tokens")
	}
	fails := func(err error) error { return usage(fmt.Errorf("--prompt @%s: %w", name, err), "") }
	file, err := openInput(e, name)
	if err != nil {
		return fails(errors.Unwrap(err))
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxPrompt+1))
	if err != nil {
		return fails(err)
	}
	if len(b) > maxPrompt {
		return fails(fmt.Errorf("the file is longer than %d MiB", maxPrompt>>20))
	}
	if _, f.tokens, err = openai.CheckBody(b); err != nil {
		return fails(err)
	}
	f.request, f.prompt = b, ""
	f.requestName = fmt.Sprintf("%s (sha256 %.4x)",
		printable.Line(filepath.Base(name)), sha256.Sum256(b))
	return nil
}

// stall is the shortest gap between two tokens that counts as a stall.
const stall = 200 * time.Millisecond

// usualResponse is the duration, in seconds, that is assumed for a response until one was timed.
const usualResponse = 2

func (f *chatFlags) asks(kind string) bool { return slices.Contains(f.kinds, kind) }

func (f *chatFlags) loads() (out []sample.Load) {
	for _, kind := range slices.DeleteFunc(slices.Clone(chatLoads), func(kind string) bool {
		return !f.asks(kind)
	}) {
		o := sample.ChatOptions{Requests: f.requests, Tokens: f.tokens, Prompt: f.prompt,
			Request: f.requestName, Stall: stall.Seconds()}
		if kind == workload.Batch {
			o.Stall = 0 // a whole response has no gaps
		}
		out = append(out, sample.Load{Kind: kind, Streams: f.sessions,
			Window: usualResponse * float64(f.requests), Options: o})
	}
	return out
}
