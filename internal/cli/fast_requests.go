package cli

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/measure/database"
	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

type requests struct {
	client endpoint.Client
	load   sample.Load
	url    func(dial netip.AddrPort) (string, error)
}

func (r *requests) asker(dial netip.AddrPort) (endpoint.Asker, error) {
	u, err := r.url(dial)
	if err != nil {
		return nil, err
	}
	without := endpoint.Address{URL: u, From: vantage.Local()}
	with := without
	without.Name, with.Name = endpointsOf(dial.Port())
	return endpoint.New(r.client, []endpoint.Address{without, with})
}

// requests returns what the command named by the word sends, or nil if the word names none. It
// sends nothing.
func (f *measureFlags) requests(ports []uint16) (r *requests, err error) {
	switch ofCommand(f.word) {
	case asStream:
		r, err = f.stream()
	case asSQL:
		r, err = f.pages()
	case asRun:
		r, err = f.command()
	}
	if r == nil || err != nil {
		return nil, err
	}
	w, err := r.asker(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), ports[0]))
	if err != nil {
		return nil, usage(err, "")
	}
	return r, w.Close()
}

func (f *measureFlags) stream() (*requests, error) {
	if err := f.chat.check(); err != nil {
		return nil, err
	}
	key, err := sudoSecret("api-key-env", f.chat.keyEnv)
	if err != nil {
		return nil, err
	}
	_, path, _ := strings.Cut(f.word, ":")
	if _, err := url.ParseRequestURI("http://host" + path); err != nil {
		return nil, usage(errors.New("--measure=stream:/PATH: not a valid path"),
			"--measure=stream:/v1")
	}
	client := endpoint.Client{Chat: &openai.Options{Model: f.chat.model, Prompt: f.chat.prompt,
		MaxTokens: f.chat.tokens, Key: key, Timeout: f.timeout}}
	return &requests{client, f.chat.loads()[0], func(dial netip.AddrPort) (string, error) {
		return "http://" + dial.String() + path, nil
	}}, nil
}

func (f *measureFlags) pages() (*requests, error) {
	if f.dsn == "" {
		return nil, usage(errors.New("--measure=sql needs the database's --dsn"),
			"toll fast on 5432 --measure=sql --dsn postgres://app@localhost/shop")
	}
	password, err := sudoSecret("password-env", f.sql.passwordEnv)
	if err != nil {
		return nil, err
	}
	client := endpoint.Client{SQL: &database.Options{Query: f.sql.query, Queries: f.sql.queries,
		Password: password, Timeout: f.timeout}}
	load := sample.Load{Kind: workload.SQL, Warmup: sqlWarmup, Window: fastWindow,
		Options: sample.SQLOptions{Queries: f.sql.queries, SQL: f.sql.query}}
	return &requests{client, load, func(dial netip.AddrPort) (string, error) {
		return database.At(f.dsn, dial)
	}}, nil
}

func (f *measureFlags) command() (*requests, error) {
	f.program.timeout, f.program.addressed = f.timeout, true
	l, err := f.program.clientAlone(true)
	if err != nil {
		return nil, err
	}
	client := endpoint.Client{Program: workload.ExecOf(l).Program}
	return &requests{client, l, func(dial netip.AddrPort) (string, error) {
		return dial.String(), nil
	}}, nil
}

// sudoSecret reads a secret as secret does. Its error mentions that sudo drops variables.
func sudoSecret(flag, variable string) (string, error) {
	s, err := secret(flag, variable)
	if x := (*failure)(nil); errors.As(err, &x) {
		x.hint = "export " + variable + "=…; sudo --preserve-env=" + variable + " toll fast on …"
	}
	return s, err
}
