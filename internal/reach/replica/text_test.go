package replica

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const nftList = `table inet x { # handle 1
	set big { # handle 3
		type ipv4_addr
	}

	chain c { # handle 1
		comment "mine"
		type filter hook input priority filter; policy drop;
		tcp dport { 1, 2 } counter drop comment "a # handle 7" # handle 5
		tcp dport 5 jump {
			ip saddr 1.2.3.4 accept
			drop
		} # handle 9
		ip saddr { 192.0.2.1,
			   192.0.2.3-192.0.2.9 } drop # handle 10
	}

	chain d { # handle 2
	}
}
table ip filter { # handle 2
	chain c { # handle 1
		meta l4proto tcp counter drop # handle 2
	}
}
`

func TestNftRules(t *testing.T) {
	want := map[chain][]string{
		{"inet x", "c"}: {`tcp dport { 1, 2 } counter drop comment "a # handle 7"`,
			"tcp dport 5 jump { ip saddr 1.2.3.4 accept drop }",
			"ip saddr { 192.0.2.1, 192.0.2.3-192.0.2.9 } drop"},
		{"ip filter", "c"}: {"meta l4proto tcp counter drop"},
	}
	if diff := cmp.Diff(want, nftRules(nftList), cmp.AllowUnexported(chain{})); diff != "" {
		t.Error(diff)
	}
}

func feed(t *testing.T, text, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%v: %s", err, out)
		}
		t.Skipf("%v: %s", err, out)
	}
}

