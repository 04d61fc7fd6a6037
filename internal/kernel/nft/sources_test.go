package nft

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

// Each rule may treat some of ten containers differently from others of their network.
func TestSources(t *testing.T) {
	const few = "172.17.0.3, 172.17.0.5"
	const hook = "chain c { type filter hook forward priority 0; "
	chain := func(rule string) string {
		return "table ip f { chain deep { drop; }; " + hook + rule + "; }; }"
	}
	netnstest.Do(t, func() error {
		for text, want := range map[string]string{
			chain("ip saddr { " + few + " } accept"): few,
			chain("ip daddr 172.17.0.3 drop"):        "172.17.0.3",
			chain("ip daddr != 172.17.0.3 drop"):     "172.17.0.3",
			chain("ip daddr { " + few + " } drop"):   few,
			chain("ip daddr 172.17.0.3-172.17.0.5 drop"): "172.17.0.3, 172.17.0.4, " +
				"172.17.0.5",
			chain("ip daddr { 172.17.0.4-172.17.0.5 } reject"):                   "172.17.0.4, 172.17.0.5",
			chain("ip daddr 172.17.0.4/31 drop"):                                 "172.17.0.4, 172.17.0.5",
			chain("ip daddr vmap { 172.17.0.3 : drop, 172.17.0.5 : jump deep }"): few,
			chain("ip daddr 172.17.0.3 jump deep"):                               "172.17.0.3",
			chain("ip daddr 172.17.0.3 accept"):                                  "172.17.0.3",
			chain("ip daddr 172.17.0.3 meta mark set 1"):                         "172.17.0.3",
			chain("ip saddr 10.0.0.1 ip daddr 172.17.0.3 drop"):                  "172.17.0.3",
			chain("ip daddr . ip saddr { 172.17.0.3 . 10.0.0.1 } drop"):          "172.17.0.3",
			chain("ip daddr 172.17.0.3 tcp sport 443 drop"):                      "172.17.0.3",
			chain("ct original ip saddr 172.17.0.3 drop"):                        "172.17.0.3",
			chain("ct reply ip daddr 172.17.0.3 drop"):                           "172.17.0.3",
			chain("oifname veth3 drop"):                                          "veth3",
			chain("oifname { veth3, veth5 } drop"):                               "veth3, veth5",
			// These do nothing to answers.
			chain("ip daddr 172.17.0.3 counter"):                   "",
			chain("ip daddr 172.17.0.3 log"):                       "",
			chain("ip daddr 172.17.0.3 tcp dport 80 drop"):         "",
			chain("ip daddr . tcp dport { 172.17.0.3 . 80 } drop"): "",
			chain("iifname != docker0 ip daddr 172.17.0.3 drop"):   "",
			chain("ip daddr 172.17.0.0/16 drop"):                   "",
			chain("ct original ip daddr 172.17.0.3 drop"):          "",
			chain("oifname docker0 tcp dport 80 drop"):             "",
			"table ip f { chain c { type nat hook prerouting priority 0; " +
				"ip saddr 172.17.0.3 return; }; }": "",
			"table bridge f { " + hook +
				"ether saddr 02:00:00:00:00:03 ether daddr 02:00:00:00:00:05 drop; }; }": "mac3, mac5",
			"table bridge f { " + hook +
				"ether daddr 02:00:00:00:00:05 drop; }; }": "mac5",
			"table ip6 f { " + hook + "ip6 daddr fd00::3 drop; }; }": "fd00::3",
			"table arp f { chain c { type filter hook input priority 0; " +
				"arp daddr ip 172.17.0.3 drop; }; }": "172.17.0.3",
		} {
			var from xtables.Sources
			only(t, text).Sources(&from)
			if got := singled(&from); got != want {
				t.Errorf("%s: %q, want %q", text, got, want)
			}
		}
		return nil
	})
}

// only replaces the rules of the calling thread's namespace, and returns the new ones.
func only(t *testing.T, text string) Saved {
	t.Helper()
	err := program("nft", "flush ruleset; "+text, "-f", "-")
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	var out Saved
	if err == nil {
		out, err = Save()
	}
	if err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return out
}

// singled lists the addresses, devices and hardware addresses of ten containers that rules compare.
func singled(from *xtables.Sources) string {
	var out []string
	for i := range byte(10) {
		v4 := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 17, 0, i}), 16)
		v6 := netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 15: i}), 64)
		for _, p := range []netip.Prefix{v4, v6} {
			if from.Has(p) {
				out = append(out, p.Addr().String())
			}
		}
		digit := string('0' + i)
		if from.HasName([]byte("veth" + digit)) {
			out = append(out, "veth"+digit)
		}
		if from.HasName([]byte{2, 0, 0, 0, 0, i}) {
			out = append(out, "mac"+digit)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// Only rules that change destinations redirect: others of NAT tables do not.
func TestRedirects(t *testing.T) {
	all, tcp, udp := []string{"", "tcp", "udp"}, []string{"", "tcp"}, []string{"", "udp"}
	netnstest.Do(t, func() error {
		for text, want := range map[string][]string{
			"ip saddr 172.17.0.0/16 oifname != docker0 masquerade": nil,
			"meta l4proto tcp snat to 192.0.2.1":                   nil,
			"log prefix \"REDIRECT DNAT\"":                         nil,
			"tcp dport 80 dnat to 172.17.0.2:8080":                 tcp,
			"udp dport 80 redirect to :8080":                       udp,
			"meta l4proto != tcp dnat to 172.17.0.2":               all,
			"meta l4proto { tcp, udp } dnat to 172.17.0.2":         all,
			"ip saddr 10.0.0.1 dnat to 172.17.0.2":                 all,
			"udp dport 80 ip daddr set 172.17.0.2":                 udp,
		} {
			hook := "prerouting"
			if want == nil {
				hook = "postrouting"
			}
			saved := only(t, "table ip nat { chain c { type nat hook "+hook+" priority 0; "+text+"; }; }")
			for _, proto := range all {
				if got := saved.Redirects(proto); got != slices.Contains(want, proto) {
					t.Errorf("%s: %q: %t", text, proto, got)
				}
			}
		}
		return nil
	})
}
