package nft

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func TestDoubts(t *testing.T) {
	for name, want := range map[string]string{
		"sets.nft": "[{inet mine c 8 set update alters} {inet mine c 9 quota stops} " +
			"{inet mine c 10 limit alters} {inet mine c 12 owner alters} " +
			"{inet mine c 17 quota stops} {inet mine c 18 set update alters}]",
		"unknown.nft": "[{ip x c 1 mac either} {ip x c 2 mac passes} {ip x c 3 mac either} " +
			"{ip x c 4 owner stops} {ip x c 5 owner either} {ip x alters 2 owner open} " +
			"{ip x alters 3 owner alters} {ip x alters 4 owner open} {ip x alters 5 owner alters} " +
			"{ip x alters 6 owner stops} {ip x alters 7 owner open}]",
		"docker.iptables":     "[{ip filter INPUT 7 recent stops} {ip filter OUTPUT 1 owner passes}]",
		"ufw.iptables":        "[{ip filter ufw-user-input 2 recent stops}]",
		"kube-proxy.iptables": "[]",
		"kube-proxy.nft":      "[]", // clients stay with servers that chance chose
	} {
		s := saved(t, name)
		got := strings.ReplaceAll(fmt.Sprint(s.Doubts(xtables.Known{})), " false}", "}") // Begins
		if got != want {
			t.Errorf("%s: %s", name, got)
		}
		random := strings.HasPrefix(name, "kube-proxy") || name == "sets.nft"
		if got := s.Random(); got != random {
			t.Errorf("%s: random %t", name, got)
		}
	}
}

const doubtful = `table ip x {
	set seen { type ipv4_addr; flags dynamic; size 100; }
	chain c {
		type filter hook output priority 0; policy accept;
		tcp dport 1 meta skuid 7 tcp sport 2 counter drop
		meta skuid . tcp dport { 7 . 9 } drop
		tcp dport 3 limit rate over 1/minute drop
		tcp dport 4 add @seen { ip saddr } accept
		meta cpu 0 tcp dport 5 drop
		limit rate 1/minute return
		limit rate 1/minute log
	}
}
`

// unknownKeys has rules whose verdict or change a doubtful value decides, also as a part of a key.
const unknownKeys = `table ip x {
	map by { type mark : verdict; elements = { 1 : jump marks } }
	chain marks { meta mark set 1; }
	chain c {
		type filter hook input priority 0; policy drop;
		tcp dport 1 ether saddr vmap { 02:00:00:00:00:01 : accept }
		tcp dport . ether saddr { 2 . 02:00:00:00:00:01 } accept
		ether saddr . tcp dport vmap { 02:00:00:00:00:01 . 3 : accept }
		meta skuid 7 tcp dport 4 jump drops
		meta skuid vmap { 7 : accept, 8 : jump drops }
	}
	chain drops { drop; }
	chain alters {
		type filter hook output priority 0;
		meta mark vmap @by
		meta skuid vmap { 7 : accept }
		meta skuid 7 meta mark set 7
		meta mark set meta skuid map { 7 : 1 }
		meta skuid 7 ct mark set 7
		meta skuid 7 drop
		meta mark set 8 meta skuid 7 accept
	}
}
`

// chainText returns the rules of the table's only chain as nft prints them.
func chainText(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("nft", "-s", "list", "chain", "ip", "x", "c").Output()
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for line := range strings.Lines(string(out)) {
		rules = append(rules, strings.TrimSpace(line))
	}
	return strings.Join(rules[3:len(rules)-2], "\n")
}

func TestAssume(t *testing.T) {
	assumed(t, "doubtful.nft", map[bool]string{
		false: `tcp sport 2 tcp dport 1 counter drop
meta l4proto tcp drop
tcp dport 3 drop

tcp dport 5 drop
limit rate 1/minute return
limit rate 1/minute log`,
		true: strings.Repeat("\n", 3) + `tcp dport 4 accept

limit rate 1/minute return
limit rate 1/minute log`,
	})
	// a copy refuses no rule of which it lacks a value
	assumed(t, "unknown.nft", map[bool]string{
		false: `tcp dport 1 meta iiftype ether drop

meta iiftype ether meta l4proto tcp drop
tcp dport 4 jump drops
drop`,
		true: `tcp dport 1 meta iiftype ether accept
meta l4proto tcp meta iiftype ether accept
meta iiftype ether meta l4proto tcp accept

accept`,
	})
}

// assumed restores the rules as the lenient copy and the other have them.
func assumed(t *testing.T, name string, wants map[bool]string) {
	t.Helper()
	first := saved(t, name)
	for lenient, want := range wants {
		netnstest.Do(t, func() error {
			refused, err := first.Assume(lenient, xtables.Known{}).Restore()
			if err != nil || len(refused) > 0 {
				t.Errorf("refused: %+v, %v", refused, err)
			}
			if got := chainText(t); got != want {
				t.Errorf("lenient %t:\n%s\nwant\n%s", lenient, got, want)
			}
			return nil
		})
	}
}

func FuzzSaved(f *testing.F) {
	for _, kind := range []uint16{unix.NFT_MSG_NEWTABLE, unix.NFT_MSG_NEWRULE, unix.NFT_MSG_NEWSET,
		unix.NFT_MSG_NEWFLOWTABLE, unix.NFT_MSG_DELTABLE} {
		f.Add(kind, []byte("\x02\x00\x00\x00\x08\x00\x01\x00mine"+
			"\x0c\x00\x04\x00\x08\x00\x01\x00\x04\x00\x01\x00"))
	}
	f.Fuzz(func(t *testing.T, kind uint16, data []byte) {
		s := Saved{Messages: []raw.Message{{Type: unix.NFNL_SUBSYS_NFTABLES<<8 | kind, Data: data}}}
		p, err := partOf(s.Messages[0], 0, map[string]int{})
		if err == nil && copied[p.kind] == nil {
			t.Errorf("message %d is sent", p.kind)
		}
		s.Doubts(xtables.Known{})
		s.Random()
		s.Sources(&xtables.Sources{})
		s.Redirects("udp")
		for _, match := range []bool{true, false} {
			if n := len(s.Assume(match, xtables.Known{}).Messages); n != 1 {
				t.Errorf("%d messages", n)
			}
		}
		(&Tracer{last: map[uint32]Packet{}}).event(data)
	})
}
