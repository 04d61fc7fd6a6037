package vantage

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func TestParseNames(t *testing.T) {
	n := parseNames(
		"127.0.0.1 localhost\n::1\tlocalhost ip6\n172.17.0.2 DB db.example # shop\nnonsense "+
			"db\n172.17.0.3\n",
		"# Docker\nnameserver 127.0.0.11\nnameserver bad\nsearch example.org "+
			"lan.\noptions ndots:0\n")
	if got := n.hosts["db"]; !slices.Equal(got, []netip.Addr{netip.MustParseAddr("172.17.0.2")}) {
		t.Errorf("db is %v", got)
	}
	if got := n.hosts["localhost"]; len(got) != 2 {
		t.Errorf("localhost is %v", got)
	}
	if !slices.Equal(n.servers, []string{"127.0.0.11"}) {
		t.Errorf("servers %q", n.servers)
	}
	for name, want := range map[string]string{"db": "db. db.example.org. db.lan.",
		"db.shop": "db.shop. db.shop.example.org. db.shop.lan."} {
		if got := strings.Join(n.candidates(name), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestDialHere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for host, lookUp := range map[string]bool{"127.0.0.1": false, "localhost": true} {
		c, took, err := Local().Dial(context.Background(), "tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if took.Began.IsZero() || (took.LookUp > 0) != lookUp {
			t.Errorf("%s: %+v", host, took)
		}
	}
}

// space returns a network namespace with a server at 127.0.0.1, which this one does not have.
func space(t *testing.T) (v *Vantage, addr string) {
	t.Helper()
	ns := netnstest.New(t)
	var l net.Listener
	err := ns.Do(func() error {
		if err := link.Up("lo"); err != nil {
			return err
		}
		var err error
		l, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	tid, err := ns.TID()
	if err != nil {
		t.Fatal(err)
	}
	v = &Vantage{name: "container:shop"}
	if err := v.at(tid); err != nil {
		t.Fatal(err)
	}
	v.files = t.TempDir()
	if err := os.Mkdir(filepath.Join(v.files, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	var udp net.PacketConn
	if err := ns.Do(func() (err error) {
		udp, err = net.ListenPacket("udp", "127.0.0.1:53")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close() })
	go answerNames(udp, "db.lan.")
	return v, l.Addr().String()
}

// answerNames knows one name, known, at 127.0.0.1.
func answerNames(c net.PacketConn, known string) {
	b := make([]byte, 1500)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		m.Response, m.Additionals = true, nil
		switch {
		case q.Name.String() != known:
			m.RCode = dnsmessage.RCodeNameError
		case q.Type == dnsmessage.TypeA:
			m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{
				Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
				Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
		}
		if out, err := m.Pack(); err == nil {
			_, _ = c.WriteTo(out, from)
		}
	}
}

func TestDialInside(t *testing.T) {
	v, addr := space(t)
	if _, _, err := Local().Dial(context.Background(), "tcp", addr); err == nil {
		t.Fatal("the server is reached from outside")
	}
	write := func(name, text string) {
		t.Helper()
		err := os.WriteFile(filepath.Join(v.files, "etc", name), []byte(text), 0o644)
		if err != nil {
			t.Fatal(err)
		}
	}
	write("hosts", "127.0.0.1 shop\n")
	// The container's own file, by an absolute link. Nobody answers at the first server.
	if err := os.Symlink("/etc/dns", filepath.Join(v.files, "etc", "resolv.conf")); err != nil {
		t.Fatal(err)
	}
	write("dns", "nameserver 127.0.0.2\nnameserver 127.0.0.1\nsearch lan\n")
	_, port, _ := net.SplitHostPort(addr)
	for _, tt := range []struct{ host, wrong string }{{"127.0.0.1", ""}, {"shop", ""}, {"db", ""},
		{"db.lan", ""}, {"nowhere", "look up nowhere in container:shop: no such host"}} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		c, took, err := v.Dial(ctx, "tcp", net.JoinHostPort(tt.host, port))
		cancel()
		switch {
		case tt.wrong != "":
			if err == nil || err.Error() != tt.wrong {
				t.Errorf("%s: %v, want %q", tt.host, err, tt.wrong)
			}
			var e *Error
			if !errors.As(err, &e) || e.Hint() != CheckName {
				t.Errorf("%s: %v has no hint", tt.host, err)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.host, err)
		default:
			if c.RemoteAddr().String() != addr || (took.LookUp > 0) != (tt.host != "127.0.0.1") {
				t.Errorf("%s: %s, %+v", tt.host, c.RemoteAddr(), took)
			}
			c.Close()
		}
	}
	// A silent server before the one that answers, within the time that callers give a connection.
	var silent net.PacketConn
	if err := v.visit(func() (err error) {
		silent, err = net.ListenPacket("udp", "127.0.0.3:53")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	write("dns", "nameserver 127.0.0.3\nnameserver 127.0.0.1\nsearch none lan\n")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if addrs, _, err := v.LookUp(ctx, "db"); err != nil || len(addrs) != 1 {
		t.Errorf("behind a silent server: %v, %v", addrs, err)
	}
	if _, _, err := v.Dial(context.Background(), "unix", "/run/db"); err == nil {
		t.Error("a Unix socket of this machine is reached from a container")
	}
	write("dns", "")
	if _, _, err := v.Dial(context.Background(), "tcp", net.JoinHostPort("db", port)); err == nil ||
		err.Error() != "container:shop has no name server that could resolve db" {
		t.Errorf("without a name server: %v", err)
	}
}

func TestHintsByComposeName(t *testing.T) {
	known := []called{{"shop-web-2", "web"}, {"shop-web-1", "web"}, {"shop-db-1", "db"},
		{"registry", ""}}
	for name, want := range map[string]string{
		"web":      "did you mean container:shop-web-1 or container:shop-web-2?",
		"db":       "did you mean container:shop-db-1?",
		"regstry":  "did you mean container:registry?",
		"elephant": "list",
	} {
		if got := hint(mode.InContainer, name, known, "list"); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestEndedProcess(t *testing.T) {
	v, addr := space(t)
	other, _ := space(t)
	ctx := context.Background()
	was := v.pid
	for name, pid := range map[string]int{"gone": 1 << 30, "another": other.pid} {
		v.pid = pid
		_, _, err := v.Dial(ctx, "tcp", addr)
		if err == nil || err.Error() != "container:shop has ended" {
			t.Errorf("%s: %v", name, err)
		}
		if ns, err := v.join(); err == nil ||
			err.Error() != "container:shop has ended" {
			t.Errorf("%s: %v, %v", name, ns, err)
		}
	}
	v.pid = was
	c, _, err := v.Dial(ctx, "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
