package firewall

import (
	"net/netip"
	"testing"
)

// Docker 20.10 with a proxy writes this for -p 8080:80 and -p 127.0.0.1:8081:80; one rule is the
// administrator's.
const docker = `*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:DOCKER - [0:0]
:DOCKER-USER - [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -m set --match-set friends src -j ACCEPT
-A INPUT -p tcp -m tcp --dport 22:23 -m comment --comment "the way in" -j ACCEPT
-A FORWARD -j DOCKER-USER
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -o docker0 -j DOCKER
-A FORWARD -i docker0 -j ACCEPT
-A DOCKER -d 172.17.0.2/32 ! -i docker0 -o docker0 -p tcp -m tcp --dport 80 -j ACCEPT
-A DOCKER-USER -s 203.0.113.0/24 -j DROP
-A DOCKER-USER -j RETURN
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A DOCKER -i docker0 -j RETURN
-A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
-A DOCKER -d 127.0.0.1/32 ! -i docker0 -p tcp -m tcp --dport 8081 -j DNAT --to-destination 172.17.0.3:80
COMMIT
`

func at(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestWalk(t *testing.T) {
	rules := ParseSave(docker, false)
	own, far := at("198.18.0.1"), at("198.18.0.2")
	for name, c := range map[string]struct {
		kind   Kind
		hook   Hook
		p      Packet
		want   Verdict
		to     string
		where  string
		unread int
	}{
		"remote": {NAT, Prerouting, Packet{
			Proto: "tcp", Src: far, Dst: own, Port: 8080, In: "eth0", DstLocal: true}, DNAT,
			"172.17.0.2:80", "nat DOCKER", 0},
		"udp": {NAT, Prerouting, Packet{
			Proto: "udp", Src: far, Dst: own, Port: 8080, In: "eth0", DstLocal: true}, Accept, "",
			"", 0},
		"container": {NAT, Prerouting, Packet{
			Proto: "tcp", Src: at("172.17.0.9"), Dst: own, Port: 8080, In: "docker0",
			DstLocal: true}, Accept, "", "", 0},
		"passing": {NAT, Prerouting, Packet{
			Proto: "tcp", Src: far, Dst: at("192.0.2.1"), Port: 8080, In: "eth0"}, Accept, "", "",
			0},
		"own": {NAT, Output, Packet{
			Proto: "tcp", Src: own, Dst: own, Port: 8080, Out: "lo", DstLocal: true}, DNAT,
			"172.17.0.2:80", "nat DOCKER", 0},
		"loopback": {NAT, Output, Packet{
			Proto: "tcp", Src: at("127.0.0.1"), Dst: at("127.0.0.1"), Port: 8080, Out: "lo",
			DstLocal: true}, Accept, "", "", 0},
		"v6": {NAT, Output, Packet{
			Proto: "tcp", Src: at("::1"), Dst: at("::1"), Port: 8080, Out: "lo", DstLocal: true},
			Accept, "", "", 0},
		"leaving": {NAT, Postrouting, Packet{
			Proto: "tcp", Src: at("172.17.0.2"), Dst: far, Port: 443, Out: "eth0"}, Masquerade, "",
			"nat POSTROUTING", 0},
		"published": {Filter, Forward, Packet{
			Proto: "tcp", Src: far, Dst: at("172.17.0.2"), Port: 80, In: "eth0", Out: "docker0"},
			Accept, "", "", 0},
		"unpublished": {Filter, Forward, Packet{
			Proto: "tcp", Src: far, Dst: at("172.17.0.2"), Port: 81, In: "eth0", Out: "docker0"},
			Drop, "", "policy of filter FORWARD", 0},
		"unwanted": {Filter, Forward, Packet{
			Proto: "tcp", Src: at("203.0.113.7"), Dst: at("172.17.0.2"), Port: 80, In: "eth0",
			Out: "docker0"}, Drop, "", "filter DOCKER-USER", 0},
		"foreign": {Filter, Forward, Packet{
			Proto: "tcp", Src: far, Dst: far, Port: 80, In: "br1", Out: "br1"}, Drop, "",
			"policy of filter FORWARD", 0},
		"input, known": {Filter, Input, Packet{
			Proto: "tcp", Src: far, Dst: own, Port: 23, In: "eth0"}, Accept, "", "", 0},
		"input": {Filter, Input, Packet{
			Proto: "tcp", Src: far, Dst: own, Port: 80, In: "eth0"}, Drop, "",
			"policy of filter INPUT", 1},
	} {
		got := rules.Walk(c.kind, c.hook, c.p)
		to := ""
		if got.To.IsValid() {
			to = got.To.String()
		}
		if got.Verdict != c.want || to != c.to || got.Where != c.where ||
			len(got.Unread) != c.unread {
			t.Errorf("%s: %+v", name, got)
		}
	}
	unwanted := Packet{Proto: "tcp", Src: at("203.0.113.7"), Dst: at("172.17.0.2"), Port: 80,
		In: "eth0", Out: "docker0"}
	if got := rules.Walk(Filter, Forward, unwanted); got.Rule != 1 {
		t.Errorf("rule %d of DOCKER-USER, want 1", got.Rule)
	}
	// the jump, the return for another device, and the port's own rule
	got := rules.Walk(NAT, Prerouting, Packet{
		Proto: "tcp", Src: far, Dst: own, Port: 8080, In: "eth0", DstLocal: true})
	if got.Tried != 3 {
		t.Errorf("%d rules were tried", got.Tried)
	}
}

func TestWalkEnds(t *testing.T) {
	rules := ParseSave(
		"*filter\n:INPUT ACCEPT [0:0]\n:A - [0:0]\n-A INPUT -j A\n-A A -j A\nCOMMIT\n", false)
	if got := rules.Walk(Filter, Input, Packet{Dst: at("192.0.2.1")}); got.Verdict != Accept {
		t.Errorf("%+v", got)
	}
}

func FuzzParseSave(f *testing.F) {
	f.Add(docker, false)
	f.Add("*nat\n:PREROUTING ACCEPT\n-A PREROUTING -d fe80::/10 -p tcp ! --dport 1:65535 -g X\n",
		true)
	f.Add(
		"*x\n:A -\n-A A -m comment --comment \"a \\\" b\" -j DNAT --to-destination [::1]:0-9\n-A A !\n-A A -s\n", false)
	f.Fuzz(func(t *testing.T, text string, six bool) {
		r := ParseSave(text, six)
		for _, hook := range []Hook{Prerouting, Input, Forward, Output, Postrouting} {
			for _, kind := range []Kind{NAT, Filter} {
				for _, a := range []string{"192.0.2.1", "2001:db8::1"} {
					r.Walk(kind, hook, Packet{Proto: "tcp", Src: at(a), Dst: at(a), Port: 80,
						In: "eth0", DstLocal: true})
				}
			}
		}
	})
}
