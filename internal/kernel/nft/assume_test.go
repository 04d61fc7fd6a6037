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
		"sets.nft": "[{inet mine c 8 set update} {inet mine c 9 quota} {inet mine c 10 limit} " +
			"{inet mine c 12 owner} {inet mine c 17 quota} {inet mine c 18 set update}]",
		"docker.iptables":     "[{ip filter INPUT 7 recent} {ip filter OUTPUT 1 owner}]",
		"ufw.iptables":        "[{ip filter ufw-user-input 2 recent}]",
		"kube-proxy.iptables": "[]",
		"kube-proxy.nft":      "[{ip kube-proxy service-A 2 set update}]",
	} {
		s := saved(t, name)
		if got := fmt.Sprint(s.Doubts(xtables.Known{})); got != want {
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
	first := saved(t, "doubtful.nft")
	for match, want := range map[bool]string{
		true: `tcp sport 2 tcp dport 1 counter drop
meta l4proto tcp drop
tcp dport 3 drop
tcp dport 4 accept
tcp dport 5 drop
limit rate 1/minute return
limit rate 1/minute log`,
		false: strings.Repeat("\n", 5) + `limit rate 1/minute return
limit rate 1/minute log`,
	} {
		netnstest.Do(t, func() error {
			refused, err := first.Assume(match, xtables.Known{}).Restore()
			if err != nil || len(refused) > 0 {
				t.Errorf("refused: %+v, %v", refused, err)
			}
			if got := chainText(t); got != want {
				t.Errorf("match %t:\n%s\nwant\n%s", match, got, want)
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
		for _, match := range []bool{true, false} {
			if n := len(s.Assume(match, xtables.Known{}).Messages); n != 1 {
				t.Errorf("%d messages", n)
			}
		}
		(&Tracer{last: map[uint32]Packet{}}).event(data)
	})
}
