// Package postgrestest has a server that speaks as much of PostgreSQL's protocol as a client needs
// which prepares a query and repeats it, for tests.
package postgrestest

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

// Server is such a server.
type Server struct {
	Addr    string
	Conns   atomic.Int64 // that logged in
	Open    atomic.Int64 // of those
	Queries atomic.Int64
	answer  Answer
}

// Answer answers the n-th query, from 1. If it returns false, the server hangs up.
type Answer func(c net.Conn, n int64) bool

// Start starts a server, which lasts until the end of the test. It requests the password, unless
// that is "", in clear text. If answer is nil, each query has the answer of Page.
func Start(t testing.TB, password string, answer Answer) *Server {
	t.Helper()
	for _, e := range os.Environ() { // what would change a DSN
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "PG") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("PGPASSFILE", "/nonexistent")
	s := &Server{answer: answer}
	if answer == nil {
		s.answer = Page
	}
	s.Addr = testnet.Serve(t, func(c net.Conn) { s.serve(c, password) }).String()
	return s
}

// DSN returns the address of a database of the server.
func (s *Server) DSN() string { return "postgres://app@" + s.Addr + "/shop?sslmode=disable" }

// Ready says that the server waits for a query.
const Ready = "Z\x00\x00\x00\x05I"

var (
	described = Message('1', "") + Message('t', "\x00\x00") +
		Message('T', "\x00\x01v\x00\x00\x00\x00\x00\x00\x00"+
			"\x00\x00\x00\x19\xff\xff\xff\xff\xff\xff\x00\x00") + Ready
	// Result is the answer of Page: a row with the server's version.
	Result = Message('2', "") + Message('D', "\x00\x01\x00\x00\x00\x14PostgreSQL 99 (test)") +
		Message('C', "SELECT 1\x00") + Ready
)

// Message returns a message of the protocol.
func Message(kind byte, body string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))) + body
}

// Page answers with Result.
func Page(c net.Conn, _ int64) bool {
	_, err := io.WriteString(c, Result)
	return err == nil
}

// say writes to a client, whose end shows at the next reading.
func say(c net.Conn, text string) { _, _ = io.WriteString(c, text) }

func (s *Server) serve(c net.Conn, password string) {
	b := make([]byte, 4096)
	if n, err := c.Read(b); err != nil || n == 8 { // it asks for TLS, and comes again without
		say(c, "N")
		return
	}
	if password != "" {
		say(c, Message('R', "\x00\x00\x00\x03"))
		if n, _ := c.Read(b); n < 6 || string(b[5:n-1]) != password {
			say(c, Message('E', "SFATAL\x00VFATAL\x00C28P01\x00Mwrong password\x00\x00"))
			return
		}
	}
	s.Conns.Add(1)
	s.Open.Add(1)
	defer s.Open.Add(-1)
	say(c, Message('R', "\x00\x00\x00\x00")+Ready)
	for {
		n, err := c.Read(b)
		switch {
		case err != nil || n == 0 || b[0] == 'X':
			return
		case b[0] == 'P': // prepare
			say(c, described)
		case !s.answer(c, s.Queries.Add(1)):
			return
		}
	}
}
