package nft

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

// ruleSets has inputs of nft and iptables-restore by their names.
var ruleSets = map[string]string{
	"sets.nft": `table inet mine {
	set friends { type ipv4_addr; flags interval
		elements = { 192.0.2.0/25, 203.0.113.7, 10.0.0.0/8, 255.255.255.255 } }
	set far { type ipv6_addr; flags interval; auto-merge
		elements = { fd00::/8, 2001:db8::1-2001:db8::9 } }
	set doors { type ipv4_addr . inet_service
		elements = { 198.18.0.1 . 22, 198.18.0.3 . 23 } }
	set wide { type inet_proto . inet_service; flags interval
		elements = { tcp . 5000-5999, udp . 53 } }
	set bans { type ipv4_addr; flags timeout; timeout 1h
		elements = { 203.0.113.9 timeout 2h comment "ssh" } }
	set seen { type ipv4_addr; flags dynamic,timeout; timeout 1m; size 100; }
	set counted { type ipv4_addr; counter; elements = { 192.0.2.1, 192.0.2.2 } }
	map to { type inet_service : ipv4_addr . inet_service
		elements = { 80 : 172.17.0.2 . 8080 } }
	map verdicts { type inet_service : verdict; flags interval
		elements = { 80 : accept, 1000-2000 : jump deep, 65000-65535 : drop } }
	counter hits { packets 3 bytes 4 }
	quota most { over 1 mbytes }
	limit slow { rate 10/second }
	map named { type ipv4_addr : counter; elements = { 192.0.2.9 : "hits" } }
	map allowed { type ipv4_addr : quota; elements = { 192.0.2.9 : "most" } }
	set slowed { type ipv4_addr; limit rate 1/minute; elements = { 192.0.2.8 } }
	chain deep { udp dport 1000-2000 accept
		tcp dport { 1500, 1501-1505 } drop comment "two"
	}
	chain c {
		type filter hook input priority 0; policy drop;
		ct state vmap { established : accept, related : accept, invalid : drop }
		iifname { "eth0", "veth*" } ip6 daddr @far drop
		ip saddr @friends counter packets 5 bytes 6 accept
		ip daddr . tcp dport @doors drop
		meta l4proto . th dport @wide drop
		tcp dport vmap @verdicts
		ip saddr @bans drop
		tcp dport 22 add @seen { ip saddr limit rate 3/minute } accept
		quota name "most" drop
		limit name "slow" accept
		counter name "hits"
		meta skuid 0 accept
		tcp dport { 0-1023 } jump { ip saddr 192.0.2.1 accept; drop; }
		tcp dport 9 reject with tcp reset
		meta mark set numgen random mod 2 map { 0 : 1, 1 : 2 }
		log prefix "end " limit rate 1/second
		quota name ip saddr map @allowed drop
		ip saddr @slowed accept
	}
	chain pre {
		type nat hook prerouting priority dstnat;
		dnat ip to tcp dport map @to
	}
	chain post {
		type nat hook postrouting priority srcnat;
		oifname "eth0" masquerade
	}
}
table netdev guard {
	chain in { type filter hook ingress device "lo" priority 0
		ip saddr 192.0.2.66 drop; }
}
table bridge frames {
	chain f { type filter hook forward priority 0; ether type arp accept; }
}
table ip asleep {
	flags dormant;
	chain i { type filter hook input priority 0; policy drop; }
}
`,
	"docker.iptables": `*mangle
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -i eth0 -p tcp -m tcp --dport 99 -j MARK --set-xmark 0x1/0xffffffff
-A POSTROUTING -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
COMMIT
*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -d 172.17.0.2/32 ! -i docker0 -j DROP
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
-A DOCKER -p udp -m udp --dport 53 -j REDIRECT --to-ports 5353
COMMIT
*filter
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:DOCKER - [0:0]
:DOCKER-USER - [0:0]
-A INPUT -p tcp -m multiport --dports 80,443,1000:2000 -j ACCEPT
-A INPUT -p tcp -m tcp --dport 25 -j REJECT --reject-with tcp-reset
-A INPUT ! -p tcp -m length --length 1000:2000 -j DROP
-A INPUT -m iprange --src-range 192.0.2.3-192.0.2.9 -j REJECT
-A INPUT -m limit --limit 3/min --limit-burst 10 -j LOG --log-prefix "[UFW BLOCK] "
-A INPUT -p tcp -m conntrack --ctstate NEW -m recent --set --name ssh --rsource
-A INPUT -p tcp -m recent --update --seconds 30 --hitcount 6 --name ssh --rsource -j DROP
-A OUTPUT -m owner --uid-owner 0 -j ACCEPT
-A FORWARD -j DOCKER-USER
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -o docker0 -j DOCKER
-A DOCKER -d 172.17.0.2/32 ! -i docker0 -o docker0 -p tcp -m tcp --dport 80 -j ACCEPT
-A DOCKER-USER -m comment --comment "mine" -j RETURN
COMMIT
`,
	"doubtful.nft": doubtful, "unknown.nft": unknownKeys,
	"kube-proxy.nft": `table ip kube-proxy {
	comment "rules for kube-proxy"
	set cluster-ips { type ipv4_addr; comment "Active ClusterIPs"; elements = { 10.96.0.10 } }
	map service-ips { type ipv4_addr . inet_proto . inet_service : verdict
		elements = { 10.96.0.10 . tcp . 80 : goto service-A } }
	map firewall-ips { type ipv4_addr . inet_proto . inet_service : verdict; }
	map no-endpoint-nodeports { type inet_proto . inet_service : verdict
		elements = { tcp . 30080 comment "default/none" : goto reject-chain } }
	map affinity { type ipv4_addr : ipv4_addr; flags dynamic,timeout; timeout 10800s; }
	set affinity-1 { type ipv4_addr; flags dynamic,timeout; timeout 10800s; }
	chain filter-input {
		type filter hook input priority -110
		ct state new meta l4proto . th dport vmap @no-endpoint-nodeports
	}
	chain nat-prerouting {
		type nat hook prerouting priority dstnat
		ip daddr . meta l4proto . th dport vmap @service-ips
		fib daddr type local meta l4proto . th dport vmap @no-endpoint-nodeports
	}
	chain nat-postrouting {
		type nat hook postrouting priority srcnat
		meta mark & 0x4000 == 0 return
		meta mark set meta mark ^ 0x4000
		masquerade fully-random
	}
	chain service-A {
		ip daddr 10.96.0.10 tcp dport 80 ip saddr != 10.244.0.0/16 meta mark set meta mark | 0x4000
		ip saddr @affinity-1 goto endpoint-1
		numgen random mod 2 vmap { 0 : goto endpoint-1, 1 : goto endpoint-2 }
	}
	chain endpoint-1 {
		update @affinity-1 { ip saddr }
		meta l4proto tcp dnat to 10.244.0.5:8080
	}
	chain endpoint-2 { meta l4proto tcp dnat to 10.244.0.6:8080
	}
	chain reject-chain { reject
	}
}
`,
	"fail2ban.nft": `table inet f2b-table {
	set addr-set-sshd { type ipv4_addr; elements = { 192.0.2.66, 203.0.113.4 } }
	set addr6-set-sshd { type ipv6_addr; elements = { 2001:db8::66 } }
	chain f2b-chain {
		type filter hook input priority filter - 1
		tcp dport 22 ip saddr @addr-set-sshd reject with icmp port-unreachable
		tcp dport 22 ip6 saddr @addr6-set-sshd reject with icmpv6 port-unreachable
	}
}
`,
	"ufw.iptables": `*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:ufw-before-input - [0:0]
:ufw-logging-deny - [0:0]
:ufw-not-local - [0:0]
:ufw-user-input - [0:0]
:ufw-user-limit - [0:0]
:ufw-user-limit-accept - [0:0]
-A INPUT -j ufw-before-input
-A ufw-before-input -i lo -j ACCEPT
-A ufw-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A ufw-before-input -m conntrack --ctstate INVALID -j ufw-logging-deny
-A ufw-before-input -m conntrack --ctstate INVALID -j DROP
-A ufw-before-input -p icmp -m icmp --icmp-type 8 -j ACCEPT
-A ufw-before-input -p udp -m udp --sport 67 --dport 68 -j ACCEPT
-A ufw-before-input -j ufw-not-local
-A ufw-before-input -j ufw-user-input
-A ufw-logging-deny -m conntrack --ctstate INVALID -m limit --limit 3/min --limit-burst 10 -j RETURN
-A ufw-logging-deny -m limit --limit 3/min --limit-burst 10 -j LOG --log-prefix "[UFW BLOCK] "
-A ufw-not-local -m addrtype --dst-type LOCAL -j RETURN
-A ufw-not-local -m addrtype --dst-type MULTICAST -j RETURN
-A ufw-not-local -j DROP
-A ufw-user-input -p tcp -m tcp --dport 22 -m conntrack --ctstate NEW -m recent --set
-A ufw-user-input -p tcp --dport 22 -m recent --update --seconds 30 --hitcount 6 -j ufw-user-limit
-A ufw-user-input -p tcp -m tcp --dport 22 -j ufw-user-limit-accept
-A ufw-user-input -p tcp -m multiport --dports 60000:61000 -m comment --comment "x" -j ACCEPT
-A ufw-user-limit -m limit --limit 3/min -j LOG --log-prefix "[UFW LIMIT BLOCK] "
-A ufw-user-limit -j REJECT --reject-with icmp-port-unreachable
-A ufw-user-limit-accept -j ACCEPT
COMMIT
`,
	"kube-proxy.iptables": `*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-A - [0:0]
:KUBE-SEP-1 - [0:0]
:KUBE-SEP-2 - [0:0]
:KUBE-MARK-MASQ - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m comment --comment "web" -m tcp --dport 80 -j KUBE-SVC-A
-A KUBE-SVC-A ! -s 10.244.0.0/16 -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ
-A KUBE-SVC-A -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-1
-A KUBE-SVC-A -j KUBE-SEP-2
-A KUBE-SEP-1 -s 10.244.0.5/32 -j KUBE-MARK-MASQ
-A KUBE-SEP-1 -p tcp -m tcp -j DNAT --to-destination 10.244.0.5:8080
-A KUBE-SEP-2 -p tcp -m tcp -j DNAT --to-destination 10.244.0.6:8080
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
COMMIT
`,
}

