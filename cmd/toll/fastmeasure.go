package main

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/fast"
	"github.com/bridgetoll/bridgetoll/internal/measure/client"
	"github.com/bridgetoll/bridgetoll/internal/measure/database"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// The words of --measure that send what the command of the same name does.
const (
	asStream = "stream"
	asSQL    = "sql"
	asRun    = "run"
)

func measureWords() []string {
	return append(fast.Speeches(), asStream, asStream+":/PATH", asSQL, asRun)
}

// ofCommand returns the command that a word of --measure stands for, or "".
func ofCommand(word string) string {
	if slices.Contains([]string{asStream, asSQL, asRun}, word) {
		return word
	}
	if kind, path, ok := strings.Cut(word, ":"); ok && kind == asStream && strings.HasPrefix(path, "/") {
		return kind
	}
	return ""
}

// checkMeasure refuses unknown words. The error does not show the part after a command's name,
// which may be an address with a password.
func checkMeasure(word string) error {
	if ofCommand(word) != "" {
		return nil
	}
	kind, _, _ := strings.Cut(word, ":")
	if hint := map[string]string{asStream: "--measure=stream --model NAME, or stream:/PATH", asSQL: "--measure=sql --dsn URL", asRun: "--measure=run --client COMMAND"}[kind]; hint != "" {
		return usage(fmt.Errorf("--measure=%s:…: no such load", kind), hint)
	}
	if err := fast.ParseSpeech(word); err != nil {
		return usage(err, "it is one of "+strings.Join(measureWords(), ", "))
	}
	return nil
}

// measureFlags are the flags of toll stream, sql and run that say what --measure sends to a port.
type measureFlags struct {
	chat    chatFlags
	sql     sqlFlags
	dsn     string
	program programFlags
	timeout time.Duration
}

// measureOnly lists the flags that only fit each word.
var measureOnly = map[string][]string{
	asStream: {"model", "prompt", "tokens", "api-key-env"},
	asSQL:    {"dsn", "query", "queries", "password-env"},
	asRun:    {"client", "recipe", "metric", "seconds", "no-root"},
}

func (f *measureFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.chat.model, "model", "", "with --measure=stream: the model (default the first that the server lists)")
	fl.StringVar(&f.chat.prompt, "prompt", chatPrompt, "with --measure=stream: what each request asks")
	fl.Var(wholeFlag(&f.chat.tokens, 64, 1, maxChatTokens), "tokens", "with --measure=stream: most tokens of a response")
	fl.StringVar(&f.chat.keyEnv, "api-key-env", "", "with --measure=stream: environment variable that holds the API key")
	fl.StringVar(&f.dsn, "dsn", "", "with --measure=sql: URL of the database, without a password; it may leave host and port out")
	fl.StringVar(&f.sql.query, "query", "", "with --measure=sql: the query (default one that returns about 1 KiB and reads no table)")
	fl.Var(wholeFlag(&f.sql.queries, 20, 1, workload.MaxQueries), "queries", "with --measure=sql: queries of a page, one after another")
	fl.StringVar(&f.sql.passwordEnv, "password-env", "", "with --measure=sql: environment variable that holds the password")
	fl.StringVar(&f.program.client, "client", "", "with --measure=run: the client's command line; {host} {port}, or {addr}, stand for what it is to connect to")
	fl.StringVar(&f.program.recipe, "recipe", "", "with --measure=run: the client of a recipe of toll run")
	fl.StringArrayVar(&f.program.metrics, "metric", nil, "with --measure=run: NAME[:UNIT][:higher|:lower]=REGEXP, a number in its output (default how long it takes)")
	fl.Var(wholeFlag(&f.program.seconds, 1, 1, maxSeconds), "seconds", "with --measure=run: what {seconds} stands for")
	fl.BoolVar(&f.program.noRoot, "no-root", false, "with --measure=run: run it as an ordinary user, in a user namespace")
	fl.Var(timeFlag(&f.timeout, 30*time.Second, minWait, maxTimeout), "timeout", "with --measure=stream, sql, run: longest wait for the next token, for a page, for the client to end")
}

// check refuses flags of another word.
func (f *measureFlags) check(c *cobra.Command, word string) error {
	command := ofCommand(word)
	for _, w := range []string{asStream, asSQL, asRun} {
		for _, name := range measureOnly[w] {
			if w != command && c.Flags().Changed(name) {
				return usage(fmt.Errorf("--%s is for --measure=%s", name, w), "toll fast on 8080 --measure="+w)
			}
		}
	}
	if command == "" && c.Flags().Changed("timeout") {
		return usage(errors.New("--timeout is for --measure=stream, sql and run"), "")
	}
	return nil
}

