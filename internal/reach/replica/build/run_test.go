package build

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

func (s *site) run(r *replica.Session, space int, script string) replica.Output {
	s.t.Helper()
	out, err := r.Run(s.t.Context(), replica.Command{Script: []byte(script), Space: space})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// What a command changes in the copy, connections there meet, and none on the machine.
func TestRun(t *testing.T) {
	s := newSite(t)
	before := s.in(s.spaces[0], "nft list ruleset")
	r := s.start(s.machine(), socket(0, "0.0.0.0:9000"), socket(0, "0.0.0.0:9001"))
	far := replica.Client{Card: "eth0"}
	s.expect(r, far, "192.0.2.10:9000", 0)
	out := s.run(r, 0, "echo one; iptables -I INPUT -p tcp --dport 9000 -j DROP && echo two >&2; exit 3")
	if out.Code != 3 || out.Text != "one\ntwo\n" || out.Cut || out.TimedOut {
		t.Errorf("%+v", out)
	}
	s.expect(r, far, "192.0.2.10:9000", -1)
	s.expect(r, far, "192.0.2.10:9001", 1)
	if after := s.in(s.spaces[0], "nft list ruleset"); before != after {
		t.Errorf("the machine's rules changed:\n%s", after)
	}
}

// A command is run byte by byte as it was given, and may be longer than an argument of a program.
func TestRunBytes(t *testing.T) {
	s := newSite(t)
	r := s.start(s.machine())
	out := s.run(r, 0, "set -e; printf '\xff\xc3' | od -An -tx1; echo $# $0; "+
		"ls -l /proc/self/fd | grep memfd || true")
	if out.Code != 0 || out.Text != " ff c3\n0 sh\n" {
		t.Errorf("%+v", out)
	}
	long := strings.Repeat("true # a line of a script\n", 20000) + "echo end; false || exit 7\n"
	if out = s.run(r, 0, long); out.Code != 7 || out.Text != "end\n" {
		t.Errorf("%+v", out)
	}
	if out = s.run(r, 0, "set -e\nfalse\necho on"); out.Code != 1 || out.Text != "" {
		t.Errorf("%+v", out)
	}
	for script, want := range map[string]string{ // as if the script's file was run
		"#!/bin/bash\na=(1 2)\necho ${#a[@]} $#\nfalse\necho on":   "2 0\non\n",
		"#! /bin/sh\t-e\necho one\nfalse\necho on":                 "one\n",
		"#!/usr/sbin/nft -f\nadd table inet ran\nlist tables inet": "table inet ran\n",
	} {
		if out = s.run(r, 0, script); out.Text != want {
			t.Errorf("%s: %+v", script, out)
		}
	}
	out = s.run(r, 0, "#!/none/such\necho on")
	if out.Code != 127 || !strings.HasSuffix(out.Text, ": /none/such: not found\n") {
		t.Errorf("%+v", out)
	}
	if out = s.run(r, 0, "kill -TERM $$"); out.Code != 128+15 {
		t.Errorf("%+v", out)
	}
}

// Programs send all rules at once, for which the usual buffer of a socket is too small.
func TestRunManyRules(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give the sockets of commands larger buffers")
	}
	s := newSite(t)
	r := s.start(s.machine(), socket(0, "0.0.0.0:9000"))
	const before = "net.core.wmem_max"
	limit, err := sysctl.Get(before)
	if err != nil {
		t.Fatal(err)
	}
	out := s.run(r, 0, `set -e
{ echo '*filter'; echo ':many - [0:0]'; i=0
while [ $i -lt 5000 ]; do echo "-A many -s 198.18.$((i/250)).$((i%250)) -j DROP"; i=$((i+1)); done
echo COMMIT; } | iptables-restore --noflush
iptables -S many | grep -c DROP
{ echo 'table inet t { set s { type ipv4_addr; elements = {'; i=0
while [ $i -lt 10000 ]; do echo "10.0.$((i/250)).$((i%250)),"; i=$((i+1)); done
echo '}
}
}'; } >/tmp/set
nft -f /tmp/set
nft list set inet t s | grep -o '10\.0\.' | wc -l`)
	if out.Code != 0 || out.Text != "5000\n10000\n" {
		t.Errorf("exit code %d: %s", out.Code, out.Text)
	}
	if now, err := sysctl.Get(before); err != nil || now != limit {
		t.Errorf("%s was %s, and is %s: %v", before, limit, now, err)
	}
	s.expect(r, replica.Client{Card: "eth0"}, "192.0.2.10:9000", 0)
}

// Both copies give a new container the same address, also once commands have changed the rules,
// which then differ between the copies by those that cannot be copied.
func TestRunKeepsAddresses(t *testing.T) {
	s := newSite(t)
	s.in(s.spaces[0], "iptables -A INPUT -s 172.17.255.254 -m limit --limit 1/h -j DROP")
	r := s.start(s.machine(), socket(0, "0.0.0.0:9000"))
	out := s.run(r, 0, "iptables -I INPUT -p tcp --dport 9001 -j DROP")
	if out.Code != 0 {
		t.Errorf("%+v", out)
	}
	a := s.dial(r, replica.Client{Bridge: "docker0"}, "192.0.2.10:9000")
	if len(a.Outcomes) != 1 || a.Outcomes[0].Got != replica.Connected ||
		a.Outcomes[0].Seen.String() != "172.17.255.253" || len(a.Unsure) > 0 {
		t.Errorf("%+v", a)
	}
}

