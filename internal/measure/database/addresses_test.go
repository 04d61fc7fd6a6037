package database

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
)

// served answers each query of pgx with an empty result.
func served(c net.Conn, n int) {
	if n == 0 {
		io.WriteString(c, pgDescribed)
		return
	}
	io.WriteString(c, pgMessage('2', "")+pgMessage('C', "SELECT 0\x00")+pgMessage('Z', "I"))
}

func TestEveryAddressOfANameIsTried(t *testing.T) {
	const url, begin = "postgres://app@db:5432/shop?sslmode=disable", "connect to db:5432"
	well := serve(t, pgServer(nil, served))
	gone := serve(t, func(c net.Conn) { c.Read(make([]byte, 512)) })
	starting := serve(t, answers(pgError("FATAL", "57P03",
		"the database system is starting up")))
	denied := serve(t, answers(pgError("FATAL", "28P01", "no")))
	silent := serve(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	const (
		refused = "refused"
		drops   = "drops"
	)
	for _, c := range []struct {
		name    string
		servers []string // of 192.0.2.1 and so on
		dialled int
		want    string // an error; "": none
	}{
		{"first", []string{well, refused}, 1, ""},
		{"second-after-refusal", []string{refused, well}, 2, ""},
		{"third", []string{refused, refused, well}, 3, ""},
		{"second-after-silence", []string{silent, well}, 2, ""},
		{"second-after-dropped-packets", []string{drops, well}, 2, ""},
		{"second-after-a-closed-connection", []string{gone, well}, 2, ""},
		{"second-while-the-first-starts", []string{starting, well}, 2, ""},
		{"all-refuse", []string{refused, refused}, 2, begin +
			" at 192.0.2.1: connection refused; at 192.0.2.2: connection refused"},
		{"one-refuses", []string{refused}, 1, begin + " at 192.0.2.1: connection refused"},
		{"each-its-way", []string{gone, refused}, 2, begin +
			" at 192.0.2.1: the server closed the connection; at 192.0.2.2: connection refused"},
		{"login-refused", []string{denied, well}, 1, begin +
			" at 192.0.2.1: FATAL: no (SQLSTATE 28P01)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dialled := 0
			d, err := New(url, Options{Queries: 1, Timeout: 4 * time.Second,
				LookUp: func(context.Context, string) (out []netip.Addr, _ time.Duration, _ error) {
					for i := range c.servers {
						out = append(out, netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}))
					}
					return out, time.Millisecond, nil
				},
				Dial: func(ctx context.Context, network, addr string) (net.Conn, vantage.Took,
					error) {
					dialled++
					at := netip.MustParseAddrPort(addr)
					switch s := c.servers[at.Addr().As4()[3]-1]; s {
					case refused:
						return nil, vantage.Took{}, syscall.ECONNREFUSED
					case drops:
						<-ctx.Done()
						return nil, vantage.Took{}, context.Cause(ctx)
					default:
						return vantage.Local().Dial(ctx, network, s)
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
			s, err := d.Open(t.Context())
			if err == nil {
				if s.LookUp() != time.Millisecond || s.timeout != d.timeout {
					t.Errorf("looked up in %s, pages within %s", s.LookUp(), s.timeout)
				}
				_, err = s.Page(t.Context(), nil)
				_ = s.Close()
			}
			if got := text(err); got != c.want || dialled != c.dialled {
				t.Errorf("%d dialled, %q; want %d, %q", dialled, got, c.dialled, c.want)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNamesThatCannotBeLookedUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		addrs []netip.Addr
		err   error
		want  string
	}{
		{"unknown", nil, &net.DNSError{Err: "no such host", Name: "db"},
			"connect to db:3306: look up the host: no such host"},
		{"empty", nil, nil, "connect to db:3306: look up the host: it has no address"},
		{"silent", nil, context.DeadlineExceeded,
			"connect to db:3306: look up the host: no answer within 50ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := New("mysql://app@db/", Options{Queries: 1, Timeout: 50 * time.Millisecond,
				LookUp: func(ctx context.Context, _ string) ([]netip.Addr, time.Duration, error) {
					if errors.Is(c.err, context.DeadlineExceeded) {
						<-ctx.Done()
					}
					return c.addrs, 0, c.err
				}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Open(t.Context()); text(err) != c.want {
				t.Errorf("Open = %v, want %q", err, c.want)
			}
		})
	}
}

func TestNamesOfDSNs(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://app@db/x":                   "db",
		"postgres://app@127.0.0.1/x":            "",
		"postgres://app@[::1]/x":                "",
		"postgres://app@/x?host=/run/pg":        "",
		"mysql://app@localhost:1/x":             "localhost",
		"mysql://app@/x?socket=/run/mysql.sock": "",
		"sqlserver://sa@db.example":             "db.example",
		"sqlserver://sa@10.0.0.1":               "",
	} {
		d, err := New(dsn, Options{Queries: 1})
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
		} else if got := strings.ToLower(d.target.name); got != want {
			t.Errorf("%s: name %q, want %q", dsn, got, want)
		}
	}
}
