package replica

import (
	"errors"
	"os"
	"os/exec"
	"strings"
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
