package database

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

const (
	brief    = 300 * time.Millisecond
	patience = 20 * time.Second
)

func serve(t *testing.T, f func(c net.Conn)) string { return testnet.Serve(t, f).String() }

func says(words string) func(net.Conn) {
	return func(c net.Conn) {
		io.WriteString(c, words)
		io.Copy(io.Discard, c)
	}
}

func answers(words string) func(net.Conn) {
	return func(c net.Conn) {
		c.Read(make([]byte, 512))
		says(words)(c)
	}
}

var mysqlGreeting = func() string {
	b := []byte{10}
	b = append(b, "8.0.99\x00"...)
	b = append(b, 1, 0, 0, 0)
	b = append(b, "saltsalt\x00"...)
	b = append(b, 0xff, 0xf7, 45, 2, 0, 0xff, 0xdf, 21)
	b = append(b, make([]byte, 10)...)
	b = append(b, "saltsaltsalt\x00mysql_native_password\x00"...)
	return mysqlPacket(0, string(b))
}()

func mysqlPacket(seq byte, body string) string {
	return string([]byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), seq}) + body
}

func mysqlServer(answer func(c net.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		io.WriteString(c, mysqlGreeting)
		b := make([]byte, 4096)
		c.Read(b)
		io.WriteString(c, mysqlPacket(2, "\x00\x00\x00\x02\x00\x00\x00"))
		for {
			if n, err := c.Read(b); err != nil || n < 5 || b[4] != 3 { // COM_QUERY
				return
			}
			answer(c)
		}
	}
}

func pgMessage(kind byte, body string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))) + body
}

func pgError(severity, code, msg string) string {
	return pgMessage('E', "S"+severity+"\x00V"+severity+"\x00C"+code+"\x00M"+msg+"\x00\x00")
}

func pgServer(login func(password string) (refusal string),
	answer func(c net.Conn, n int)) func(net.Conn) {
	return func(c net.Conn) {
		b := make([]byte, 4096)
		n, _ := c.Read(b)
		if n == 8 { // SSLRequest
			io.WriteString(c, "N")
			return
		}
		if login != nil {
			io.WriteString(c, pgMessage('R', "\x00\x00\x00\x03"))
			n, _ = c.Read(b)
			if n < 6 {
				return
			}
			if no := login(string(b[5 : n-1])); no != "" {
				io.WriteString(c, no)
				return
			}
		}
		io.WriteString(c, pgMessage('R', "\x00\x00\x00\x00")+pgMessage('Z', "I"))
		for i := 0; ; i++ {
			if _, err := c.Read(b); err != nil {
				return
			}
			answer(c, i)
		}
	}
}

var pgDescribed = pgMessage('1', "") + pgMessage('t', "\x00\x00") +
	pgMessage(
		'T',
		"\x00\x01"+"v\x00"+"\x00\x00\x00\x00"+"\x00\x00"+"\x00\x00\x00\x19"+"\xff\xff"+"\xff\xff\xff\xff"+"\x00\x00") +
	pgMessage('Z', "I")

// probe fails unless the error is one line with all the words, in time; {timeout} is the limit,
// longer on a busy machine.
func probe(t *testing.T, dsn string, o Options, words ...string) *Error {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = brief
	}
	if o.Queries == 0 {
		o.Queries = 3
	}
	for {
		said := make([]string, len(words))
		for i, w := range words {
			said[i] = strings.ReplaceAll(w, "{timeout}", o.Timeout.String())
		}
		err := probeOnce(t, dsn, o)
		var e *Error
		missing := func(w string) bool { return !strings.Contains(e.Error()+e.Hint(), w) }
		if o.Timeout >= patience || !errors.As(err, &e) || !slices.ContainsFunc(said, missing) {
			return wants(t, err, said...)
		}
		o.Timeout = min(4*o.Timeout, patience)
	}
}

func probeOnce(t *testing.T, dsn string, o Options) error {
	t.Helper()
	d, err := New(dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = d.Probe(context.Background())
	if took := time.Since(began); took > 2*patience {
		t.Errorf("it took %s", took)
	}
	return err
}

func wants(t *testing.T, err error, words ...string) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T), want an *Error", err, err)
	}
	msg := e.Error() + " [" + e.Hint() + "]"
	for _, w := range words {
		if !strings.Contains(msg, w) {
			t.Errorf("error %q, want %q in it", msg, w)
		}
	}
	if strings.ContainsAny(msg, "\n\r\x00\x1b") || len(msg) > 2*maxMessage {
		t.Errorf("error %q is not one short line", msg)
	}
	if errors.Is(err, driver.ErrBadConn) {
		t.Error("the driver's error can be got at")
	}
	return e
}

func TestMySQLPage(t *testing.T) {
	column := "\x03def\x00\x00\x00\x01v\x00\x0c" + "\x2d\x00" + "\xff\x00\x00\x00" + "\xfd" +
		"\x00\x00" + "\x00" + "\x00\x00"
	result := mysqlPacket(1, "\x01") + mysqlPacket(2, column) + mysqlPacket(3, "\x068.0.99") +
		mysqlPacket(4, "\xfe\x00\x00\x02\x00\x00\x00")
	var asked atomic.Int64
	addr := serve(t, mysqlServer(func(c net.Conn) { asked.Add(1); io.WriteString(c, result) }))
	d, err := New("mysql://app@"+addr+"/shop",
		Options{Queries: 5, Password: "hunter22", Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.Probe(context.Background())
	if want := (Facts{Server: "MySQL 8.0.99", Remote: addr}); err != nil || f != want {
		t.Errorf("%+v, %v, want %+v", f, err, want)
	}
	if n := asked.Load(); n != 5+1 { // a page and the version
		t.Errorf("the server was asked %d queries", n)
	}
}
