package database

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
)

const (
	maxReceived = 64 << 20 // in one page, login or answer
	maxHead     = 64       // of a connection's beginning
)

var (
	errTooMuch = errors.New("the server sent more than 64 MiB")
	errDial    = errors.New("toll opens no second connection")
	errColumns = errors.New("the server declared more columns than a result can have")
)

// link is a session's connection. All drivers dial through it, so that bytes are counted and times
// bounded alike. Operations are cancelled by closing it, because the drivers' own methods differ
// and some need the server's help.
type link struct {
	ctx    context.Context // done, with the cause, once the link is cut
	cancel context.CancelCauseFunc

	sent, received atomic.Int64
	most           atomic.Int64
	out            atomic.Uint32 // the first two bytes of the last write

	mu     sync.Mutex
	closed bool // no more dialling after the login
	conn   net.Conn
	wrote  []byte
	read   []byte
	err    error // the first one
	tls    string
	lookUp time.Duration
	at     netip.Addr // the address that the DSN's name stands for; zero: the dialler looks it up
	from   func(ctx context.Context, network, addr string) (net.Conn, vantage.Took, error)
	answer []byte // the first bytes since the last write

	// leaks returns an error for a write in a login without TLS that would reveal the password;
	// nil: no check.
	leaks func(out []byte) error

	// hostile returns an error for an answer, by its first bytes, that the driver must not see
	// without TLS; nil: no check.
	hostile func(answer []byte) error
}

// answerHead is how many bytes of an answer hostile gets.
const answerHead = 5

func newLink(from func(ctx context.Context, network, addr string) (net.Conn, vantage.Took,
	error)) *link {
	l := &link{from: from}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// allow lets the server send maxReceived more bytes.
func (l *link) allow() { l.most.Store(l.received.Load() + maxReceived) }

// cut closes the connection for good. Of several causes, the first one is kept.
func (l *link) cut(cause error) {
	l.cancel(cause)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.conn != nil {
		l.conn.Close()
	}
}

// login is the key of a value in the contexts of a login's dials. Other dials cancel a query.
type login struct{}

// dial may be called again in a login if the server lacks TLS.
func (l *link) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if ctx.Value(login{}) == nil {
		return nil, errDial
	}
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return nil, errDial
	}
	if _, port, err := net.SplitHostPort(addr); err == nil && l.at.IsValid() {
		addr = net.JoinHostPort(l.at.String(), port)
	}
	c, took, err := l.from(l.ctx, network, addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookUp += took.LookUp
	if err != nil {
		l.err = err
		return nil, err
	}
	if l.closed {
		c.Close()
		return nil, errDial
	}
	l.conn, l.err, l.tls = c, nil, ""
	l.read, l.wrote = nil, nil
	return &conn{c, l}, nil
}

func (l *link) loggedIn() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
}

// conn deliberately lacks SyscallConn, with which the MySQL driver would look at the socket before
// a query.
type conn struct {
	net.Conn
	l *link
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	before := c.l.received.Add(int64(n)) - int64(n)
	c.l.note(&c.l.read, b[:n], err)
	if err := c.l.checkAnswer(b[:n]); err != nil {
		c.l.cut(err)
		return 0, err
	}
	if before+int64(n) > c.l.most.Load() {
		c.l.cut(errTooMuch)
		return n, errTooMuch
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	if err := c.l.checkLogin(b); err != nil {
		c.l.cut(err)
		return 0, err
	}
	n, err := c.Conn.Write(b)
	c.l.sent.Add(int64(n))
	if n > 1 {
		c.l.out.Store(uint32(b[0])<<8 | uint32(b[1]))
	}
	c.l.note(&c.l.wrote, b[:n], err)
	c.l.mu.Lock()
	c.l.answer = c.l.answer[:0]
	c.l.mu.Unlock()
	return n, err
}

func (l *link) checkLogin(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaks == nil || l.closed || l.tls != "" {
		return nil
	}
	return l.leaks(b)
}

func (l *link) checkAnswer(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hostile == nil || !l.closed || l.tls != "" || len(l.answer) >= answerHead {
		return nil
	}
	l.answer = append(l.answer, b[:min(answerHead-len(l.answer), len(b))]...)
	if len(l.answer) < answerHead {
		return nil
	}
	return l.hostile(l.answer)
}

func (l *link) note(head *[]byte, b []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if room := maxHead - len(*head); room > 0 {
		*head = append(*head, b[:min(room, len(b))]...)
	}
	if err != nil && l.err == nil && !errors.Is(err, net.ErrClosed) {
		l.err = err
	}
}

func (l *link) heads() (wrote, read []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wrote, l.read, l.err
}

func (l *link) remote() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return ""
	}
	return l.conn.RemoteAddr().String()
}

// tlsInUse returns the TLS version, or "". It notes if the last write was not encrypted, because
// SQL Server's TLS may end with the login.
func (l *link) tlsInUse() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	const applicationData = 0x1703 // a TLS record's first two bytes
	if l.tls != "" && l.out.Load() != applicationData {
		return l.tls + " (login only)"
	}
	return l.tls
}

func (l *link) rtt() time.Duration {
	if info := l.info(); info != nil {
		return time.Duration(info.Rtt) * time.Microsecond
	}
	return 0
}

// info returns nil for a Unix socket and for a closed connection.
func (l *link) info() (info *unix.TCPInfo) {
	l.mu.Lock()
	c, ok := l.conn.(*net.TCPConn)
	l.mu.Unlock()
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	_ = raw.Control(func(fd uintptr) {
		if got, err := unix.GetsockoptTCPInfo(int(fd), unix.SOL_TCP, unix.TCP_INFO); err == nil {
			info = got
		}
	})
	return info
}