// load returns a function that makes the load for a port, or nil if the word stands for no command.
// It reports invalid flags before anything is sent.
func (f *measureFlags) load(word string, ports []uint16) (func(netip.AddrPort) (*fast.Load, error), error) {
	var make func(netip.AddrPort) (*client.Client, error)
	var err error
	switch ofCommand(word) {
	case asStream:
		make, err = f.stream(word)
	case asSQL:
		make, err = f.pages(ports)
	case asRun:
		make, err = f.command()
	default:
		return nil, nil
	}
	if err == nil {
		// Only checks: nothing is sent yet.
		_, err = make(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), ports[0]))
	}
	if f := (*failure)(nil); err != nil && !errors.As(err, &f) {
		return nil, usage(err, "")
	} else if err != nil {
		return nil, err
	}
	return func(dial netip.AddrPort) (*fast.Load, error) {
		c, err := make(dial)
		if err != nil {
			return nil, err
		}
		out := &fast.Load{Name: c.Name, Note: c.Note, Visit: c.Visit, Close: c.Close}
		for _, m := range c.Metrics {
			out.Metrics = append(out.Metrics, fast.Metric{What: m.Name, Unit: m.Unit, Higher: m.Higher})
		}
		return out, nil
	}, nil
}

func (f *measureFlags) stream(word string) (func(netip.AddrPort) (*client.Client, error), error) {
	if err := f.chat.check(); err != nil {
		return nil, err
	}
	key, err := sudoSecret("api-key-env", f.chat.keyEnv)
	if err != nil {
		return nil, err
	}
	_, path, _ := strings.Cut(word, ":")
	if _, err := url.ParseRequestURI("http://host" + path); err != nil {
		return nil, usage(errors.New("--measure=stream:/PATH: the path cannot be read"), "--measure=stream:/v1")
	}
	return func(dial netip.AddrPort) (*client.Client, error) {
		return client.Chat("http://"+dial.String()+path, openai.Options{Model: f.chat.model, Prompt: f.chat.prompt, Key: key, Timeout: f.timeout}, f.chat.tokens)
	}, nil
}

func (f *measureFlags) pages(ports []uint16) (func(netip.AddrPort) (*client.Client, error), error) {
	const example = "toll fast on 5432 --measure=sql --dsn postgres://app@localhost/shop"
	switch {
	case f.dsn == "":
		return nil, usage(errors.New("--measure=sql needs the database's --dsn"), example)
	case len(ports) > 1:
		return nil, usage(errors.New("--measure=sql asks one port"), example)
	}
	password, err := sudoSecret("password-env", f.sql.passwordEnv)
	if err != nil {
		return nil, err
	}
	return func(dial netip.AddrPort) (*client.Client, error) {
		dsn, err := database.At(f.dsn, dial)
		if err != nil {
			return nil, err
		}
		return client.SQL(dsn, database.Options{Query: f.sql.query, Queries: f.sql.queries, Password: password, Timeout: f.timeout})
	}, nil
}

func (f *measureFlags) command() (func(netip.AddrPort) (*client.Client, error), error) {
	const example = "toll fast on 6379 --measure=run --recipe redis"
	c := client.Command{Line: f.program.client}
	var err error
	switch {
	case f.program.recipe != "" && f.program.client != "":
		return nil, usage(errors.New("--recipe and --client are both a client"), example)
	case f.program.recipe != "":
		if _, err := program.FindRecipe(f.program.recipe); err != nil {
			return nil, err
		}
		if c, err = client.OfRecipe(f.program.recipe); err != nil {
			return nil, &failure{code: exitNothing, err: err}
		}
	case f.program.client == "":
		return nil, usage(errors.New("--measure=run needs a client: give --client or --recipe"), example)
	}
	if len(f.program.metrics) > maxMetrics {
		return nil, usage(fmt.Errorf("%d metrics, at most %d are taken", len(f.program.metrics), maxMetrics), "")
	}
	if f.timeout.Seconds() <= float64(f.program.seconds) {
		return nil, usage(fmt.Errorf("--timeout %s: the client alone is to run for %d s", f.timeout, f.program.seconds), fmt.Sprintf("--timeout %ds", 10+2*f.program.seconds))
	}
	if len(f.program.metrics) > 0 {
		if c.Gauges, err = parseMetrics(f.program.metrics); err != nil {
			return nil, err
		}
	}
	if err := (&sample.Program{Gauges: c.Gauges}).Check(); err != nil {
		return nil, err
	}
	c.Seconds, c.Timeout, c.NoRoot = f.program.seconds, f.timeout, f.program.noRoot
	return func(dial netip.AddrPort) (*client.Client, error) { return client.Run(c, dial), nil }, nil
}

// sudoSecret returns the value of an environment variable, or "" if no name was given. Its error
// mentions sudo, which the command needs and which drops variables.
func sudoSecret(flag, variable string) (string, error) {
	if variable == "" || os.Getenv(variable) != "" {
		return secret(flag, variable)
	}
	return "", usage(fmt.Errorf("--%s %s: there is no such environment variable, or it is empty", flag, variable), "export "+variable+"=…; sudo --preserve-env="+variable+" toll fast on …")
}
