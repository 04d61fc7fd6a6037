package fast

import (
	"bufio"
	"bytes"
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

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// A speech defines a request to a port and the expected answer. No request changes the server's
// data, except what the user named.
type speech struct {
	name string
	// open starts a connection; nil: there is nothing to send.
	open func(*bufio.ReadWriter) error
	// ask sends one request and reads its answer; nil: open is the whole exchange.
	ask func(*bufio.ReadWriter) (bytes int64, err error)
	// bulk reports that ask transfers so much that only its rate counts.
	bulk bool
}

const (
	bulkBytes = 1 << 20          // a large request
	answering = 10 * time.Second // the longest time for an answer
	hearing   = 2 * time.Second  // the same for a server that may not understand
	speaking  = 300 * time.Millisecond
	mostReply = 64 << 20
)

// Speeches lists the values of --measure.
func Speeches() []string {
	return []string{"auto", "http", "http:/PATH", "post:/PATH", "redis", "redis-bulk", "postgres", "greeting"}
}

// errSpeech reports an unknown value of --measure.
type errSpeech struct{ word string }

func (e *errSpeech) Error() string { return fmt.Sprintf("--measure=%.80s: no such load", e.word) }

// ParseSpeech checks a value of --measure.
func ParseSpeech(word string) error {
	if word == auto {
		return nil
	}
	_, err := speechOf(word, "")
	return err
}

const auto = "auto"

func speechOf(word, host string) (speech, error) {
	kind, target, has := strings.Cut(word, ":")
	if has {
		if _, err := url.ParseRequestURI(target); err != nil || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") || strings.ContainsAny(target, " \r\n") {
			return speech{}, &errSpeech{word}
		}
	}
	switch {
	case kind == "http":
		if !has {
			target = "/"
		}
		return httpSpeech(http.MethodGet, target, host, 0), nil
	case kind == "post" && has:
		return httpSpeech(http.MethodPost, target, host, bulkBytes), nil
	case has:
	case kind == "redis":
		return redisSpeech(0), nil
	case kind == "redis-bulk":
		return redisSpeech(bulkBytes), nil
	case kind == "postgres":
		return postgresSpeech, nil
	case kind == "greeting":
		return greetingSpeech, nil
	}
	return speech{}, &errSpeech{word}
}

