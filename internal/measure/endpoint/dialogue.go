package endpoint

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/measure/database"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// dialogueTimeout bounds a connection, a login and each request. Tests change it.
var dialogueTimeout = 10 * time.Second

// dialogue is a connection on which requests and replies take turns.
type dialogue struct {
	ask    func(ctx context.Context) error
	close  func()
	stop   func() // makes ask return; nil: its context does
	local  uint16
	remote string // address and port
	server string // what it says that it is; "": unknown
	status int    // of the last reply of HTTP
	// spent means that the server has ended the connection, which answered several requests, or
	// follows another one (later).
	spent, later bool
	// replies tells how its requests over UDP, or of HTTP, were answered.
	replies tokens.Replies
}

// speaker opens such connections to an address.
type speaker interface {
	open(ctx context.Context) (*dialogue, error)
	// words describes a request: "GET /".
	words() string
}

// speakerOf returns the client of a URL, or of HOST:PORT, whose server is asked what it speaks.
func speakerOf(a Address, password string) (speaker, error) {
	if OnUnixSocket(a.URL) {
		return nil, UnixSocketError{}
	}
	if !strings.Contains(a.URL, "://") {
		if _, err := parseRoute(a.URL); err != nil {
			return nil, err
		}
		return &guess{wire{a.URL, a.dialler()}, password, nil}, nil
	}
	u, err := url.Parse(a.URL)
	if err != nil || u.Host == "" {
		return nil, errors.New("not a URL with a host") // url's own error would quote a password
	}
	switch u.Scheme {
	case "http", "https":
		return newHTTP(a, u)
	case "redis":
		return newRedis(a, u, password)
	case "postgres", "postgresql", "mysql", "sqlserver":
		return newQueries(a, password)
	case "dns":
		return newResolver(a, u)
	}
	return nil, &unspokenError{printable.Line(u.Scheme), printable.Line(u.Host)}
}

// OnUnixSocket reports whether an address is that of a Unix socket: a path, an abstract name with @,
// or a URL of one.
func OnUnixSocket(address string) bool {
	scheme, rest, url := strings.Cut(address, "://")
	switch {
	case !url:
		return strings.HasPrefix(address, "/") || strings.HasPrefix(address, "@") ||
			strings.HasPrefix(address, "unix:")
	case strings.Contains(scheme, "unix"):
		return true
	}
	return strings.HasPrefix(scheme, "postgres") && strings.HasPrefix(rest, "/")
}

// UnixSocketError means that the requests to a Unix socket cannot be traced.
type UnixSocketError struct{}

func (UnixSocketError) Error() string {
	return "a Unix socket: no packets go there that could be followed"
}

// Hint returns what can be traced instead.
func (UnixSocketError) Hint() string {
	return "trace the requests to the TCP port in front of it, in whose server's part its time is: " +
		remedy.AsRoot("toll trace --attach 80")
}

// unspokenError means that toll's own client does not speak the protocol of a URL's scheme.
type unspokenError struct{ scheme, host string }

// datagrams are the schemes of other protocols whose requests are UDP packets.
var datagrams = []string{udpScheme, "ntp", "coap", "quic"}

func (u *unspokenError) Error() string {
	return fmt.Sprintf("toll makes no requests to %s:// (only to http, https, redis, postgres, "+
		"mysql, sqlserver and dns)", u.scheme)
}

func (u *unspokenError) Hint() string {
	over := ""
	if slices.Contains(datagrams, u.scheme) {
		over = udpScheme + "://"
	}
	return "let a client of that protocol make them: " + byClient(over+"HOST:PORT")
}

// wire opens TCP connections whose reads and writes are plain system calls of their thread.
type wire struct {
	host    string // and port
	connect dialFunc
}

func withPort(u *url.URL, usual string) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), usual)
}

var errLate = fmt.Errorf("no reply within %v", dialogueTimeout)

// plain is a socket in blocking mode, of which each call ends within its timeout, and all calls
// until a deadline.
type plain struct {
	net.Conn
	fd    int
	until *time.Time // zero: no deadline
}

// within sets the deadline of the calls that follow.
func (p plain) within(d time.Duration) { *p.until = time.Now().Add(d) }

