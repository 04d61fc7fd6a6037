package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

func TestParseRoutes(t *testing.T) {
	const (
		shape = "must be HOST:PORT, with brackets around an IPv6 address"
		host  = "is neither a host name nor an address without a zone"
	)
	for _, tt := range []struct {
		words  string
		f      Families
		routes string
	}{
		{"127.0.0.1:6379", Families{}, "127.0.0.1:6379=127.0.0.1:6379 {false false}"},
		{"near=db:5432 [::1]:5432", Families{},
			"near=db:5432 {false false}, [::1]:5432=[::1]:5432 {false false}"},
		{"near=db:5432", Families{Six: true}, "near=db:5432 {false true}"},
		{"near=db:5432 a=127.0.0.1:1", Families{true, true},
			"near-ipv4=db:5432 {true false}, near-ipv6=db:5432 {false true}, a=127.0.0.1:1 {false false}"},
		{"::ffff:127.0.0.1:1", Families{}, "an IPv6 address needs brackets: [::ffff:127.0.0.1]:1"},
		{"127.0.0.1:1", Families{Six: true}, "127.0.0.1 is not of the address family that -4 or " +
			"-6 asks for"},
		{"[::1]:1", Families{Four: true}, "::1 is not of the address family that -4 or -6 asks " +
			"for"},
		{"http://127.0.0.1:80/", Families{}, "give HOST:PORT, not a URL"},
		{"127.0.0.1", Families{}, shape},
		{"::1:6379", Families{}, "an IPv6 address needs brackets: [::1]:6379"},
		{"::1", Families{}, shape},
		{":80", Families{}, `"" ` + host},
		{"a=", Families{}, shape},
		{"db:0", Families{}, `the port "0" is not from 1 to 65535`},
		{"db:65536", Families{}, `the port "65536" is not from 1 to 65535`},
		{"db:http", Families{}, `the port "http" is not from 1 to 65535`},
		{"$(reboot):80", Families{}, `"$(reboot)" ` + host},
		{"-rf:80", Families{}, `"-rf" ` + host},
		{"a;b:80", Families{}, `"a;b" ` + host},
		{"[fe80::1%$(reboot)]:80", Families{}, `"fe80::1%$(reboot)" ` + host},
		{"[fe80::1%eth0]:80", Families{}, `"fe80::1%eth0" ` + host},
		{"db:1 db:1", Families{}, "two routes are called db:1: name them, as in direct=db:1"},
		{"a=db:1 a-ipv4=db:2", Families{true, true},
			"a-ipv4=db:1 {true false}, a-ipv6=db:1 {false true}, a-ipv4-ipv4=db:2 {true " +
				"false}, a-ipv4-ipv6=db:2 {false true}"},
		{"a=db:1 a=db:2", Families{}, "two routes are called a: name them, as in direct=db:2"},
		{strings.Repeat("x", 300) + ":1", Families{}, `"` + strings.Repeat("x", 300) + `" ` + host},
	} {
		at, err := ParseRoutes(strings.Fields(tt.words), tt.f)
		var got []string
		for _, a := range at {
			got = append(got, fmt.Sprintf("%s=%s %v", a.Name, a.URL, a.Families))
		}
		text := strings.Join(got, ", ")
		if err != nil {
			text = strings.TrimPrefix(err.Error(), fmt.Sprintf("%.80q: ", tt.words))
		}
		if text != tt.routes {
			t.Errorf("%s %v: %q, want %q", tt.words, tt.f, text, tt.routes)
		}
	}
	var many []string
	for i := range maxAddresses + 1 {
		many = append(many, fmt.Sprintf("127.0.0.1:%d", i+1))
	}
	if _, err := ParseRoutes(many, Families{}); err == nil {
		t.Error("too many routes are taken")
	}
}

func TestFamilies(t *testing.T) {
	all := []netip.Addr{netip.MustParseAddr("fd00::1"), netip.MustParseAddr("10.0.0.2"),
		netip.MustParseAddr("10.0.0.1")}
	for f, want := range map[Families]string{
		{}:            "[10.0.0.2 10.0.0.1 fd00::1]",
		{true, false}: "[10.0.0.2 10.0.0.1]",
		{false, true}: "[fd00::1]",
	} {
		if got := fmt.Sprint(f.of(all)); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
	r := &route{host: "127.0.0.1", only: Families{Six: true}, from: vantage.Local()}
	_, _, err := r.lookUp(context.Background())
	if err == nil || err.Error() != "127.0.0.1 has no IPv6 address" || hint.Of(err) == "" {
		t.Errorf("%v", err)
	}
}

// Whatever is taken for a host is one word to a shell, and no flag.
func FuzzParseRoute(f *testing.F) {
	for _, s := range []string{"db:1", "[::1]:80", "a b:1", "-x:1", "[fe80::1%lo]:1", "x'y:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := parseRoute(s)
		if err != nil {
			return
		}
		if r.port == 0 || strings.ContainsAny(r.host, " \t\n\"'`$&|;<>(){}[]*?!#~%\\=") ||
			strings.HasPrefix(r.host, "-") {
			t.Errorf("%q is the host %q", s, r.host)
		}
		if _, err := netip.ParseAddr(r.host); err != nil && net.ParseIP(r.host) != nil {
			t.Errorf("%q: %q", s, r.host)
		}
	})
}

func TestRefused(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	for name, tt := range map[string]struct {
		at      string
		refused bool
	}{
		"nobody": {testnet.TCP(t).String(), true},
		"tcp":    {tcp.Addr().String(), false},
		"udp":    {udp.LocalAddr().String(), false},
	} {
		at := netip.MustParseAddrPort(tt.at)
		r := &route{addr: at.Addr(), port: at.Port(), from: vantage.Local()}
		err := r.refused(t.Context())
		if refused := new(refusedError); errors.As(err, &refused) != tt.refused ||
			(err != nil) != tt.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
