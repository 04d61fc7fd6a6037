package database

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

var urls = []struct{ name, begin, end string }{
	{"postgres", "postgres://app@", "/shop"},
	{"postgres-no-tls", "postgresql://app@", "/shop?sslmode=disable"},
	{"postgres-tls", "postgresql://app@", "/shop?sslmode=require"},
	{"mysql", "mysql://app@", "/shop"},
	{"mysql-tls", "mysql://app@", "/shop?tls=skip-verify"},
	{"sqlserver", "sqlserver://app@", "?database=shop"},
	{"sqlserver-tls", "sqlserver://app@", "?encrypt=strict"},
}

func TestWrongServers(t *testing.T) {
	clearPG(t)
	refuses := testnet.TCP(t).String()
	echo := serve(t, func(c net.Conn) { io.Copy(c, c) })
	silent := serve(t, says(""))
	hangsUp := serve(t, func(c net.Conn) { c.Read(make([]byte, 512)) })
	ssh := serve(t, says("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"))
	http := serve(
		t, answers("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n400 Bad Request"))
	noise := serve(t, says(strings.Repeat("\x7f\xff\xff\xff\xff\x00", 1000)))
	zeros := serve(t, says(strings.Repeat("\x00", 1000)))
	drip := serve(t, func(c net.Conn) {
		for {
			if _, err := c.Write([]byte{0x7f}); err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	for _, u := range urls {
		for _, s := range []struct {
			name, addr string
			words      string
		}{
			{"refused", refuses, "connection refused"},
			{"unknown-host", "no-such-host.invalid:99", "connect to no-such-host.invalid:99: "},
			{"silent", silent, "no answer within {timeout}"},
			{"hangs-up", hangsUp, "connect to " + hangsUp + ": "},
			{"echo", echo, ""},
			{"ssh", ssh, ""},
			{"http", http, ""},
			{"noise", noise, ""},
			{"zeros", zeros, ""},
			{"drip", drip, ""},
		} {
			t.Run(u.name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				e := probe(t, u.begin+s.addr+u.end, Options{Password: "hunter22"}, "connect to ",
					s.words)
				t.Logf("%v [%s]", e, e.Hint())
			})
		}
	}
}

func TestOtherServers(t *testing.T) {
	clearPG(t)
	pg := serve(t, pgServer(nil, func(net.Conn, int) {}))
	my := serve(t, says(mysqlGreeting))
	ssh := serve(t, says("SSH-2.0-OpenSSH_9.2p1\r\n"))
	http := serve(t, answers("HTTP/1.1 400 Bad Request\r\n\r\n"))
	echo := serve(t, func(c net.Conn) { io.Copy(c, c) })
	for _, tt := range []struct{ name, dsn, words string }{
		{"postgres-of-mysql", "postgres://app@" + my, "this is not PostgreSQL: it speaks MySQL"},
		{"postgres-of-ssh", "postgres://app@" + ssh, "it speaks SSH"},
		{"postgres-of-http", "postgres://app@" + http + "/?sslmode=disable", "it speaks HTTP"},
		{"postgres-of-echo", "postgres://app@" + echo + "/?sslmode=disable",
			"it sends back what it gets"},
		{"mysql-of-postgres", "mysql://app@" + pg, "MySQL servers speak first"},
		{"mysql-of-http", "mysql://app@" + http, "MySQL servers speak first"},
		{"mysql-of-ssh", "mysql://app@" + ssh, "it speaks SSH"},
		{"sqlserver-of-mysql", "sqlserver://app@" + my, "it speaks MySQL"},
		{"sqlserver-of-ssh", "sqlserver://app@" + ssh, "it speaks SSH"},
		{"sqlserver-of-http", "sqlserver://app@" + http, "it speaks HTTP"},
		{"sqlserver-of-echo", "sqlserver://app@" + echo, "it sends back what it gets"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			probe(t, tt.dsn, Options{}, tt.words)
		})
	}
}

func TestSilentServerHasAHint(t *testing.T) {
	clearPG(t)
	silent := serve(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	probe(t, "postgres://app@"+silent, Options{Timeout: 100 * time.Millisecond},
		"does PostgreSQL run at this address?")
}

func TestLoginRefused(t *testing.T) {
	clearPG(t)
	for _, password := range []string{"hunter22", "with \"quotes\" and\ttabs", "ünïcödé", "%41&=",
		"abc"} {
		t.Run(strings.Fields(password)[0], func(t *testing.T) {
			addr := serve(t, pgServer(func(got string) string {
				return pgError("FATAL", "28P01", "no entry for "+got+strings.Repeat(
					" not with "+got, 100))
			}, nil))
			e := probe(t, "postgres://app@"+addr, Options{Password: password, Timeout: patience},
				"check the user and the password")
			if strings.Contains(e.Error(), password) {
				t.Errorf("the error has the password: %q", e)
			}
		})
	}
	for quoted, want := range map[string]string{
		base64.StdEncoding.EncodeToString([]byte("app:hunter22")): "[16 characters]",
		"%68%75%6E%74%65%72%32%32":                                "[24 characters]",
		"68 75 6e 74 65 72 32 32":                                 "[16 characters]",
		"150 165 156 164 145 162 062 062":                         "[24 characters]",
		"h\u200bu\u200bn\u200bt\u200be\u200br\u200b2\u200b2":      "[50 characters]",
		"MjJyZXRudWg=": "[12 characters]", // reversed
		"hunter22, 'orders_2024_archive', 172.17.0.1": "***, 'orders_2024_archive', 172.17.0.1",
	} {
		t.Run(quoted, func(t *testing.T) {
			addr := serve(t, pgServer(func(string) string {
				return pgError("FATAL", "28P01", "Not allowed: "+quoted+" given")
			}, nil))
			e := probe(t, "postgres://app@"+addr, Options{Password: "hunter22", Timeout: patience,
				Query: "SELECT * FROM orders_2024_archive"})
			if want := fmt.Sprintf("connect to %s: FATAL: Not allowed: %s given (SQLSTATE 28P01)", addr,
				want); e.Error() != want {
				t.Errorf("%q, want %q", e, want)
			}
		})
	}
	addr := serve(t, func(c net.Conn) {
		io.WriteString(c, mysqlGreeting)
		c.Read(make([]byte, 4096))
		says(mysqlPacket(2, "\xff\x15\x04#28000Access denied (password hunter22)\nreally"))(c)
	})
	probe(t, "mysql://app@"+addr, Options{Password: "hunter22"},
		"ERROR 1045: Access denied (password ***) really", "check the user")
	probe(t, "mysql://app@"+addr, Options{}, "--secret-env")
}

func TestRefusedForOthers(t *testing.T) {
	clearPG(t)
	const (
		noEntry   = `no pg_hba.conf entry for host "172.17.0.1", user "app", database "shop", `
		entryHint = "the server's pg_hba.conf must allow the address that it sees over this route; " +
			"a change needs SELECT pg_reload_conf(); if it allows TLS only, sslmode=require in the DSN"
	)
	for _, c := range []struct{ code, msg, hint string }{
		{"28000", noEntry + "no encryption", entryHint},
		{"28000", noEntry + "SSL off", entryHint},
		{"28000", `role "app" does not exist`, "check the user in the DSN: the server has no such " +
			"role, or it may not log in this way"},
		{"3D000", `database "shop" does not exist`, databaseHint},
	} {
		addr := serve(t, pgServer(func(string) string {
			return pgError("FATAL", c.code, c.msg)
		}, nil))
		e := probe(t, "postgres://app@"+addr, Options{Timeout: patience}, c.hint)
		if e.Hint() != c.hint {
			t.Errorf("%s: hint %q, want %q", c.msg, e.Hint(), c.hint)
		}
	}
	for number, hint := range map[string]string{
		"\x6a\x04": "the server must allow a user from the address that it sees over this route: " +
			"CREATE USER 'app'@'ADDRESS'",
		"\x19\x04": databaseHint} {
		addr := serve(t, func(c net.Conn) {
			io.WriteString(c, mysqlGreeting)
			c.Read(make([]byte, 4096))
			says(mysqlPacket(2, "\xff"+number+"#HY000Host 'x' is not allowed"))(c)
		})
		if e := probe(t, "mysql://app@"+addr, Options{}, hint); e.Hint() != hint {
			t.Errorf("hint %q, want %q", e.Hint(), hint)
		}
	}
}

func TestMidPage(t *testing.T) {
	clearPG(t)
	row := pgMessage('D', "\x00\x01\x00\x00\x00\x04page")
	whole := "2\x00\x00\x00\x04" + row + pgMessage('C', "SELECT 1\x00") + "Z\x00\x00\x00\x05I"
	flood := strings.Repeat(pgMessage('D', "\x00\x01\x00\x00\xff\x00"+strings.Repeat("x", 0xff00)),
		16)
	for _, tt := range []struct {
		name   string
		answer func(c net.Conn)
		words  string
	}{
		{"silent", func(net.Conn) {}, "query 2 of 3: no complete answer within 4s"},
		{"closed", func(c net.Conn) {
			c.Close()
		}, "query 2 of 3: the server closed the connection"},
		{"reset", func(c net.Conn) {
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}, "query 2 of 3: connection reset by peer"},
		{"drips", func(c net.Conn) {
			io.WriteString(c, "2\x00\x00\x00\x04")
			for i := 0; ; i++ {
				if _, err := c.Write([]byte{row[i%len(row)]}); err != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}, "query 2 of 3: no complete answer within 4s"},
		{"gigabyte", func(c net.Conn) {
			io.WriteString(c, "2\x00\x00\x00\x04D\x40\x00\x00\x00\x00\x01")
		}, "query 2 of 3: "},
		{"negative", func(c net.Conn) {
			io.WriteString(c, "2\x00\x00\x00\x04D\xff\xff\xff\xff\x00\x01")
		}, "query 2 of 3: "},
		{"nonsense", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		}, "query 2 of 3: "},
		{"dies", func(c net.Conn) {
			io.WriteString(c, pgError("FATAL", "57P01", "shut\ndown"))
			c.Close()
		}, "query 2 of 3: FATAL: shut down (SQLSTATE 57P01)"},
		{"endless", func(c net.Conn) {
			for io.WriteString(c, "2\x00\x00\x00\x04"); ; {
				if _, err := io.WriteString(c, flood); err != nil {
					return
				}
			}
		}, "query 2 of 3: the server sent more than 64 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := serve(t, pgServer(nil, func(c net.Conn, n int) {
				switch n {
				case 0:
					io.WriteString(c, pgDescribed)
				case 1:
					io.WriteString(c, whole)
				default:
					tt.answer(c)
				}
			}))
			t.Parallel()
			timeout := patience
			if tt.name == "silent" || tt.name == "drips" {
				timeout = 4 * time.Second
			}
			d, err := New("postgres://app@"+addr,
				Options{Queries: 3, Query: "SELECT 'page'", Timeout: timeout})
			if err != nil {
				t.Fatal(err)
			}
			s, err := d.Open(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			queries := 0
			_, err = s.Page(context.Background(), func(time.Duration) { queries++ })
			wants(t, err, tt.words)
			if queries != 1 {
				t.Errorf("%d queries were answered, want 1", queries)
			}
			if _, again := s.Page(context.Background(), nil); again == nil ||
				again.Error() != err.Error() {
				t.Errorf("the next page: %v, want the same error", again)
			}
			if _, received := s.Bytes(); received > maxReceived+2<<20 {
				t.Errorf("%d bytes were received", received)
			}
		})
	}
}

