package xtables

import (
	"bytes"
	"errors"
	"net"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

const ruleSet = `*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A DOCKER -i docker0 -j RETURN
-A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:DOCKER-USER - [0:0]
:f2b-sshd - [0:0]
-A INPUT -p tcp -m multiport --dports 22 -j f2b-sshd
-A INPUT -p udp -m limit --limit 3/min --limit-burst 10 -j LOG --log-prefix "[UFW BLOCK] "
-A INPUT -p udp -m limit --limit 3/min -j ACCEPT
-A INPUT -i lo -p tcp -m tcp --dport 25 -j REJECT --reject-with tcp-reset
-A INPUT -i lo -p tcp -m tcp --dport 1
-A INPUT -p tcp -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -p tcp -m hashlimit --hashlimit-upto 5/sec --hashlimit-name x -j NFQUEUE
-A FORWARD -j DOCKER-USER
-A OUTPUT -p tcp --dport 7 -m owner --uid-owner 7 -j DROP
-A DOCKER-USER -m limit --limit 1/sec -j RETURN
-A DOCKER-USER -m comment --comment "mine" -j LOG
-A f2b-sshd -s 192.0.2.66/32 -j REJECT --reject-with icmp-port-unreachable
-A f2b-sshd -j RETURN
COMMIT
`

const ruleSet6 = `*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:X - [0:0]
-A INPUT -p tcp -m tcp --dport 2 -j X
-A OUTPUT -p tcp -m tcp --dport 3 -m owner --uid-owner 3 -j DROP
-A X -s fd00::/8 -m statistic --mode random --probability 0.5 -j DROP
COMMIT
`

func enter(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); errors.Is(err, unix.EPERM) {
		skipUnlessCI(t, "network namespaces need root here")
	} else if err != nil {
		t.Fatal(err)
	}
}

func runOn(t *testing.T, input, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		skipUnlessCI(t, "%v: %s", err, said.String())
	}
	return out.String()
}

func load(t *testing.T) []Saved {
	t.Helper()
	enter(t)
	runOn(t, ruleSet, "iptables-legacy-restore")
	runOn(t, ruleSet6, "ip6tables-legacy-restore")
	out, err := Save()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// text returns the rules as their user wrote them.
func text(t *testing.T) string {
	t.Helper()
	var out []string
	for _, program := range []string{"iptables-legacy-save", "ip6tables-legacy-save"} {
		for _, table := range []string{"filter", "nat"} {
			if !Loaded(table, program == "ip6tables-legacy-save") {
				continue
			}
			for line := range strings.Lines(runOn(t, "", program, "-t", table)) {
				if !strings.HasPrefix(line, "#") {
					out = append(out, line)
				}
			}
		}
	}
	return strings.Join(out, "")
}

func restore(t *testing.T, tables []Saved) {
	t.Helper()
	enter(t)
	for _, s := range tables {
		if refused, err := s.Restore(); err != nil || len(refused) > 0 {
			t.Errorf("refused: %v, %v", refused, err)
		}
	}
}

func TestRestore(t *testing.T) {
	tables := load(t)
	want := text(t)
	restore(t, tables)
	if got := text(t); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if again, err := Save(); err != nil || !slices.EqualFunc(again, tables, func(a, b Saved) bool {
		return a.Name == b.Name && a.Six == b.Six && bytes.Equal(a.Info, b.Info) &&
			len(a.Entries) == len(b.Entries)
	}) {
		t.Errorf("saved again: %+v, %v", again, err)
	}
}

func TestRestoreSkipsWhatIsRefused(t *testing.T) {
	tables := load(t)
	for i, s := range tables {
		tables[i].Entries = bytes.ReplaceAll(s.Entries, []byte("hashlimit"), []byte("hashlimut"))
	}
	enter(t)
	var what []string
	for _, s := range tables {
		refused, err := s.Restore()
		if err != nil {
			t.Error(err)
		}
		for _, r := range refused {
			what = append(what, r.What)
		}
	}
	const filter = "of iptables-legacy filter "
	want := []string{"rule 2 " + filter + "INPUT (limit)", "rule 3 " + filter + "INPUT (limit)",
		"rule 7 " + filter + "INPUT (hashlimut)", "rule 1 " + filter + "OUTPUT (owner)",
		"rule 1 " + filter + "DOCKER-USER (limit)"}
	if !slices.Equal(what, want) {
		t.Errorf("%q", what)
	}
	if got := text(t); !testgolden.HasLine(got, "-A INPUT -s 255.255.255.255/32 -p udp -j ACCEPT") {
		t.Error(got)
	}
}

func TestRules(t *testing.T) {
	load(t)
	if err := link.Up("lo"); err != nil {
		t.Fatal(err)
	}
	before, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	dialLocal(t)
	after, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	var hit []Rule
	for i, r := range after {
		if r.Packets > before[i].Packets && r.Table == "iptables-legacy filter" {
			r.Packets = 0
			hit = append(hit, r)
		}
	}
	want := []Rule{{"iptables-legacy filter", "INPUT", 4, "REJECT", 0},
		{"iptables-legacy filter", "INPUT", 6, "ACCEPT", 0},
		{"iptables-legacy filter", "OUTPUT", 0, "ACCEPT", 0}}
	if !slices.Equal(hit, want) {
		t.Errorf("%+v\nall: %+v", hit, after)
	}
}

func dialLocal(t *testing.T) {
	t.Helper()
	if c, err := net.Dial("tcp", "127.0.0.1:25"); err == nil {
		c.Close()
		t.Error("connected")
	}
}

func TestDoubts(t *testing.T) {
	tables := load(t)
	var all []Doubt
	random := false
	for _, s := range tables {
		all = append(all, s.Doubts(Known{})...)
		random = random || s.Random()
	}
	want := []Doubt{{"iptables-legacy filter", "INPUT", 3, "limit", Passes, false},
		{"iptables-legacy filter", "INPUT", 7, "hashlimit", Either, false},
		{"iptables-legacy filter", "OUTPUT", 1, "owner", Stops, false},
		{"ip6tables-legacy filter", "OUTPUT", 1, "owner", Stops, false}}
	if !slices.Equal(all, want) || !random {
		t.Errorf("%+v, random: %t", all, random)
	}
}

// The base chain is B.
func TestEffects(t *testing.T) {
	accept, drop := Act{Verdict: Accept}, Act{Verdict: Drop}
	mark, to := Act{Alters: true}, func(v Verdict, c string) Act { return Act{Verdict: v, To: []string{c}} }
	in := func(chain string, acts ...Act) []Act {
		for i := range acts {
			acts[i].Chain = chain
		}
		return acts
	}
	for _, tt := range []struct {
		acts []Act // the first is doubtful
		want Effect
	}{
		{in("B", accept, drop), Passes},
		{in("B", accept, mark), Alters},
		{in("B", drop, mark), Stops},
		{in("B", mark), Alters},
		{in("B", Act{Verdict: Any}, drop), Either},
		{in("B", Act{Verdict: Any}, mark), Open},
		{in("B", Act{Alters: true, Open: true}), Open},
		{in("B", Act{Verdict: Return}, drop), Passes},
		{in("B", Act{Verdict: Return}, accept), Stops},
		{in("B", Act{Verdict: Return}, accept, drop), Either},
		{append(in("B", to(Jump, "C")), in("C", drop)...), Stops},
		{append(in("B", to(Jump, "C")), in("C", accept, Act{Verdict: Return})...), Passes},
		{append(in("B", to(Jump, "C")), in("C", accept, drop)...), Either},
		{append(in("B", to(Goto, "C")), in("C", drop)...), Either},
		{slices.Concat(in("B", to(Jump, "C")), in("C", to(Jump, "D")), in("D", drop, to(Jump, "C"))), Stops},
		{slices.Concat(in("C", accept), in("D", to(Jump, "C"), mark), in("B", to(Goto, "D"))), Alters},
		{slices.Concat(in("C", accept), in("B", to(Jump, "C")), in("E", mark)), Passes},
	} {
		if got := NewEffects(tt.acts, []string{"B"}).Of(0); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.acts, got, tt.want)
		}
	}
}

