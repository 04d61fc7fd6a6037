package nft

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func TestSleep(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it needs root")
	}
	ns := netnstest.New(t)
	refused := func(want bool, port string) {
		t.Helper()
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			c.Close()
		}
		if (err != nil) != want {
			t.Errorf("port %s: %v", port, err)
		}
	}
	// Of these tables the kernel calls the last one first. If it calls them in another order, a
	// packet does not get the mark with which the first one drops it.
	var inOrder strings.Builder
	for i := range 8 {
		rule := "reject with tcp reset"
		if i > 0 {
			rule = fmt.Sprintf("meta mark set %d", 100+i)
		}
		match := fmt.Sprintf("meta mark %d", 101+i)
		if i == 7 {
			match = "meta mark 0"
		}
		fmt.Fprintf(&inOrder, "table ip mark%d {\n\tchain in { type filter hook input priority 5; "+
			"tcp dport 12 %s %s; }\n}\n", i, match, rule)
	}
	if err := ns.Do(func() error {
		cmd := exec.Command("sh", "-ec", "ip link set lo up; nft -f -")
		cmd.Stdin = strings.NewReader(`table inet fw {
	chain in { type filter hook input priority 0; policy accept
		tcp dport { 7, 4242 } reject with tcp reset
	}
}
table ip mangle {
	chain out { type filter hook output priority -150; tcp dport 8 meta mark set 5; }
	chain in { type filter hook input priority 0; tcp dport 9 reject with tcp reset; }
}
table ip mine {
	chain out { type nat hook output priority -100; counter meta mark 5 tcp dport 8 redirect to :7; }
	chain in { type filter hook input priority 0; tcp dport 10 reject with tcp reset; }
}
table ip off {
	flags dormant
	chain in { type filter hook input priority 0; tcp dport 11 reject with tcp reset; }
}
` + inOrder.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, p := range []string{"7", "9", "10", "11", "12"} {
			l, err := net.Listen("tcp4", "127.0.0.1:"+p)
			if err != nil {
				return err
			}
			t.Cleanup(func() { l.Close() })
		}
		for _, p := range []string{"7", "8", "9", "10"} {
			refused(true, p)
		}
		refused(false, "11")
		refused(true, "12")
		saved, err := Save()
		if err != nil {
			return err
		}
		wake, err := saved.Sleep()
		if err != nil {
			return err
		}
		refused(false, "7")
		refused(false, "8")
		refused(true, "9")
		refused(true, "10")
		refused(false, "11")
		refused(false, "12")
		words := map[uint16]bool{}
		saved.Words(func(n uint16) { words[n] = true })
		if words[4242] || !words[8] || !words[10] {
			t.Errorf("%v", words)
		}
		if err := wake(); err != nil {
			return err
		}
		refused(true, "7")
		refused(false, "11")
		refused(true, "12")
		for _, c := range []struct {
			rule string
			same bool
		}{{"add rule inet fw in tcp dport 5 drop", true},
			{"add rule ip mine in tcp dport 5 drop", false},
			{"add rule ip mangle out counter accept", false}, {"add table ip new", false},
			{"add chain inet fw n { type nat hook input priority 0 ; }", false}} {
			before, err := Save()
			if err != nil {
				return err
			}
			refused(true, "8") // which counts packets
			if out, err := exec.Command("nft", c.rule).CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", c.rule, err, out)
			}
			after, err := Save()
			if err != nil {
				return err
			}
			if same := reflect.DeepEqual(before.Awake(), after.Awake()); same != c.same {
				t.Errorf("%s: what is awake is the same: %t", c.rule, same)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