func TestHostileMySQL(t *testing.T) {
	long := ""
	for seq := range 5 {
		long += "\xff\xff\xff" + string(rune(seq+1)) + strings.Repeat("x", 1<<24-1)
	}
	for _, tt := range []struct{ name, answer, words string }{
		{"columns", mysqlPacket(1, "\xfe\x00\x00\x00\x00\x00\x10\x00\x00"),
			"more columns than a result can have"},
		{"long-packets", long, "more than 64 MiB"},
		{"a-file", mysqlPacket(1, "\xfb/etc/passwd"), "query 1 of 3: "},
		{"error", mysqlPacket(1, "\xff\x28\x04#42000You have an error"),
			"query 1 of 3: ERROR 1064: You have an error"},
		{"empty", mysqlPacket(1, ""), "query 1 of 3: cannot read the server's answer"},
		{"bounds", mysqlPacket(1, "\x01") + mysqlPacket(2, "\x03def\xfc"), "query 1 of 3: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := serve(t, mysqlServer(func(c net.Conn) { io.WriteString(c, tt.answer) }))
			probe(t, "mysql://app@"+addr+"/shop", Options{Timeout: patience}, tt.words)
		})
	}
	t.Run("greeting", func(t *testing.T) {
		probe(t, "mysql://app@"+serve(t, says(mysqlPacket(0, "\x0a9"))), Options{},
			"the driver panicked while reading the server's answer")
	})
}

