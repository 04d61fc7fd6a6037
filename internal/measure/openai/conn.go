package openai

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
)

const (
	pieceSize    = 64 << 10
	maxHandshake = 1 << 20
	maxHead      = 64 << 10
	maxBody      = 64 << 20
)

// MaxHints bounds the informational responses to a request. Servers send one or two.
const MaxHints = 100

// socket reads in large pieces and notes when the last one came. Whatever the layers above return,
// including TLS, arrived with the last read.
type socket struct {
	net.Conn
	buf   []byte
	rest  []byte
	at    time.Time // when the last read returned
	reads int
	left  int   // bytes that may still come
	over  error // the error if more do
	err   error // of the last read

	sent, taken int64    // bytes written, and bytes that the layer above has read
	records     *records // of TLS; nil: none
}

// records follows the records of TLS, so that the layer above reads no byte of the next one.
type records struct {
	left   int // bytes of the record
	header []byte
}

// take returns how many of the bytes that come next belong to the record or its header.
func (r *records) take(b []byte) int {
	const header, sizeAt = 5, 3
	if r.left == 0 {
		n := min(len(b), header-len(r.header))
		if r.header = append(r.header, b[:n]...); len(r.header) == header {
			r.left = int(r.header[sizeAt])<<8 | int(r.header[sizeAt+1])
			r.header = r.header[:0]
		}
		return n
	}
	n := min(len(b), r.left)
	r.left -= n
	return n
}

func (s *socket) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	s.sent += int64(n)
	return n, err
}

// allow bounds what may come from now on.
func (s *socket) allow(n int, over error) { s.left, s.over = n, over }

func (s *socket) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		if s.left == 0 {
			s.err = s.over
			return 0, s.over
		}
		n, err := s.Conn.Read(s.buf[:min(len(s.buf), s.left)])
		s.err = err
		s.at = time.Now()
		s.reads++
		s.left -= n
		s.rest = s.buf[:n]
		if n == 0 {
			return 0, err
		}
	}
	n := min(len(p), len(s.rest))
	if s.records != nil {
		n = s.records.take(s.rest[:n])
	}
	copy(p, s.rest[:n])
	s.rest, s.taken = s.rest[n:], s.taken+int64(n)
	return n, nil
}

type conn struct {
	net.Conn // the socket, or TLS on it
	socket   *socket
	br       *bufio.Reader
	tls      string // its version; "": none
	first    []byte // of the response: enough to distinguish HTTP from other protocols
	hints    int
	hint     string // the status of the last one
	lookUp   time.Duration
	lost     Lost
}

// Lost is what the kernel counted of lost and late packets on the client's side.
type Lost struct {
	Sent       uint32 // segments, each counted as often as it was sent
	Resent     uint32 // segments of requests
	OutOfOrder uint32 // segments of responses
}

// connect opens a connection, with TLS for an https URL. took excludes looking up the name.
func (e *Endpoint) connect(ctx context.Context) (c *conn, took time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(
		ctx, e.o.Timeout, fmt.Errorf("no connection within %v", e.o.Timeout))
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	var raw net.Conn
	how := vantage.Took{Began: time.Now()}
	if e.dial != nil {
		raw, err = e.dial(ctx, e.addr())
	} else {
		raw, how, err = e.o.Dial(ctx, "tcp", e.addr())
	}
	if err != nil {
		return nil, 0, err
	}
	s := &socket{Conn: raw, buf: make([]byte, pieceSize)}
	c = &conn{Conn: s, socket: s, lookUp: how.LookUp}
	if e.url.Scheme == "https" {
		s.allow(maxHandshake, fmt.Errorf("the TLS handshake is longer than %d MiB",
			maxHandshake>>20))
		s.records = &records{}
		t := tls.Client(s, &tls.Config{ServerName: e.url.Hostname(),
			NextProtos: []string{"http/1.1"}, RootCAs: e.roots})
		if err := t.HandshakeContext(ctx); err != nil {
			raw.Close()
			if strings.Contains(err.Error(), noProtocol) {
				return nil, 0, e.onlyHTTP2()
			}
			hint := CertificateHint(err)
			if errors.As(err, new(tls.RecordHeaderError)) {
				hint = "if the server speaks HTTP without TLS, its URL begins with http://"
			}
			// The text may quote the server's certificate.
			return nil, 0, &hinted{"open TLS: " + e.secrets.name(err.Error()), e.secrets.Hide(hint)}
		}
		c.Conn, c.tls = t, tls.VersionName(t.ConnectionState().Version)
	}
	c.br = bufio.NewReader(c.Conn)
	return c, time.Since(how.Began), nil
}

