package endpoint

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// protocol has what a Probe sends. Its requests change no data of the server, except what the user
// named.
type protocol struct {
	name string
	// open starts a connection; nil: nothing to send.
	open func(*bufio.ReadWriter) error
	// ask sends one request and reads its answer; nil: open is all.
	ask func(*bufio.ReadWriter) (bytes int64, err error)
	// bulk means that only ask's rate counts.
	bulk bool
}

const (
	bulkBytes = 1 << 20                // a large request
	answering = 10 * time.Second       // the longest time for an answer
	hearing   = 2 * time.Second        // the same if the server may not know the protocol
	speaking  = 300 * time.Millisecond // the longest time until a server speaks first
	mostReply = 64 << 20               // the bytes of a body that are read
)

// Probes lists the words for what a Probe sends.
func Probes() []string {
	return []string{auto, "http", "http:/PATH", "post:/PATH", "redis", "redis-bulk", "postgres",
		"greeting"}
}

// CheckProbe returns an error for a word that is not one of Probes.
func CheckProbe(word string) error {
	if word == auto {
		return nil
	}
	_, err := protocolOf(word, "")
	return err
}

const auto = "auto"

func protocolOf(word, host string) (protocol, error) {
	kind, target, has := strings.Cut(word, ":")
	_, err := url.ParseRequestURI(target)
	bad := err != nil || target[0] != '/' || strings.HasPrefix(target, "//") ||
		strings.ContainsAny(target, " \r\n")
	switch {
	case has && bad:
	case kind == "http":
		if !has {
			target = "/"
		}
		return httpProtocol(http.MethodGet, target, host, 0), nil
	case kind == "post" && has:
		return httpProtocol(http.MethodPost, target, host, bulkBytes), nil
	case has:
	case kind == "redis":
		return redisProtocol(0), nil
	case kind == "redis-bulk":
		return redisProtocol(bulkBytes), nil
	case kind == "postgres":
		return postgresProtocol, nil
	case kind == "greeting":
		return greetingProtocol, nil
	}
	return protocol{}, fmt.Errorf("%.80q is not a request that toll knows", word)
}

// httpProtocol accepts any answer but a server error.
func httpProtocol(method, target, host string, body int) protocol {
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: toll\r\nAccept: */*\r\n",
		method, target, host)
	if body > 0 {
		head += fmt.Sprintf("Content-Type: application/octet-stream\r\nContent-Length: %d\r\n",
			body)
	}
	request := append([]byte(head+"\r\n"), make([]byte, body)...)
	name := "http " + target
	if method == http.MethodPost {
		name = "post " + target
	}
	return protocol{name: name, bulk: body > 0, ask: func(c *bufio.ReadWriter) (int64, error) {
		if err := send(c, request); err != nil {
			return 0, err
		}
		r, err := http.ReadResponse(c.Reader, &http.Request{Method: method})
		if err != nil {
			const most = 200
			if text := err.Error(); len(text) > most { // it quotes the server's whole line
				err = errors.New(printable.Limit(text, most))
			}
			return 0, fmt.Errorf("read the answer: %w", err)
		}
		n, err := io.Copy(io.Discard, io.LimitReader(r.Body, mostReply))
		switch {
		case err != nil:
			return n, err
		case r.StatusCode >= http.StatusInternalServerError:
			return n, fmt.Errorf("the server answered %.80s", r.Status)
		case r.Close || n == mostReply: // then the rest of the body may follow
			err = errLast
		}
		return n + int64(body), err
	}}
}

var errLast = errors.New("the server ends the connection")

// redisProtocol accepts an error as an answer, because the server may require a password.
func redisProtocol(payload int) protocol {
	request := []byte("PING\r\n")
	name := "redis"
	if payload > 0 {
		name = "redis-bulk"
		request = fmt.Appendf(nil, "*2\r\n$4\r\nPING\r\n$%d\r\n%s\r\n", payload,
			strings.Repeat("x", payload))
	}
	return protocol{name: name, bulk: payload > 0, ask: func(c *bufio.ReadWriter) (int64, error) {
		if err := send(c, request); err != nil {
			return 0, err
		}
		line, err := c.ReadString('\n')
		if err != nil {
			return 0, err
		}
		switch {
		case payload == 0 && (strings.HasPrefix(line, "+PONG") || strings.HasPrefix(line, "-")):
			return int64(len(request) + len(line)), nil
		case payload > 0 && line == fmt.Sprintf("$%d\r\n", payload):
			n, err := io.CopyN(io.Discard, c, int64(payload)+2)
			return n + int64(len(request)), err
		}
		return 0, fmt.Errorf("the server answered %.80q, which is not Redis", line)
	}}
}

// postgresProtocol asks whether the server supports encryption, which needs no authentication.
var postgresProtocol = protocol{name: "postgres", open: func(c *bufio.ReadWriter) error {
	const sslRequest = 80877103
	request := binary.BigEndian.AppendUint64(nil, 8<<32|sslRequest) // its length and its code
	if err := send(c, request); err != nil {
		return err
	}
	b, err := c.ReadByte()
	if err == nil && b != 'S' && b != 'N' {
		err = fmt.Errorf("the server answered %q, which is not PostgreSQL", b)
	}
	return err
}}

// greetingProtocol waits for the first byte of a server that speaks first: MySQL, SSH, SMTP, FTP.
var greetingProtocol = protocol{name: "greeting", open: func(c *bufio.ReadWriter) error {
	_, err := c.ReadByte()
	return err
}}

func send(c *bufio.ReadWriter, b []byte) error {
	_, err := c.Write(b)
	return errors.Join(err, c.Flush())
}

func dialTo(ctx context.Context, at string, patience time.Duration) (
	net.Conn, *bufio.ReadWriter, error) {
	d := net.Dialer{Timeout: answering}
	c, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, nil, err
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	return c, bufio.NewReadWriter(bufio.NewReaderSize(c, 64<<10), bufio.NewWriterSize(c, 64<<10)),
		nil
}

// recognize returns the first protocol in which the server answers. It tries the usual one of the
// container's port first, because a server may log requests that it does not understand.
func recognize(ctx context.Context, at string, containerPort uint16) (protocol, error) {
	order := []string{"http", "redis", "postgres"}
	if usual := map[uint16]string{6379: "redis", 5432: "postgres"}[containerPort]; usual != "" {
		order = slices.DeleteFunc(order, func(s string) bool { return s == usual })
		order = append([]string{usual}, order...)
	}
	if try(ctx, at, greetingProtocol, speaking) == nil {
		return greetingProtocol, nil
	}
	for _, word := range order {
		s, err := protocolOf(word, at)
		if err == nil {
			err = try(ctx, at, s, hearing)
		}
		if err == nil || errors.Is(err, errLast) {
			return s, nil
		}
		if ctx.Err() != nil {
			return protocol{}, ctx.Err()
		}
	}
	return protocol{}, &machine.UnsupportedError{
		Missing: "cannot tell the protocol at " + at + ": none of toll's requests " +
			"got a valid answer",
		Remedy: "name its protocol: http:/PATH, or one of " + strings.Join(Probes()[3:], ", ")}
}

func try(ctx context.Context, at string, s protocol, patience time.Duration) error {
	c, rw, err := dialTo(ctx, at, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	_, err = s.greet(rw)
	return err
}

func (s protocol) greet(rw *bufio.ReadWriter) (n int64, err error) {
	if s.open != nil {
		err = s.open(rw)
	}
	if err == nil && s.ask != nil {
		n, err = s.ask(rw)
	}
	return n, err
}