func TestReadText(t *testing.T) {
	p := newPlace(t)
	const table = "*filter\n:INPUT ACCEPT [0:0]\n:A - [0:0]\n"
	p.do(t, func() error {
		feed(t, table+`-A INPUT -p tcp -m multiport --dports 1,2 -m comment --comment "hi you" -j A
-A A -i eth1 -j DROP
-A A -j LOG --log-prefix "x "
COMMIT
`, "iptables-nft-restore")
		feed(t, table+"-A INPUT -s fd00::/8 -j DROP\nCOMMIT\n", "ip6tables-legacy-restore")
		feed(t, "table ip raw { chain i { type filter hook input priority 0\n"+
			"tcp dport 1 drop; }; }\ntable inet x { chain o { tcp dport 2 reject; drop; }; }\n", "nft", "-f", "-")
		return nil
	})
	m := readAs(t, p)
	if err := m.ReadText(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	want := []RuleText{
		{"inet x", "o", 1, "tcp dport 2 reject"},
		{"inet x", "o", 2, "drop"},
		{"ip filter", "A", 1, "-A A -i eth1 -j DROP"},
		{"ip filter", "A", 2, `-A A -j LOG --log-prefix "x "`},
		{"ip filter", "INPUT", 1,
			`-A INPUT -p tcp -m multiport --dports 1,2 -m comment --comment "hi you" -j A`},
		{"ip raw", "i", 1, "tcp dport 1 drop"},
		{"ip6tables-legacy filter", "INPUT", 1, "-A INPUT -s fd00::/8 -j DROP"},
	}
	if diff := cmp.Diff(want, m.Spaces[0].Text); diff != "" {
		t.Error(diff)
	}
	m.Spaces[0].Text = nil
	var both sync.WaitGroup
	for range 2 { // connections in two copies of the machine
		both.Go(func() {
			if err := m.ReadText(t.Context(), 0); err != nil || m.Spaces[0].TextOf(want[0]) != want[0].Text {
				t.Errorf("at the same time: %v", err)
			}
		})
	}
	both.Wait()
	byName := *m
	byName.Spaces[0].PID, byName.Spaces[0].Text = 0, nil
	if err := byName.ReadText(t.Context(), 0); err != nil ||
		!cmp.Equal(want, byName.Spaces[0].Text) {
		t.Errorf("without a process: %+v, %v", byName.Spaces[0].Text, err)
	}
	gone := Machine{Spaces: []Space{m.Spaces[0]}}
	gone.Spaces[0].ID, gone.Spaces[0].PID, gone.Spaces[0].Text = "net:[1]", p.pid, nil
	if err := gone.ReadText(t.Context(), 0); !errors.Is(err, errGone) {
		t.Errorf("another namespace: %v", err)
	}
	again := readAs(t, p)
	if len(again.Spaces[0].Legacy) != 1 {
		t.Errorf("tables were made: %+v", again.Spaces[0].Legacy)
	}
}

// mixed has rules that nft added to chains of iptables; iptables-save prints them without sets and
// ranges, or leaves out the table.
const mixed = `insert rule ip filter INPUT tcp dport { 8080, 8443 } counter drop
insert rule ip filter INPUT ip saddr 10.0.0.1-10.0.0.9 counter drop
insert rule ip filter INPUT tcp dport 5-9 counter drop
insert rule ip filter INPUT iifname { "eth1", "eth2" } counter drop
insert rule ip filter INPUT tcp dport 8080 counter drop
insert rule ip filter INPUT ip ttl 5 tcp dport 8080 counter drop
`

func TestReadTextOfMixedTables(t *testing.T) {
	rules := []string{"-A INPUT -p tcp -m multiport --dports 1,2 -m comment --comment mine -j DROP",
		"-A INPUT -p tcp -m tcp --dport 22:25 -j ACCEPT",
		"-A INPUT -p tcp -m tcp ! --dport 22:25 -j DROP",
		"-A INPUT ! -s 10.0.0.0/8 -d 1.2.3.4/30 -i eth+ -j DROP",
		"-A INPUT -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -m limit --limit 3/min -j REJECT " +
			"--reject-with tcp-reset",
		"-A INPUT -m mark --mark 0x1/0x3 -j NFLOG --nflog-prefix x",
		"-A INPUT -m addrtype --dst-type LOCAL -m conntrack --ctstate NEW -j DROP",
		"-A INPUT -f -j DROP", "-A INPUT -j RETURN"}
	p := newPlace(t)
	p.do(t, func() error {
		feed(t, "*filter\n:INPUT ACCEPT [0:0]\n"+strings.Join(rules, "\n")+"\nCOMMIT\n",
			"iptables-nft-restore")
		return nil
	})
	if diff := cmp.Diff(rules, textsOf(t, p)); diff != "" {
		t.Errorf("iptables' own rules: %s", diff)
	}
	p.do(t, func() error { feed(t, mixed, "nft", "-f", "-"); return nil })
	added := []string{"ip ttl 5 tcp dport 8080 counter drop",
		"-A INPUT -p tcp -m tcp --dport 8080 -j DROP",
		`iifname { "eth1", "eth2" } counter drop`, "tcp dport 5-9 counter drop",
		"ip saddr 10.0.0.1-10.0.0.9 counter drop", "tcp dport { 8080, 8443 } counter drop"}
	if diff := cmp.Diff(append(added, rules...), textsOf(t, p)); diff != "" {
		t.Errorf("with rules of nft: %s", diff)
	}
	const leftOut = "fib daddr type local tcp dport 9999 counter drop" // iptables-save refuses it
	p.do(t, func() error {
		feed(t, "insert rule ip filter INPUT "+leftOut+"\n", "nft", "-f", "-")
		return nil
	})
	got := textsOf(t, p)
	if len(got) != 1+len(added)+len(rules) || got[0] != leftOut || got[1] != added[0] {
		t.Errorf("of a table that iptables-save leaves out: %q", got)
	}
}

func textsOf(t *testing.T, p place) (out []string) {
	t.Helper()
	m := readAs(t, p)
	if err := m.ReadText(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for _, r := range m.Spaces[0].Text {
		out = append(out, r.Text)
	}
	return out
}

func FuzzRuleTexts(f *testing.F) {
	f.Add(nftList)
	f.Add("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j DROP\nCOMMIT\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, found := range []map[chain][]string{nftRules(text), iptablesRules(text, "ip ")} {
			n := 0
			for _, rules := range found {
				for _, r := range rules {
					n += len(r)
				}
			}
			if n > 2*len(text) {
				t.Errorf("%d bytes of %d", n, len(text))
			}
		}
	})
}