// drop closes the socket, because TLS would first send a closing message and wait for it.
func (c *conn) drop() { c.socket.Close() }

// waitUntil sets the deadline for reads. It fails only on a closed connection, which the next read
// reports.
func (c *conn) waitUntil(t time.Time) { _ = c.SetReadDeadline(t) }

const (
	protocol   = "HTTP/"
	noProtocol = "tls: no application protocol" // the alert's text, whose type is not exported
)

// foreign reports whether the received bytes cannot begin a response.
func (c *conn) foreign() bool { return !strings.HasPrefix(protocol, string(c.first)) }

// http2 reports whether the received bytes begin HTTP/2: a frame of settings, or one that says
// goodbye.
func (c *conn) http2() bool {
	const kind, settings, goAway = 3, 4, 7 // its place in a frame; RFC 9113, 6.5 and 6.8
	return len(c.first) > kind && c.first[0] == 0 &&
		(c.first[kind] == settings || c.first[kind] == goAway)
}

// takesHTTP2 reports whether the server answers the connection preface of HTTP/2 (RFC 9113, 3.4)
// with a frame. Some servers without HTTP/1.1 answer no other request.
func (e *Endpoint) takesHTTP2(ctx context.Context) bool {
	const (
		preface   = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
		settings  = "\x00\x00\x00\x04\x00\x00\x00\x00\x00" // a frame without any
		frameHead = len(settings)
		longest   = 2 * time.Second
	)
	c, _, err := e.connect(ctx)
	if err != nil {
		return false
	}
	defer c.drop()
	c.socket.allow(maxHead, errNoResponse)
	c.waitUntil(time.Now().Add(longest))
	if _, err := io.WriteString(c, preface+settings); err != nil {
		return false
	}
	c.first, _ = c.br.Peek(frameHead)
	return c.http2()
}

var errHints = errors.New("too many informational responses")

// head reads a response's header. Its first byte may come until the deadline, the others within
// limit after that.
func (c *conn) head(deadline time.Time, limit time.Duration) (*http.Response, error) {
	c.first = nil
	if _, err := c.br.Peek(1); err != nil {
		return nil, err
	}
	if soon := time.Now().Add(limit); soon.Before(deadline) {
		c.waitUntil(soon)
	}
	first, _ := c.br.Peek(len(protocol)) // what fails here fails below
	c.first = bytes.Clone(first)
	for c.hints, c.hint = 0, ""; c.hints < MaxHints; c.hints++ {
		resp, err := http.ReadResponse(c.br, nil)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode/100 != 1 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, nil
		}
		c.hint = resp.Status
	}
	return nil, errHints
}

// quiet reports whether nothing, not even the end, has come on an idle connection.
func (c *conn) quiet() bool {
	if c.br.Buffered() > 0 || len(c.socket.rest) > 0 {
		return false
	}
	quiet := true
	c.control(func(fd int) {
		_, _, err := unix.Recvfrom(fd, make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		quiet = errors.Is(err, unix.EAGAIN)
	})
	return quiet
}

// told returns the kernel's smoothed round-trip time, or 0, and what was lost since the last call.
func (c *conn) told() (rtt time.Duration, lost Lost) {
	c.control(func(fd int) {
		if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			rtt = time.Duration(info.Rtt) * time.Microsecond
			now := Lost{info.Segs_out, info.Total_retrans, info.Rcv_ooopack}
			lost = Lost{now.Sent - c.lost.Sent, now.Resent - c.lost.Resent,
				now.OutOfOrder - c.lost.OutOfOrder}
			c.lost = now
		}
	})
	return rtt, lost
}

func (c *conn) control(f func(fd int)) {
	sc, ok := c.socket.Conn.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := sc.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}

func (c *conn) remote() netip.AddrPort { return unmapped(c.socket.RemoteAddr()) }
func (c *conn) local() netip.AddrPort  { return unmapped(c.socket.LocalAddr()) }

func unmapped(addr net.Addr) netip.AddrPort {
	a, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := a.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}