func (p plain) Read(b []byte) (int, error) {
	if !p.until.IsZero() && time.Now().After(*p.until) {
		return 0, errLate
	}
	for {
		n, err := unix.Read(p.fd, b)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return 0, errLate
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (p plain) Write(b []byte) (done int, err error) {
	for done < len(b) {
		n, err := unix.Write(p.fd, b[done:])
		if n > 0 {
			done += n
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return done, err
		}
	}
	return done, nil
}

func (p plain) Close() error { return errors.Join(unix.Close(p.fd), p.Conn.Close()) }

func (w wire) dial(ctx context.Context) (c plain, t *dialogue, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, dialogueTimeout,
		fmt.Errorf("no connection within %v", dialogueTimeout))
	defer cancel()
	raw, _, err := w.connect(ctx, "tcp", w.host)
	if err != nil {
		return c, nil, err
	}
	tcp, ok := raw.(*net.TCPConn)
	if !ok {
		return c, nil, errors.Join(errNoTCP, raw.Close())
	}
	if c, err = blocking(raw, tcp, dialogueTimeout); err != nil {
		return c, nil, err
	}
	c.within(dialogueTimeout)
	return c, dialogueOn(c, raw.LocalAddr().(*net.TCPAddr).AddrPort()), nil
}

// dialogueOn returns a dialogue, which asks nothing yet, on a socket with a local address.
func dialogueOn(c plain, local netip.AddrPort) *dialogue {
	return &dialogue{local: local.Port(), remote: c.RemoteAddr().String(),
		close: func() { _ = c.Close() }, stop: func() { _ = unix.Shutdown(c.fd, unix.SHUT_RDWR) }}
}

// blocking returns a connection's socket in blocking mode, whose calls time out. It closes the
// connection if it fails.
func blocking(raw net.Conn, socket syscall.Conn, timeout time.Duration) (c plain, err error) {
	control, err := socket.SyscallConn()
	if err == nil {
		errControl := control.Control(func(fd uintptr) {
			c.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
		})
		err = errors.Join(err, errControl)
	}
	if err != nil {
		return c, errors.Join(err, raw.Close())
	}
	c.Conn, c.until = raw, &time.Time{}
	wait := unix.NsecToTimeval(timeout.Nanoseconds())
	err = errors.Join(unix.SetNonblock(c.fd, false),
		unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait))
	if err != nil {
		return c, errors.Join(err, c.Close())
	}
	return c, nil
}

// get is a client of HTTP.
type get struct {
	wire
	url     *url.URL
	request []byte
}

func newHTTP(a Address, u *url.URL) (speaker, error) {
	if u.User != nil {
		return nil, errors.New("a user in the URL: toll sends no credentials over HTTP")
	}
	usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return httpOver(wire{withPort(u, usual), a.dialler()}, u), nil
}

func httpOver(w wire, u *url.URL) *get {
	return &get{w, u, fmt.Appendf(nil,
		"GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: toll\r\nAccept: */*\r\n\r\n", u.RequestURI(),
		u.Host)}
}

func (g *get) words() string { return "GET " + g.url.RequestURI() }

func (g *get) open(ctx context.Context) (*dialogue, error) {
	c, t, err := g.dial(ctx)
	if err != nil {
		return nil, err
	}
	var rw net.Conn = c
	if g.url.Scheme == "https" {
		secured := tls.Client(c, &tls.Config{ServerName: g.url.Hostname()})
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(untrusted(err, g.host), c.Close())
		}
		rw = secured
	}
	// A reply's body is not copied from one buffer to another, which takes as long as a fast server.
	const head, body = 16 << 10, 256 << 10
	br, buffer := bufio.NewReaderSize(rw, head), make([]byte, body)
	replies := 0
	t.replies.Errors = map[string]int{}
	t.ask = func(context.Context) error {
		c.within(dialogueTimeout)
		if _, err := rw.Write(g.request); err != nil {
			return t.over(replies, err)
		}
		if _, err := br.Peek(1); err != nil {
			return t.over(replies, noReply("HTTP", err))
		}
		r, err := response(br)
		if err != nil {
			return err
		}
		for err == nil {
			_, err = r.Body.Read(buffer)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		replies++
		if t.status = r.StatusCode; t.status/100 != 2 {
			t.replies.Errors[strings.TrimSpace(fmt.Sprint(t.status, " ", http.StatusText(t.status)))]++
		}
		if t.server = r.Header.Get("Server"); err == nil && r.Close {
			if t.spent = t.later || replies > 1; !t.spent {
				err = closesError{}
			}
		}
		return err
	}
	return t, nil
}

// errSpent means that a request had no reply because the server had ended the connection.
var errSpent = errors.New("the server ended the connection between two requests")

// over returns errSpent if the server ended a connection instead of a reply after others, as for a
// limit of requests or of time, or else err. The request counts as unanswered.
func (t *dialogue) over(replies int, err error) error {
	ended := errors.Is(err, errEnded) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
	if t.spent = replies > 0 && ended; t.spent {
		t.replies.Unanswered++
		return errSpent
	}
	return err
}

// response reads a response's header, behind informational ones.
func response(br *bufio.Reader) (*http.Response, error) {
	for range openai.MaxHints {
		r, err := http.ReadResponse(br, nil)
		if err != nil {
			return nil, noReply("HTTP", err)
		}
		if r.StatusCode/100 != 1 || r.StatusCode == http.StatusSwitchingProtocols {
			return r, nil
		}
	}
	return nil, unansweredError{text: fmt.Sprintf("no reply, but %d informational responses",
		openai.MaxHints)}
}

// closesError is the refusal of a server that ends the connection after each reply.
type closesError struct{}

