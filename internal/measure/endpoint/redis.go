package endpoint

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// ping is a client of Redis and of what speaks its protocol.
type ping struct {
	wire
	user, password string
}

func newRedis(a Address, u *url.URL, password string) (speaker, error) {
	if _, has := u.User.Password(); has {
		return nil, errors.New("a password in the URL: every user of the machine can read it, so use " +
			"--secret-env")
	}
	return &ping{wire{withPort(u, "6379"), a.dialler()}, u.User.Username(), password}, nil
}

func (p *ping) words() string { return "PING" }

func (p *ping) open(ctx context.Context) (*dialogue, error) {
	c, t, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	br := bufio.NewReader(c)
	send := func(want string, words ...string) error {
		request := fmt.Appendf(nil, "*%d\r\n", len(words))
		for _, w := range words {
			request = fmt.Appendf(request, "$%d\r\n%s\r\n", len(w), w)
		}
		c.within(dialogueTimeout)
		_, unsent := c.Write(request)
		line, err := br.ReadSlice('\n') // of a refusal, also if the request came too late for it
		switch text := strings.TrimSpace(string(line)); {
		case err != nil:
			return noReply("Redis", cmp.Or(unsent, err))
		case unsent != nil || text != want:
			return unlikeError{words[0], printable.Start(printable.Line(text), mostQuoted)}
		}
		return nil
	}
	if p.password != "" {
		words := []string{"AUTH", p.password}
		if p.user != "" {
			words = []string{"AUTH", p.user, p.password}
		}
		if err := send("+OK", words...); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	t.server = "Redis"
	t.ask = func(context.Context) error { return send("+PONG", "PING") }
	return t, nil
}

// mostQuoted is the number of characters of a server's answer in an error.
const mostQuoted = 200

// unlikeError means that a server answered a command of Redis, but not as it should.
type unlikeError struct{ command, text string }

func (r unlikeError) Error() string { return fmt.Sprintf("%s was answered %q", r.command, r.text) }

// redis reports whether the answer is an error of Redis' protocol.
func (r unlikeError) redis() bool { return strings.HasPrefix(r.text, "-") }

func (r unlikeError) Hint() string {
	if strings.HasPrefix(r.text, "-NOAUTH") {
		return "put the password into an environment variable and name it: --secret-env VARIABLE"
	}
	return ""
}
