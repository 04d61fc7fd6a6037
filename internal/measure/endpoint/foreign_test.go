package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

// A server of another protocol is named, with what to type for it.
func TestForeignServers(t *testing.T) {
	mute := func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	named := httptest.NewUnstartedServer(nil) // it refuses who does not name it
	named.Config.ErrorLog = secure.Config.ErrorLog
	named.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return nil, errors.New("no such name")
	}}
	named.StartTLS()
	defer named.Close()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer refuses.Close()
	database := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { // PostgreSQL's answer
		b := make([]byte, 64)
		if n, _ := c.Read(b); string(b[:n]) == sslRequest {
			_, _ = io.WriteString(c, "N")
		}
	})
	shell := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.WriteString(c, "SSH-2.0-x\r\n")
		_, _ = io.Copy(io.Discard, c)
	})
	greets := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.WriteString(c, "J\x00\x00\x00\n8.0.36\x00")
		_, _ = io.Copy(io.Discard, c)
	})
	news := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.WriteString(c, "INFO {\"server_id\":\"A\"}\r\n")
		_, _ = io.Copy(io.Discard, c)
	})
	streams := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { // the settings of grpc-go
		_, _ = io.WriteString(c, "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00@\x00")
		_, _ = io.Copy(io.Discard, c)
	})
	locked := listen(t, "tcp", "127.0.0.1:0", redis("open"))
	pages := refuses.Listener.Addr().String()
	silent := listen(t, "tcp", "127.0.0.1:0", mute)
	sealed, choosy := secure.Listener.Addr().String(), named.Listener.Addr().String()
	give := func(url string) string { return "give its URL: " + remedy.AsRoot("toll trace "+url) }
	let := func(at string) string {
		return "let a client of that protocol make the requests: " +
			remedy.AsRoot("toll trace "+at+" --client 'COMMAND {host} {port}'")
	}
	_, port, _ := net.SplitHostPort(streams)
	const speaks = "the server does not answer such requests: it speaks "
	for i, tt := range []struct{ url, err, hint string }{
		{sealed, speaks + "TLS", "if it is HTTP, " + give("https://"+sealed+"/") + "; or " + let(sealed)},
		{"http://" + sealed, speaks + "TLS",
			"if it is HTTP, " + give("https://"+sealed+"/") + "; or " + let(sealed)},
		{"http://" + choosy, speaks + "TLS",
			"if it is HTTP, " + give("https://"+choosy+"/") + "; or " + let(choosy)},
		{database, speaks + "PostgreSQL", give("postgres://USER@" + database + "/DATABASE")},
		{"http://" + database, speaks + "PostgreSQL",
			give("postgres://USER@" + database + "/DATABASE")},
		{greets, speaks + "MySQL", give("mysql://USER@" + greets + "/DATABASE")},
		{shell, speaks + "SSH", let(shell)},
		{"https://" + pages, speaks + "HTTP", give("http://" + pages + "/")},
		{news, speaks + "NATS", let(news)},
		{streams, speaks + "h2c, as gRPC does", "watch the server while its clients run: " +
			remedy.AsRoot("toll trace --attach "+port)},
		{locked, "PING was answered \"-NOAUTH Authentication required.\"",
			"put the password into an environment variable and name it: --secret-env VARIABLE"},
		{silent, "no reply: connection reset by peer (it answers neither PING nor GET /: give a URL)",
			"let a client make the requests if the server speaks another protocol: " +
				remedy.AsRoot("toll trace HOST:PORT --client 'COMMAND {host} {port}'")},
		{pages, "", ""},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			s, err := speakerOf(Address{URL: tt.url}, "")
			if err != nil {
				t.Fatal(err)
			}
			_, err = (&followed{speaker: s}).few(t.Context())
			if tt.err == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || err.Error() != tt.err {
				t.Errorf("%v, want %q", err, tt.err)
			}
			if got := hint.Of(err); got != tt.hint {
				t.Errorf("%q, want %q", got, tt.hint)
			}
		})
	}
}

// A server that says nothing may wait for another protocol.
func TestLateHasHint(t *testing.T) {
	err := noReply("HTTP", errLate)
	if !errors.Is(err, errLate) || !strings.Contains(hint.Of(err), "--client") {
		t.Errorf("%v: hint %q", err, hint.Of(err))
	}
}

// Who interrupts does not wait for a server that says nothing.
func TestForeignInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	silent := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	s, err := speakerOf(Address{URL: "http://" + silent}, "")
	if err != nil {
		t.Fatal(err)
	}
	asks := s.(interface {
		with(ctx context.Context, do func(net.Conn)) bool
	})
	if !asks.with(ctx, func(c net.Conn) {
		_ = c.SetDeadline(time.Time{})
		defer time.AfterFunc(10*time.Second, func() { _ = c.Close() }).Stop()
		cancel()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the read ended with %v", err)
		}
	}) {
		t.Error("no connection")
	}
}
