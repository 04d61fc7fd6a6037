package endpoint

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

type box struct {
	t       *testing.T
	started int
	last    *path.Process
}

func (*box) Name() string { return "peer box" }

func (b *box) Start(c path.Command) (*path.Process, error) {
	if len(c.Args) != 1 || c.Args[0] != Arg || c.Apart {
		b.t.Errorf("started %+v", c)
	}
	b.started++
	in, orders := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Main(in, out, nil); out.Close() }()
	kill := func() error { return errors.Join(in.Close(), out.Close()) }
	b.last = &path.Process{In: orders, Out: answers, Wait: func() error {
		return <-ended
	}, Kill: kill}
	return b.last, nil
}

func TestFar(t *testing.T) {
	m := serves(t, short)
	remote := vantage.New(mode.FromRemote)
	b := &box{t: t}
	var left error
	c := Client{Chat: &openai.Options{Key: "hunter22", Timeout: 5 * time.Second},
		Reach: func(context.Context) (Peer, error) {
			return Peer{Place: b, About: "box", Err: func() error { return left }}, nil
		}}
	a, err := New(c, From([]Address{{Name: "a", URL: m.URL}},
		[]*vantage.Vantage{remote, vantage.Local()}))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if got := strings.Join(a.Names(), " "); got != "a@remote a" {
		t.Errorf("names %s", got)
	}
	if err := a.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := a.Paths()
	if p[0].Route != "a@remote" || p[0].Facts["from"] != "remote" || p[0].Facts["peer"] != "box" ||
		p[0].Facts[familyFact] != "IPv4" ||
		p[1].Route != "a" || p[1].Facts["from"] != "" || p[0].Dial != p[1].Dial {
		t.Errorf("%+v", p)
	}
	ask := func() error {
		v := sample.Visit{Turn: sample.Turn{Round: 7}}
		err := a.Visit(t.Context(), sample.Cell{Route: "a@remote"},
			sample.Load{Kind: workload.Chat, Options: sample.ChatOptions{Requests: 2}}, &v)
		if err == nil && (v.Round != 7 || v.Client.Trips != 2 || v.Elapsed <= 0 ||
			v.Times["first_token"] == nil) {
			t.Errorf("%+v", v)
		}
		return err
	}
	if err := ask(); err != nil || b.started != 1 {
		t.Errorf("%v, %d processes", err, b.started)
	}
	_ = b.last.Kill()
	if err := ask(); err == nil || !strings.HasPrefix(err.Error(), "peer box: the worker died: ") {
		t.Errorf("of one that was killed: %v", err)
	}
	if err := ask(); err != nil || b.started != 2 {
		t.Errorf("%v, %d processes", err, b.started)
	}
	left = errors.New("peer box left")
	var gone *path.LeftError
	if err := ask(); !errors.As(err, &gone) || gone.Node != "peer box" {
		t.Errorf("of a machine that left: %v", err)
	}
}

func TestFarError(t *testing.T) {
	err := error(told(&familyError{"db", "IPv6"}))
	if err.Error() != "db has no IPv6 address" || hint.Of(err) == "" {
		t.Errorf("%v", err)
	}
	var status *openai.StatusError
	if err := error(told(&openai.StatusError{Code: 401, Text: "no"})); !errors.As(err, &status) ||
		status.Code != 401 || err.Error() != "the server answered 401 no" {
		t.Errorf("%v", err)
	}
	if told(nil) != nil {
		t.Error("no error is one")
	}
}

func TestByFamily(t *testing.T) {
	for _, tt := range []struct {
		url  string
		f    Families
		want string
	}{
		{"http://llm:80", Families{}, "x"},
		{"http://llm:80", Families{Six: true}, "x"},
		{"http://llm:80", Families{Four: true, Six: true}, "x-ipv4 x-ipv6"},
		{"postgres://app@db/shop", Families{Four: true, Six: true}, "x-ipv4 x-ipv6"},
		{"http://[::1]:80", Families{Four: true, Six: true}, "x"},
		{"http://[::1]:80", Families{Four: true}, "x: ::1 is not of the address family that -4 or -6 asks for"},
		{"http://127.0.0.1", Families{Six: true}, "x: 127.0.0.1 is not of the address family that -4 or -6 asks for"},
		{"postgres:///shop", Families{Six: true}, "x: an address family needs a URL with one host"},
		{"::", Families{Six: true}, "x: an address family needs a URL with one host"},
	} {
		at, err := ByFamily([]Address{{Name: "x", URL: tt.url}}, tt.f)
		var names []string
		for _, a := range at {
			names = append(names, a.Name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s %v: %s, want %s", tt.url, tt.f, got, tt.want)
		}
	}
	dial := Address{Families: Families{Six: true}}.dialler()
	for addr, want := range map[string]string{"127.0.0.1:1": "127.0.0.1 has no IPv6 address",
		"/run/db.sock": "/run/db.sock has no address family"} {
		network := "tcp"
		if strings.HasPrefix(addr, "/") {
			network = "unix"
		}
		if _, _, err := dial(t.Context(), network, addr); err == nil ||
			err.Error() != want {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