func init() {
	text, err := os.ReadFile("testdata/docker-29.nft")
	if err != nil {
		panic(err)
	}
	ruleSets["docker-29.nft"] = string(text)
}

// write feeds a rule set to its program.
func write(t *testing.T, name string) {
	t.Helper()
	text := ruleSets[name]
	var err error
	if strings.HasSuffix(name, ".nft") {
		err = program("nft", text, "-f", "-")
	} else {
		err = program("iptables-nft-restore", text)
	}
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// plain returns what Restore would send, in comparable form.
func plain(t *testing.T, s Saved) (out []string) {
	t.Helper()
	numbers := map[string]int{}
	for _, m := range s.Messages {
		p, err := partOf(m, 0, numbers)
		if err != nil {
			t.Fatal(err)
		}
		kinds := []uint16{unix.NFTA_RULE_COMPAT}
		if p.kind == unix.NFT_MSG_NEWSETELEM { // their time passes, and some order is the kernel's
			list, _ := decode(p.attrs.get(unix.NFTA_SET_ELEM_LIST_ELEMENTS))
			var all []string
			for _, e := range list {
				a, _ := decode(e.data)
				b, _ := encode(a.without(unix.NFTA_SET_ELEM_EXPIRATION))
				all = append(all, string(b))
			}
			slices.Sort(all)
			p.what += strings.Join(all, "")
			kinds = []uint16{unix.NFTA_SET_ELEM_LIST_ELEMENTS}
		}
		if p.kind != unix.NFT_MSG_NEWRULE {
			kinds = kinds[:len(kinds):len(kinds)]
		}
		b, err := encode(p.attrs.without(kinds...))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p.what+"\n"+string(b))
	}
	return out
}