// With a rule that cannot be copied there are two copies, and a command changes both.
func TestRunInBothCopies(t *testing.T) {
	s := newSite(t)
	s.in(s.spaces[0], "iptables -A OUTPUT -p tcp --dport 9001 -m owner --uid-owner 12345 -j DROP")
	r := s.start(s.machine(), socket(0, "0.0.0.0:9000"), socket(0, "0.0.0.0:9001"))
	out := s.run(r, 0, "echo once; iptables -I INPUT -p tcp --dport 9000 -j DROP")
	if out.Code != 0 || out.Text != "once\n" {
		t.Errorf("%+v", out)
	}
	if a := s.dial(r, replica.Client{}, "192.0.2.10:9000"); len(a.Outcomes) != 1 ||
		a.Outcomes[0].Got != replica.Timeout || len(a.Unsure) > 0 {
		t.Errorf("both copies lose it: %+v", a)
	}
	if a := s.dial(r, replica.Client{}, "192.0.2.10:9001"); len(a.Outcomes) != 2 ||
		len(a.Unsure) == 0 {
		t.Errorf("one of two copies loses it: %+v", a)
	}
}

// Rules of the machine that cannot be copied do not become those of a command that changes others,
// or none.
func TestRunKeepsDoubtfulRules(t *testing.T) {
	s := newSite(t)
	s.in(s.spaces[0], "iptables -A OUTPUT -p tcp --dport 9001 -m owner --uid-owner 12345 -j DROP")
	r := s.start(s.machine(), socket(0, "0.0.0.0:9001"))
	for _, script := range []string{"sysctl -w net.ipv4.conf.all.log_martians=0",
		"ip route add blackhole 203.0.113.0/24", "iptables -A INPUT -p tcp --dport 9005 -j DROP"} {
		if out := s.run(r, 0, script); out.Code != 0 {
			t.Fatalf("%+v", out)
		}
		got := strings.Join(s.dial(r, replica.Client{}, "192.0.2.10:9001").Unsure, "; ")
		if want := "rule 1 of chain OUTPUT in table ip filter (owner cannot be copied)"; got != want {
			t.Errorf("after %s: %q, want %q", script, got, want)
		}
	}
}

// A command's rule that cannot be copied makes the answers unsure that depend on it.
func TestRunMakesDoubtfulRules(t *testing.T) {
	s := newSite(t)
	held := socket(0, "0.0.0.0:9002")
	held.Doubt = "a program of its control group"
	r := s.start(s.machine(), socket(0, "0.0.0.0:9000"), socket(0, "0.0.0.0:9001"), held)
	out := s.run(r, 0, "iptables -A OUTPUT -p tcp --dport 9001 -m recent --name x --rcheck -j DROP; "+
		"iptables -I INPUT -p tcp --dport 9000 -j DROP")
	if out.Code != 0 {
		t.Fatalf("%+v", out)
	}
	if a := s.dial(r, replica.Client{}, "192.0.2.10:9000"); len(a.Outcomes) != 1 ||
		a.Outcomes[0].Got != replica.Timeout || len(a.Unsure) > 0 {
		t.Errorf("both copies lose it: %+v", a)
	}
	a := s.dial(r, replica.Client{}, "192.0.2.10:9001")
	if got, want := strings.Join(a.Unsure, "; "),
		"rule 1 of chain OUTPUT in table ip filter (recent cannot be tried in a copy)"; len(a.Outcomes) != 2 ||
		got != want {
		t.Errorf("one of two copies loses it: %+v, %q, want %q", a, got, want)
	}
	if a := s.dial(r, replica.Client{}, "192.0.2.10:9002"); len(a.Unsure) != 1 ||
		a.Unsure[0] != held.Doubt {
		t.Errorf("what keeps packets from the real socket: %+v", a)
	}
}