func TestAssume(t *testing.T) {
	tables := load(t)
	original := text(t)
	for lenient, replaced := range map[bool][]string{
		true: {
			"-A INPUT -p udp -m limit --limit 3/min -j ACCEPT", "-A INPUT -p udp -j ACCEPT",
			"-A INPUT -p tcp -m hashlimit --hashlimit-upto 5/sec --hashlimit-burst 5 " +
				"--hashlimit-name x -j NFQUEUE --queue-num 0",
			"-A INPUT -p tcp -j ACCEPT",
			"-A OUTPUT -p tcp -m tcp --dport 7 -m owner --uid-owner 7 -j DROP",
			"-A OUTPUT -s 255.255.255.255/32 -p tcp -m tcp --dport 7 -j DROP",
			"-A OUTPUT -p tcp -m tcp --dport 3 -m owner --uid-owner 3 -j DROP",
			"-A OUTPUT -s ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128 -p tcp -m tcp --dport 3 " +
				"-j DROP",
		},
		false: {
			"-A INPUT -p udp -m limit --limit 3/min -j ACCEPT",
			"-A INPUT -s 255.255.255.255/32 -p udp -j ACCEPT",
			"-A INPUT -p tcp -m hashlimit --hashlimit-upto 5/sec --hashlimit-burst 5 " +
				"--hashlimit-name x -j NFQUEUE --queue-num 0",
			"-A INPUT -p tcp -j DROP",
			"-A OUTPUT -p tcp -m tcp --dport 7 -m owner --uid-owner 7 -j DROP",
			"-A OUTPUT -p tcp -m tcp --dport 7 -j DROP",
			"-A OUTPUT -p tcp -m tcp --dport 3 -m owner --uid-owner 3 -j DROP",
			"-A OUTPUT -p tcp -m tcp --dport 3 -j DROP",
		},
	} {
		var assumed []Saved
		for _, s := range tables {
			assumed = append(assumed, s.Assume(lenient, Known{}))
		}
		restore(t, assumed)
		if got, want := text(t), strings.NewReplacer(replaced...).Replace(original); got != want {
			t.Errorf("lenient %t:\n%s\nwant\n%s", lenient, got, want)
		}
	}
}

func FuzzSaved(f *testing.F) {
	head := info{validHooks: 2, entries: 1, size: 168}
	f.Add(head.bytes(), make([]byte, 168), false)
	f.Fuzz(func(t *testing.T, head, entries []byte, six bool) {
		s := Saved{Name: "filter", Six: six, Info: head, Entries: entries}
		rules := s.Rules()
		if n := len(rules); n > len(entries)/extensionHead {
			t.Errorf("%d rules in %d bytes", n, len(entries))
		}
		for _, match := range []bool{true, false} {
			if n := len(s.Assume(match, Known{}).Entries); n > len(entries)+40*len(rules) {
				t.Errorf("%d bytes of %d", n, len(entries))
			}
		}
		s.Doubts(Known{})
		s.Random()
		s.Sources(&Sources{})
		s.Redirects("udp")
	})
}