func TestHostileSQLServer(t *testing.T) {
	packet := func(body string) string {
		return "\x04\x01" + string(binary.BigEndian.AppendUint16(nil, uint16(len(body)+8))) +
			"\x00\x00\x01\x00" + body
	}
	probe(t, "sqlserver://app@"+serve(t, answers(packet("\x01\xff\xff\xff\xff"))), Options{},
		"connect to 127.0.0.1:")
	probe(t, "sqlserver://app@"+serve(t, answers(packet("\x01\x00\x06\x00\x01\xff\x01"))),
		Options{}, "no complete answer within")
}

func TestSpeaks(t *testing.T) {
	got := Speaks([]byte("a long question"), []byte("a long question"))
	if got != "it sends back what it gets" {
		t.Error(got)
	}
	if got := Speaks(nil, []byte(mysqlGreeting)); got != "it speaks MySQL" {
		t.Error(got)
	}
	if got := Speaks([]byte("question"), bytes.Repeat([]byte{0}, 20)); got != "" {
		t.Error(got)
	}
}

// When a login fails, pgx dials once more, to cancel. That must not replace what was seen of the
// server.
func TestCancelDial(t *testing.T) {
	addr := serve(t, says("SSH-2.0-OpenSSH_9.2p1\r\n"))
	l := newLink(vantage.Local().Dial)
	defer l.cut(net.ErrClosed)
	l.allow()
	c, err := l.dial(context.WithValue(t.Context(), login{}, true), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.dial(t.Context(), "tcp", addr); !errors.Is(err, errDial) {
		t.Errorf("a second dial: %v, want %v", err, errDial)
	}
	if _, read, _ := l.heads(); Speaks(nil, read) != "it speaks SSH" {
		t.Errorf("the link's first bytes are %q", read)
	}
}