// httpSpeech requests a page over a kept connection. Any answer but a server error is valid.
func httpSpeech(method, target, host string, body int) speech {
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: toll\r\nAccept: */*\r\n", method, target, host)
	if body > 0 {
		head += fmt.Sprintf("Content-Type: application/octet-stream\r\nContent-Length: %d\r\n", body)
	}
	request := append([]byte(head+"\r\n"), make([]byte, body)...)
	name := "http " + target
	if method == http.MethodPost {
		name = "post " + target
	}
	return speech{name: name, bulk: body > 0, ask: func(c *bufio.ReadWriter) (int64, error) {
		if err := send(c, request); err != nil {
			return 0, err
		}
		r, err := http.ReadResponse(c.Reader, &http.Request{Method: method})
		if err != nil {
			return 0, err
		}
		n, err := io.Copy(io.Discard, io.LimitReader(r.Body, mostReply))
		switch {
		case err != nil:
			return n, err
		case r.StatusCode >= http.StatusInternalServerError:
			return n, fmt.Errorf("the server answered %s", r.Status)
		case r.Close:
			err = errLast
		}
		return n + int64(body), err
	}}
}

// errLast reports that a connection takes no more requests.
var errLast = errors.New("the server ends the connection")

// redisSpeech sends PING with a payload that the server returns. An error of a server that requires
// a password counts as an answer.
func redisSpeech(payload int) speech {
	request := []byte("PING\r\n")
	name := "redis"
	if payload > 0 {
		name = "redis-bulk"
		request = append(fmt.Appendf(nil, "*2\r\n$4\r\nPING\r\n$%d\r\n", payload), bytes.Repeat([]byte("x"), payload)...)
		request = append(request, "\r\n"...)
	}
	return speech{name: name, bulk: payload > 0, ask: func(c *bufio.ReadWriter) (int64, error) {
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
		return 0, fmt.Errorf("the server answered %q, which is not Redis", line)
	}}
}

// postgresSpeech asks whether the server supports encryption, which it answers before
// authentication.
var postgresSpeech = speech{name: "postgres", open: func(c *bufio.ReadWriter) error {
	const sslRequest = 80877103 // of PostgreSQL's protocol, "SSLRequest"
	if err := send(c, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), sslRequest)); err != nil {
		return err
	}
	b, err := c.ReadByte()
	if err == nil && b != 'S' && b != 'N' {
		err = fmt.Errorf("the server answered %q, which is not PostgreSQL", b)
	}
	return err
}}

// greetingSpeech waits for a server that speaks first: MySQL, SSH, SMTP, FTP.
var greetingSpeech = speech{name: "greeting", open: func(c *bufio.ReadWriter) error {
	_, err := c.ReadByte()
	return err
}}

func send(c *bufio.ReadWriter, b []byte) error {
	_, err := c.Write(b)
	return errors.Join(err, c.Flush())
}

// dialTo connects to a port. The connection times out after patience.
func dialTo(ctx context.Context, at string, patience time.Duration) (net.Conn, *bufio.ReadWriter, error) {
	d := net.Dialer{Timeout: answering}
	c, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, nil, err
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	return c, bufio.NewReadWriter(bufio.NewReaderSize(c, 64<<10), bufio.NewWriterSize(c, 64<<10)), nil
}

// recognize finds out which protocol a port speaks. It first tries the usual one of the container's
// port, because a server may log requests that it does not understand.
func recognize(ctx context.Context, at string, containerPort uint16) (speech, error) {
	order := []string{"http", "redis", "postgres"}
	if usual := map[uint16]string{6379: "redis", 5432: "postgres"}[containerPort]; usual != "" {
		order = append([]string{usual}, slices.DeleteFunc(order, func(s string) bool { return s == usual })...)
	}
	if try(ctx, at, greetingSpeech, speaking) == nil {
		return greetingSpeech, nil
	}
	for _, word := range order {
		s, err := speechOf(word, at)
		if err == nil {
			err = try(ctx, at, s, hearing)
		}
		if err == nil || errors.Is(err, errLast) {
			return s, nil
		}
		if ctx.Err() != nil {
			return speech{}, ctx.Err()
		}
	}
	return speech{}, &path.UnsupportedError{Missing: "nothing that toll can say is answered at " + at + ": what it speaks is not known",
		Remedy: "--measure=http:/PATH, or one of " + strings.Join(Speeches()[3:], ", ")}
}

func try(ctx context.Context, at string, s speech, patience time.Duration) error {
	c, rw, err := dialTo(ctx, at, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	if s.open != nil {
		err = s.open(rw)
	}
	if err == nil && s.ask != nil {
		_, err = s.ask(rw)
	}
	return err
}

// spoken explains the figures of speeches.
const spoken = "connecting: a new connection and its first answer; request: over a kept one; throughput: of requests that move much"

// load returns the speech as a Load of a port.
func (s speech) load(at string) *Load {
	return &Load{Name: s.name, Note: spoken, Metrics: []Metric{{Connecting, "s", false}, {Asking, "s", false}, {Moving, "bit/s", true}},
		Visit: func(ctx context.Context, long time.Duration) (map[string]float64, error) {
			return s.visit(ctx, at, long)
		}}
}

// bulkReply is the size in bytes from which an answer's rate counts rather than its time.
const bulkReply = 64 << 10

// visit sends requests to a port for the time long. It returns the median times of a new connection
// and of a request over a kept one, in s, or the rate of requests, in bit/s.
func (s speech) visit(ctx context.Context, at string, long time.Duration) (map[string]float64, error) {
	var connecting, asking []float64
	var moved, first int64 // over kept connections, and by first requests
	var spent, firstTook time.Duration
	for end := time.Now().Add(long); len(connecting) < greetings || time.Now().Before(end); {
		began := time.Now()
		c, rw, err := dialTo(ctx, at, answering)
		if err != nil {
			return nil, err
		}
		if s.open != nil {
			err = s.open(rw)
		}
		var n int64
		if err == nil && s.ask != nil {
			n, err = s.ask(rw)
		}
		took := time.Since(began)
		connecting = append(connecting, took.Seconds())
		first, firstTook = first+n, firstTook+took
		for last := len(connecting) >= greetings; err == nil && last && s.ask != nil && time.Now().Before(end) && ctx.Err() == nil; {
			began := time.Now()
			_ = c.SetDeadline(began.Add(answering))
			var n int64
			n, err = s.ask(rw)
			if err == nil || errors.Is(err, errLast) {
				took := time.Since(began)
				asking, moved, spent = append(asking, took.Seconds()), moved+n, spent+took
			}
		}
		c.Close()
		if err != nil && !errors.Is(err, errLast) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	out := map[string]float64{Connecting: stats.Median(connecting)}
	switch {
	case len(asking) == 0 && first/int64(len(connecting)) >= bulkReply: // a server that keeps no connection
		out[Moving] = 8 * float64(first) / firstTook.Seconds()
	case len(asking) == 0:
	case s.bulk || moved/int64(len(asking)) >= bulkReply:
		out[Moving] = 8 * float64(moved) / spent.Seconds()
	default:
		out[Asking] = stats.Median(asking)
	}
	return out, nil
}