// After a command the copy is read again: scans find new rules' ports and keep what the command
// set, rules are named by their new texts, and links and addresses are the new ones.
func TestRunIsRead(t *testing.T) {
	s := newSite(t, noLinkLocal)
	s.in(s.spaces[0], "iptables -A INPUT -p tcp --dport 9001 -j DROP")
	m := s.machine()
	for i := range m.Spaces {
		m.Spaces[i].PID = 20000 + i
	}
	r := s.start(m, socket(0, "0.0.0.0:9000"), socket(1, "0.0.0.0:80"))
	far := fromCard.Client
	s.expect(r, replica.Client{Bridge: "docker0"}, "172.17.0.2:80", 1)
	out := s.run(r, 0, `set -e
iptables -t nat -A PREROUTING -p tcp --dport 8080 -j DNAT --to-destination 172.18.0.2:80
iptables -I INPUT -p tcp --dport 9000 -j DROP
sysctl -qw net.ipv4.conf.eth0.forwarding=1
ip link add br1 type bridge
ip addr add 172.18.0.1/16 dev br1
ip link set br1 addrgenmode none
ip link set br1 up
ip link set veth2 master br1
nsenter -t 20001 -n sh -ec 'ip addr flush dev eth0; ip addr add 172.18.0.2/16 dev eth0
ip route add default via 172.18.0.1'`)
	if out.Code != 0 {
		t.Fatal(out.Text)
	}
	ports, err := r.Scan(t.Context(), fromCard)
	if err != nil || !slices.Equal(ports[0], []uint16{8080, 9000}) {
		t.Errorf("%v, %v", ports, err)
	}
	s.expect(r, far, "192.0.2.10:8080", 1)
	s.expect(r, replica.Client{Bridge: "br1"}, "172.18.0.2:80", 1)
	now, err := r.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.ReadText(t.Context(), now, 0); err != nil {
		t.Fatal(err)
	}
	rule := replica.RuleText{Table: "ip filter", Chain: "INPUT", Number: 1}
	const want = "-A INPUT -p tcp -m tcp --dport 9000 -j DROP"
	if text := now.Spaces[0].TextOf(rule); text != want {
		t.Errorf("rule 1 is %q", text)
	}
	var names []string
	for _, l := range now.Spaces[0].Links {
		names = append(names, fmt.Sprint(l.Name, now.Spaces[0].Prefixes(l.Index)))
	}
	wantNames := []string{"lo[127.0.0.1/8 ::1/128]", "eth0[192.0.2.10/24]", "docker0[172.17.0.1/16]",
		"veth2[]", "veth3[]", "br1[172.18.0.1/16]"}
	slices.Sort(names)
	slices.Sort(wantNames)
	if diff := cmp.Diff(wantNames, names); diff != "" {
		t.Error(diff)
	}
	if got := now.Spaces[1].Prefixes(now.Spaces[1].Links[1].Index); len(got) != 1 ||
		got[0].String() != "172.18.0.2/16" {
		t.Errorf("container 1 has %v", got)
	}
}

// A command that uses one namespace finds the others neither as processes nor as settings. What it
// changes there, connections meet.
func TestRunAlone(t *testing.T) {
	s := newSite(t)
	m := s.machine()
	for i := range m.Spaces {
		m.Spaces[i].PID = 20000 + i
	}
	r := s.start(m, socket(1, "0.0.0.0:80"), socket(1, "0.0.0.0:81"))
	far := replica.Client{Bridge: "docker0"}
	s.expect(r, far, "172.17.0.2:80", 0)
	out, err := r.Run(t.Context(), replica.Command{Space: 1, Alone: true, Script: []byte(
		"set -e; ls -d /proc/2000* 2>/dev/null || echo none\n" +
			"iptables -I INPUT -p tcp --dport 80 -j DROP\n" +
			"sysctl -w net.ipv4.conf.eth0.forwarding=1\n")})
	if err != nil {
		t.Fatal(err)
	}
	if out.Code != 0 || out.Text != "none\nnet.ipv4.conf.eth0.forwarding = 1\n" {
		t.Errorf("%+v", out)
	}
	s.expect(r, far, "172.17.0.2:80", -1)
	s.expect(r, far, "172.17.0.2:81", 1)
	now, err := r.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v := now.Spaces[1].Sysctls["net/ipv4/conf/eth0/forwarding"]; v != "1" {
		t.Errorf("forwarding is %q", v)
	}
}

// The ports of bridges with a spanning tree pass packets at once after commands, not after half a
// minute, except those that the tree blocks, without which frames would go round in circles.
func TestRunSpanningTree(t *testing.T) {
	s := newSite(t)
	r := s.start(s.machine(), socket(1, "0.0.0.0:80"), socket(2, "0.0.0.0:80"))
	out := s.run(r, 0, `set -e
ip addr del 172.17.0.1/16 dev docker0
for b in br1 br2; do
	ip link add $b type bridge stp_state 1
	ip link set $b up
done
ip addr add 172.17.0.1/16 dev br1
ip link set veth2 master br1`)
	if out.Code != 0 {
		t.Fatal(out.Text)
	}
	s.expect(r, replica.Client{}, "172.17.0.2:80", 0)
	s.expect(r, replica.Client{}, "172.17.0.3:80", -1)
	out = s.run(r, 0, `set -e
ip link set veth3 master br2
for b in br1 br2; do ip link set $b type bridge stp_state 1 forward_delay 200; done
for i in 1 2; do
	ip link add one$i type veth peer name two$i
	ip link set one$i master br1 up
	ip link set two$i master br2 up
done`)
	if out.Code != 0 {
		t.Fatal(out.Text)
	}
	s.expect(r, replica.Client{}, "172.17.0.3:80", 1)
	now, err := r.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var blocked []string
	for _, l := range now.Spaces[0].Links {
		if l.Settling() || now.Spaces[0].Blocks(l) {
			blocked = append(blocked, l.Name)
		}
	}
	if len(blocked) != 1 || !strings.HasPrefix(blocked[0], "one") && !strings.HasPrefix(blocked[0], "two") {
		t.Errorf("ports %q are blocked", blocked)
	}
}
