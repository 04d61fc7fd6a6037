package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/measure/database"
)

// foreignError means that a server speaks another protocol than that of the requests.
type foreignError struct{ is, host string }

func (f foreignError) Error() string { return "the server does not answer such requests: " + f.is }

// urls has the URLs of the protocols that toll speaks, except that of TLS, which may carry others.
var urls = []struct{ is, before, after string }{{"HTTP", "http://", "/"}, {"Redis", "redis://", ""},
	{"PostgreSQL", "postgres://USER@", "/DATABASE"}, {"MySQL", "mysql://USER@", "/DATABASE"}}

// byClient returns the command that traces the requests of a client to a server.
func byClient(to string) string {
	return remedy.AsRoot("toll trace " + to + " --client 'COMMAND {host} {port}'")
}

func (f foreignError) Hint() string {
	client := "let a client of that protocol make the requests: " + byClient(f.host)
	if _, port, err := net.SplitHostPort(f.host); err == nil && strings.Contains(f.is, "h2c") {
		return "watch the server while its clients run: " + remedy.AsRoot("toll trace --attach "+port)
	}
	if f.is == speaksTLS {
		return "if it is HTTP, give its URL: " + remedy.AsRoot("toll trace https://"+f.host+"/") +
			"; or " + client
	}
	for _, u := range urls {
		if strings.Contains(f.is, u.is) {
			return "give its URL: " + remedy.AsRoot("toll trace "+u.before+f.host+u.after)
		}
	}
	return client
}

// native returns the error of a server that speaks another protocol than that of r's requests,
// which it answered with err or by t, or else err.
func (r *followed) native(ctx context.Context, t *dialogue, err error) error {
	s, ok := r.speaker.(interface {
		speaks(ctx context.Context) string
		at() string
	})
	refused := t.status == http.StatusBadRequest // as by a server of HTTPS
	if !ok || !refused && !errors.As(err, new(unansweredError)) {
		return err
	}
	if is := s.speaks(ctx); is != "" && (!refused || !strings.Contains(is, "HTTP")) {
		return foreignError{is, s.at()}
	}
	return err
}

func (w wire) at() string { return w.host }

// askSilence is how long a server may take to show what it speaks.
const askSilence = 2 * time.Second

// sslRequest is PostgreSQL's question whether the server takes TLS, answered by one letter.
const sslRequest = "\x00\x00\x00\x08\x04\xd2\x16\x2f"

const speaksTLS = "it speaks TLS"

// speaks asks a server what it speaks, by connections of their own: "it speaks PostgreSQL". It
// returns "" if that does not show.
func (w wire) speaks(ctx context.Context) string {
	answer := make([]byte, 64)
	n := 0
	w.with(ctx, func(c net.Conn) {
		if _, err := c.Write([]byte(sslRequest)); err == nil {
			n, _ = c.Read(answer)
		}
	})
	if text := string(answer[:n]); text == "S" || text == "N" {
		return "it speaks PostgreSQL"
	}
	if is := database.Speaks([]byte(sslRequest), answer[:n]); is != "" {
		return is
	}
	var err error
	done := w.with(ctx, func(c net.Conn) {
		// Nothing is sent over it, so whose certificate it is does not matter.
		config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // see above
		err = tls.Client(c, config).HandshakeContext(ctx)
	})
	if done && (err == nil || alerted(err)) {
		return speaksTLS
	}
	return ""
}

// alerted reports whether a server of TLS refused the handshake, as without its name.
func alerted(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" // crypto/tls has no type for it over TCP
}

// with calls do with a connection, which ends with it, and reports whether there was one.
func (w wire) with(ctx context.Context, do func(net.Conn)) bool {
	ctx, cancel := context.WithTimeout(ctx, askSilence)
	defer cancel()
	c, _, err := w.connect(ctx, "tcp", w.host)
	if err != nil {
		return false
	}
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	do(c)
	_ = c.Close()
	return true
}