func saved(t *testing.T, name string) (out Saved) {
	t.Helper()
	netnstest.Do(t, func() (err error) {
		write(t, name)
		out, err = Save()
		return err
	})
	return out
}

func TestRestore(t *testing.T) {
	for name := range ruleSets {
		t.Run(name, func(t *testing.T) {
			first := saved(t, name)
			netnstest.Do(t, func() error {
				refused, err := first.Restore()
				if err != nil || len(refused) > 0 {
					t.Errorf("refused: %v, %v", refused, err)
				}
				again, err := Save()
				a, b := plain(t, first), plain(t, again)
				for i := range max(len(a), len(b)) {
					if i >= len(a) || i >= len(b) || a[i] != b[i] {
						t.Errorf("message %d differs:\n%q\n%q", i, at(a, i), at(b, i))
						break
					}
				}
				return err
			})
		})
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

func TestRestoreSkipsWhatIsRefused(t *testing.T) {
	first := saved(t, "docker.iptables")
	for i, m := range first.Messages {
		if m.Type&0xff == unix.NFT_MSG_NEWRULE && strings.Contains(string(m.Data), "multiport") {
			first.Messages[i].Data = bytes.Replace(m.Data, []byte("multiport"),
				[]byte("multipork"), 1)
		}
	}
	for _, kind := range []uint16{unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELTABLE,
		unix.NFNL_SUBSYS_CTNETLINK << 8} {
		first.Messages = append(first.Messages, raw.Message{Type: kind, Data: make([]byte, 4)})
	}
	netnstest.Do(t, func() error {
		refused, err := first.Restore()
		var what []string
		for _, r := range refused {
			what = append(what, r.What)
		}
		want := []string{"a message", "a message", "rule 1 of ip filter INPUT"}
		slices.Sort(what)
		if err != nil || !slices.Equal(what, want) {
			t.Errorf("refused: %v, %v", refused, err)
		}
		again, err := Save()
		if len(again.Messages) != len(first.Messages)-2 {
			t.Errorf("%d of %d messages", len(again.Messages), len(first.Messages)-2)
		}
		return err
	})
}
