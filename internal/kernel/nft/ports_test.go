package nft

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func TestPortUse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it needs root")
	}
	for _, c := range []struct {
		rule  string
		ok    bool
		ports []uint16 // of the rule for certain ports; nil: there is none
		cuts  []uint16 // among those wanted
		to    []uint16
	}{
		{"iptables -A INPUT -p tcp --dport 80 -j DROP", true, []uint16{80}, nil, nil},
		{"iptables -A INPUT -p udp --sport 80 --dport 81 -j DROP", true, nil, []uint16{80, 81},
			nil},
		{"iptables -A INPUT -p tcp --dport 80:90 -j DROP", true, nil, []uint16{80, 90}, nil},
		{"iptables -A INPUT -p tcp ! --dport 80 -j DROP", true, nil, []uint16{80}, nil},
		{"iptables -A INPUT -p tcp -m multiport --dports 80,443 -j DROP", true, nil,
			[]uint16{80, 443}, nil},
		{"iptables -A INPUT -s 192.0.2.1 -j DROP", true, nil, nil, nil},
		{"iptables -t nat -A PREROUTING -p tcp --dport 80 -j DNAT --to-destination 192.0.2.1:8080",
			true,
			[]uint16{80, 8080}, nil, nil},
		{"iptables -t nat -A PREROUTING -p tcp -j REDIRECT --to-ports 8080", true, nil, nil,
			[]uint16{8080}},
		{"iptables -t nat -A PREROUTING -p tcp -j REDIRECT --to-ports 8080-8090", false, nil, nil,
			nil},
		{"iptables -t nat -A POSTROUTING -j MASQUERADE", true, nil, nil, nil},
		{"iptables -A INPUT -m u32 --u32 0=1 -j DROP", false, nil, nil, nil},
		{"nft add rule inet x c tcp dport 80 drop", true, []uint16{80}, nil, nil},
		{"nft add rule inet x c tcp dport != 80 drop", true, nil, []uint16{80}, nil},
		{"nft add rule inet x c tcp dport '{ 80, 443 }' drop", true, nil, []uint16{80, 443}, nil},
		{"nft add rule inet x c ip daddr . tcp dport '{ 192.0.2.1 . 80 }' drop", true, nil,
			[]uint16{80},
			nil},
		{"nft add rule inet x c tcp dport '&' 3 == 1 drop", false, nil, nil, nil},
		{"nft add rule inet x c meta mark set 1 tcp dport 80", true, nil, []uint16{80}, nil},
		{"nft add rule inet x c meta mark set @th,0,32", false, nil, nil, nil},
		{"nft add rule inet x c ct mark set @th,0,32", false, nil, nil, nil},
		{"nft add rule inet x c meta mark set ct mark", true, nil, nil, nil},
		{"nft add rule inet x c meta nfproto ipv4 @nh,176,16 80 drop", false, nil, nil, nil},
		{"nft add rule inet x c @ll,288,16 80 drop", false, nil, nil, nil},
		{"nft add rule inet x c ip6 saddr 2001:db8::/64 ip6 daddr ::2 drop", true, nil, nil, nil},
		{"nft add rule inet x c ip daddr 192.0.2.0/24 ip saddr 192.0.2.1 drop", true, nil, nil,
			nil},
		{"nft add rule inet x c meta l4proto tcp ct original proto-dst 80 drop", true, nil,
			[]uint16{80}, nil},
		{"nft add rule inet x n tcp dport 80 dnat ip to 192.0.2.1:8080", true, []uint16{80, 8080},
			nil,
			nil},
		{"nft add rule inet x n meta l4proto tcp redirect to :8080", true, nil, nil,
			[]uint16{8080}},
	} {
		netnstest.Do(t, func() error {
			cmd := exec.Command("sh", "-ec", "nft add table inet x; nft add chain inet x c; "+
				"nft 'add chain inet x n { type nat hook prerouting priority 0; }'; "+c.rule)
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", c.rule, err, out)
			}
			saved, err := Save()
			if err != nil {
				return err
			}
			got, ok := saved.PortUse()
			var ports []uint16
			for _, r := range got.Rules {
				ports = append(ports, r.Ports...)
			}
			if ok != c.ok || ok && (!slices.Equal(ports, c.ports) || !slices.Equal(got.Targets, c.to)) {
				t.Errorf("%s: %+v, %t", c.rule, got, ok)
			}
			for _, n := range c.cuts {
				if !slices.Contains(got.Cuts, n) {
					t.Errorf("%s: %d is not in %v", c.rule, n, got.Cuts)
				}
			}
			return nil
		})
	}
}

// Older versions of iptables-nft write matches of xtables, which the kernel dumps with a padding.
func TestPortUseOfPaddedMatches(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it needs root")
	}
	for _, c := range []struct {
		proto byte
		match expr.Match
		not   bool
	}{
		{unix.IPPROTO_UDP, expr.Match{Name: "udp", Info: &xt.Udp{SrcPorts: [2]uint16{0, 0xffff},
			DstPorts: [2]uint16{53, 53}}}, false},
		{unix.IPPROTO_UDP, expr.Match{Name: "udp", Info: &xt.Udp{SrcPorts: [2]uint16{0, 0xffff},
			DstPorts: [2]uint16{53, 53}, InvFlags: xt.UdpInvDestPorts}}, true},
		{unix.IPPROTO_TCP, expr.Match{Name: "tcp", Info: &xt.Tcp{SrcPorts: [2]uint16{0, 0xffff},
			DstPorts: [2]uint16{53, 53}}}, false},
		{unix.IPPROTO_TCP, expr.Match{Name: "tcp", Info: &xt.Tcp{SrcPorts: [2]uint16{0, 0xffff},
			DstPorts: [2]uint16{53, 53}, InvFlags: xt.TcpInvDestPorts}}, true},
	} {
		netnstest.Do(t, func() error {
			conn, err := nftables.New()
			if err != nil {
				return err
			}
			table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "filter"})
			chain := conn.AddChain(&nftables.Chain{Table: table, Name: "INPUT",
				Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput,
				Priority: nftables.ChainPriorityFilter})
			conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
				&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
				&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{c.proto}},
				&c.match, &expr.Verdict{Kind: expr.VerdictDrop}}})
			if err := conn.Flush(); err != nil {
				return fmt.Errorf("%s: %w", c.match.Name, err)
			}
			saved, err := Save()
			if err != nil {
				return err
			}
			got, ok := saved.PortUse()
			only := len(got.Rules) == 1 && slices.Equal(got.Rules[0].Ports, []uint16{53})
			if !ok || only == c.not || c.not != slices.Contains(got.Cuts, 53) {
				t.Errorf("%s, inverted %t: %+v, %t", c.match.Name, c.not, got, ok)
			}
			return nil
		})
	}
}