func (closesError) Error() string {
	return "the server ends the connection after each reply, and requests are traced on one"
}

func (closesError) Hint() string {
	return "toll trace HOST:PORT --client 'curl -so /dev/null http://{addr}/' traces requests on " +
		"connections of their own"
}

// unansweredError means that a server did not answer in the protocol of the request.
type unansweredError struct {
	text string
	err  error
}

func (u unansweredError) Error() string { return u.text }

func (u unansweredError) Unwrap() error { return u.err }

func (unansweredError) Hint() string {
	return "let a client make the requests if the server speaks another protocol, such as HTTP/2 or gRPC: " +
		byClient("HOST:PORT")
}

var errEnded = errors.New("the server ended the connection instead of a reply")

// noReply explains an error of reading a reply.
func noReply(protocol string, err error) error {
	var errno unix.Errno
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return unansweredError{errEnded.Error(), errEnded}
	case errors.As(err, &errno):
		return unansweredError{"no reply: " + errno.Error(), errno}
	case errors.Is(err, errLate):
		return err
	}
	return unansweredError{text: fmt.Sprintf("no reply of %s: %s", protocol,
		printable.Line(err.Error()))}
}

// untrustedError means that the certificate of a server of HTTPS is not accepted.
type untrustedError struct{ why, hint string }

func (u untrustedError) Error() string { return "the server's certificate: " + u.why }

func (u untrustedError) Hint() string {
	return u.hint + "; or let a client make the requests: toll trace HOST:PORT " +
		"--client 'curl -kso /dev/null https://{addr}/'"
}

// untrusted explains an error of a handshake with a host.
func untrusted(err error, host string) error {
	if cert := (*tls.CertificateVerificationError)(nil); errors.As(err, &cert) {
		return untrustedError{printable.Line(cert.Err.Error()), openai.CertificateHint(err)}
	}
	if record := (tls.RecordHeaderError{}); errors.As(err, &record) {
		if is := database.Speaks(nil, record.RecordHeader[:]); is != "" {
			return foreignError{is, host}
		}
	}
	return err
}

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
		if _, err := c.Write(request); err != nil {
			return err
		}
		line, err := br.ReadSlice('\n')
		switch text := strings.TrimSpace(string(line)); {
		case err != nil:
			return noReply("Redis", err)
		case text != want:
			return unlikeError{words[0], printable.Line(text)}
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

// guess finds what a server speaks.
type guess struct {
	wire
	password string
	is       speaker
}

func (g *guess) words() string {
	if g.is == nil {
		return "a request"
	}
	return g.is.words()
}

func (g *guess) open(ctx context.Context) (*dialogue, error) {
	if g.is == nil {
		g.is = &ping{g.wire, "", g.password}
		t, err := g.is.open(ctx)
		asked := err == nil
		if asked {
			err = t.ask(ctx)
		}
		refused := unlikeError{}
		redis := errors.As(err, &refused) && refused.redis()
		switch {
		case asked && (err == nil || redis):
			return t, nil
		case redis: // the password
			return nil, err
		case asked:
			t.close()
		}
		u := &url.URL{Scheme: "http", Host: g.host, Path: "/"}
		g.is = httpOver(g.wire, u)
	}
	t, err := g.is.open(ctx)
	if err != nil {
		return nil, err
	}
	ask := t.ask
	t.ask = func(ctx context.Context) error {
		if err := ask(ctx); err != nil {
			return fmt.Errorf("%w (it answers neither PING nor GET /: give a URL)", err)
		}
		t.ask = ask
		return nil
	}
	return t, nil
}

// queries is a client of a database.
type queries struct {
	*database.Database
	dialled *netip.AddrPort // the last connection's local address
	facts   *database.Facts
}

func newQueries(a Address, password string) (speaker, error) {
	q := &queries{dialled: &netip.AddrPort{}}
	dial := a.dialler()
	d, err := database.New(a.URL, database.Options{Query: "select 1", Queries: 1, Password: password,
		Timeout: dialogueTimeout, LookUp: a.lookUps(),
		Dial: func(ctx context.Context, network, addr string) (net.Conn, vantage.Took, error) {
			c, took, err := dial(ctx, network, addr)
			if err == nil {
				if at, ok := c.LocalAddr().(*net.TCPAddr); ok {
					*q.dialled = at.AddrPort()
				}
			}
			return c, took, err
		}})
	q.Database = d
	return q, err
}

func (q *queries) words() string { return "select 1" }

func (q *queries) open(ctx context.Context) (*dialogue, error) {
	if q.facts == nil {
		f, err := q.Probe(ctx)
		if err != nil {
			return nil, err
		}
		q.facts = &f
	}
	s, err := q.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &dialogue{local: q.dialled.Port(), remote: q.facts.Remote, server: q.facts.Server,
		close: func() { _ = s.Close() }, ask: func(ctx context.Context) error {
			_, err := s.Page(ctx, nil)
			return err
		}}, nil
}
