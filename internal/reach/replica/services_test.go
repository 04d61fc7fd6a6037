package replica

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestServices(t *testing.T) {
	const table = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A600001:01BB rr
  -> C0A80A02:192B      Masq    1      0          0
UDP  [2001:0db8:0000:0000:0000:0000:0000:0001]:0035 sh
TCP  0A600002:0000 rr persistent 600 FFFFFFFF
TCP  0A600003:0015 rr persistent 300 FFFFFFFF
TCP  0A600004:0015 rr
FWM  00000101 rr
FWM  00000102 rr
`
	v4, v6 := "10.96.0.1:443", "[2001:db8::1]:53"
	at := netip.MustParseAddrPort
	want := []Unknown{{What: "IPVS service tcp/" + v4, At: at(v4), Proto: "tcp"},
		{What: "IPVS service udp/" + v6, At: at(v6), Proto: "udp"},
		{What: "IPVS service tcp/10.96.0.2:0", At: at("10.96.0.2:0"), Proto: "tcp"},
		{What: "IPVS service tcp/10.96.0.3:21", At: at("10.96.0.3:0"), Proto: "tcp"},
		{What: "IPVS service tcp/10.96.0.4:21", At: at("10.96.0.4:21"), Proto: "tcp"},
		{What: "IPVS with 2 services"}}
	if got := ipvs([]byte(table), false); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		refuses bool
		proto   string
		port    uint16
		want    []string
	}{
		{false, "", 0, []string{"tcp/" + v4, "udp/" + v6, "tcp/10.96.0.2:0", "tcp/10.96.0.3:21",
			"tcp/10.96.0.4:21", "2 services"}},
		{false, "tcp", 53, []string{"tcp/10.96.0.2:0", "tcp/10.96.0.3:21", "2 services"}},
		{false, "udp", 53, []string{"udp/" + v6, "2 services"}},
		{true, "udp", 53, []string{"7 services"}},
	} {
		m := Machine{Spaces: []Space{{Unknown: append(ipvs([]byte(table), c.refuses),
			Unknown{What: "BPF sk_lookup"})}}}
		if got := m.Services(c.proto, c.port); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
	one, _, _ := strings.Cut(table, "UDP")
	for text, want := range map[string]string{table: "IPVS with 7 services",
		one: "IPVS service tcp/" + v4, strings.Replace(table, one, "", 1): "IPVS with 6 services"} {
		if got := ipvs([]byte(text), true); !slices.Equal(got, []Unknown{{What: want}}) {
			t.Errorf("%+v do not concern all packets", got)
		}
	}
}

// Packets of a connection may have met a service where they went or, without steps, where rules may
// have sent them.
func TestServicesMet(t *testing.T) {
	at := netip.MustParseAddrPort
	var of services
	for i := range 200 {
		of.add(Unknown{What: fmt.Sprint("service ", i), At: netip.AddrPortFrom(
			netip.AddrFrom4([4]byte{10, 96, 0, byte(i)}), uint16(80+i/100)), Proto: "tcp"})
	}
	of.add(Unknown{What: "all ports", At: at("10.97.0.1:0"), Proto: "tcp"})
	of.add(Unknown{What: "names", At: at("10.96.0.7:80"), Proto: "udp"})
	any, own := Socket{Addr: at("[::]:80")}, Socket{Addr: at("192.0.2.10:9000")}
	for name, c := range map[string]struct {
		to     string
		answer Answer
		moves  bool
		want   []string
	}{
		"a service's address": {to: "[::ffff:10.96.0.7]:80", want: []string{"service 7"}},
		"another port":        {to: "10.96.0.7:81"},
		"all its ports":       {to: "10.97.0.1:5", want: []string{"all ports"}},
		"redirected": {to: "192.0.2.10:80", moves: true,
			answer: Answer{Outcomes: []Outcome{{Got: Refused, Socket: -1}},
				Steps: []Step{{Dst: at("192.0.2.10:80")}, {Dst: at("10.96.0.9:80")}}},
			want: []string{"service 9"}},
		"refused": {to: "192.0.2.10:80", moves: true,
			answer: Answer{Outcomes: []Outcome{{Got: Refused, Socket: -1}}},
			want:   []string{"one of 201 services of IPVS"}},
		"refused there": {to: "10.96.0.7:80", moves: true,
			answer: Answer{Outcomes: []Outcome{{Got: Refused, Socket: -1}}},
			want:   []string{"service 7", "one of 200 services of IPVS"}},
		"refused, and no rule redirects": {to: "192.0.2.10:80",
			answer: Answer{Outcomes: []Outcome{{Got: Refused, Socket: -1}}}},
		"at any address": {to: "192.0.2.10:80", moves: true,
			answer: Answer{Outcomes: []Outcome{{Got: Connected}}},
			want:   []string{"one of 101 services of IPVS"}},
		"at any address, and no rule redirects": {to: "192.0.2.10:80",
			answer: Answer{Outcomes: []Outcome{{Got: Connected}}}},
		"at any address, not redirected": {to: "192.0.2.10:80", moves: true,
			answer: Answer{Outcomes: []Outcome{{Got: Connected}},
				Steps: []Step{{Dst: at("192.0.2.10:80")}}}},
		"at one address": {to: "192.0.2.10:9000", moves: true,
			answer: Answer{Outcomes: []Outcome{{Got: Connected, Socket: 1}}}},
	} {
		of.moves = c.moves
		s := &Session{services: []services{of}, sockets: []Socket{any, own}}
		got := s.servicesMet(0, s.passed(c.answer), Dial{Proto: "tcp", To: at(c.to)}, c.answer)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
