package fast

import (
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bpf"
	"github.com/bridgetoll/bridgetoll/internal/testing/bpftest"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// "!": clients of 127.0.0.1:8080, or of [::1]:8080 for an IPv6 rule, fail with docker-proxy too.
// "?": they may pass with docker-proxy, and the rule may treat a redirected client differently, or
// that is not known. "+": all pass on either path. After nft, the text before the colon is the
// family and the hook of a chain.
const rules = `
! iptables -I INPUT -i lo -p tcp --dport 8080 -j REJECT --reject-with tcp-reset
! iptables -I INPUT -i lo -p tcp --dport 8080 -m comment --comment "a port" -j DROP
! iptables -I OUTPUT -o lo -p tcp --dport 8080 -j DROP
! iptables -I OUTPUT -o lo -p tcp --sport 8080 -j DROP
! iptables -I OUTPUT -o lo -p tcp --dport 8080 -m owner --uid-owner 0 -j REJECT --reject-with tcp-reset
? iptables -I OUTPUT -d 172.17.0.0/16 -p tcp -m owner --uid-owner 12345 -j REJECT
? iptables -I OUTPUT -o docker0 -m owner --gid-owner 12345 -j DROP
! iptables -I INPUT -i lo -p tcp -m conntrack --ctdir REPLY -j DROP
! iptables -I OUTPUT -o lo -p tcp -m conntrack --ctdir REPLY --ctreplsrcport 8080 -j DROP
! iptables -I OUTPUT -p tcp --dport 8080 -m conntrack --ctstatus SEEN_REPLY -j DROP
! iptables -I INPUT -i lo -p tcp -m conntrack --ctdir REPLY --ctstatus ASSURED -j DROP
! iptables -I INPUT -i lo -p tcp -m conntrack --ctstate ESTABLISHED -j DROP
! iptables -I INPUT -i lo -p tcp -m conntrack ! --ctstate NEW -j DROP
! iptables -I INPUT -i lo -p tcp -m state --state RELATED,ESTABLISHED -j DROP
! iptables -I INPUT -i lo -p tcp -m conntrack --ctorigdst 127.0.0.1 --ctorigdstport 8080 -j DROP
! iptables -I INPUT -i docker0 -p tcp -m conntrack --ctstate ESTABLISHED -j DROP
! iptables -I INPUT -i docker0 -p tcp --sport 80 -j DROP
! iptables -I OUTPUT -o docker0 -p tcp --dport 80 -j DROP
! iptables -I OUTPUT -o lo -p tcp -m multiport --dports 9999,8080 -j DROP
! iptables -I OUTPUT -o lo -p tcp -m multiport --sports 8080 -j DROP
! iptables -I INPUT -i lo -p tcp -m multiport --ports 8000:8100 -j DROP
! iptables -I INPUT -i lo -p tcp --dport 1024:65535 -j DROP
! iptables -I INPUT -i lo -p tcp --dport 8080 -m mark ! --mark 7 -j DROP
+ iptables -I OUTPUT -o docker0 -m mark --mark 7 -j DROP
+ iptables -I OUTPUT -o docker0 -m connmark --mark 7 -j DROP
! iptables -I INPUT -i lo -p tcp --dport 8080 -m limit --limit 1000/second -j DROP
! iptables -I INPUT -i lo -p tcp --dport 8080 -m hashlimit --hashlimit-upto 1000/second --hashlimit-name toll -j DROP
! iptables -I INPUT -i lo -p tcp --dport 8080 -m connlimit --connlimit-above 0 -j REJECT --reject-with tcp-reset
? iptables -I OUTPUT -o docker0 -p tcp -m connlimit --connlimit-above 5 -j DROP
! iptables -I INPUT -i lo -p tcp --dport 8080 -m u32 --u32 "0>>28=4" -j DROP
! iptables -I INPUT -i lo -p tcp --sport 8080 -m string --string web --algo bm -j DROP
! iptables -I INPUT -i lo -p tcp --dport 8080 -m ttl --ttl-gt 1 -j DROP
! iptables -I INPUT -i lo -p tcp --dport 8080 --tcp-flags SYN SYN -j DROP
! iptables -I INPUT -i lo -p tcp --sport 8080 --tcp-option 2 -j DROP
! iptables -I INPUT -i lo -p tcp --dport 8080 -m length --length 40:1500 -j DROP
? iptables -I OUTPUT -o docker0 -p tcp -m length --length 1400:65535 -j DROP
? iptables -I INPUT -p tcp -m mac --mac-source 02:42:ac:11:00:02 -j DROP
! iptables -I INPUT -p tcp --dport 8080 -m addrtype --dst-type LOCAL -j DROP
! iptables -I INPUT -p tcp --dport 8080 -m addrtype --src-type LOCAL --limit-iface-in -j DROP
+ iptables -t raw -I PREROUTING -p tcp -m rpfilter --invert -j DROP
! iptables -t mangle -I PREROUTING -i lo -p tcp --sport 8080 -m socket -j DROP
! iptables -I INPUT -i lo -p tcp --dport 8080 -m statistic --mode random --probability 1 -j DROP
! iptables -I INPUT -i lo -p tcp --dport 8080 -m recent --name toll --set -j DROP
! iptables -I INPUT -i lo -p tcp --dport 8080 -m quota --quota 1000000 -j DROP
+ iptables -I INPUT -p tcp -m pkttype --pkt-type broadcast -j DROP
? iptables -I OUTPUT -o docker0 -p tcp -m cpu --cpu 4095 -j DROP
! iptables -I INPUT -i lo -p tcp --dport 8080 -m dscp --dscp 0 -j DROP
! iptables -I INPUT -i lo -p tcp --dport 8080 --tcp-flags SYN,RST SYN -m tcpmss --mss 1:65535 -j DROP
? iptables -I OUTPUT -o docker0 -p tcp -m cgroup --cgroup 7 -j DROP
+ iptables -I INPUT -i docker0 -p tcp -m physdev --physdev-in port7 -j DROP
+ iptables -I INPUT -i docker0 -p tcp -m policy --dir in --pol ipsec -j DROP
! iptables -I INPUT -i lo -p tcp --dport 8080 -m bpf --bytecode "1,6 0 0 1" -j DROP
! iptables -I INPUT -p tcp --dport 8080 -m iprange --src-range 127.0.0.1-127.0.0.9 -j DROP
? iptables -I OUTPUT -p tcp -m time --timestart 00:00 --timestop 00:01 -j DROP
! iptables -t raw -I PREROUTING -i lo -p tcp --dport 8080 -j DROP
! iptables -t raw -I OUTPUT -o lo -p tcp --dport 8080 -j DROP
+ iptables -t raw -I OUTPUT -p tcp -j CT --notrack
! iptables -t mangle -I POSTROUTING -o lo -p tcp --dport 8080 -j DROP
! iptables -t mangle -I OUTPUT -p tcp --dport 8080 -j NFQUEUE --queue-num 9
! iptables -t security -I INPUT -i lo -p tcp --dport 8080 -j DROP
! iptables -t nat -I OUTPUT -d 127.0.0.1 -p tcp --dport 8080 -j REDIRECT --to-ports 9999
+ iptables -t nat -I POSTROUTING -o lo -j MASQUERADE
! iptables -P OUTPUT DROP
! ip6tables -I INPUT -i lo -p tcp --dport 8080 -j REJECT --reject-with tcp-reset
! ip6tables -I OUTPUT -o lo -p tcp --dport 8080 -j DROP
! ip6tables -I INPUT -i lo -p tcp -m conntrack --ctdir REPLY -j DROP
! ip6tables -I INPUT -i lo -p tcp -m conntrack --ctstate ESTABLISHED -j DROP
! ip6tables -I OUTPUT -p tcp --dport 8080 -m conntrack --ctstatus SEEN_REPLY -j DROP
! ip6tables -I OUTPUT -o lo -p tcp -m multiport --dports 9999,8080 -j DROP
! ip6tables -I OUTPUT -o lo -p tcp --dport 8080 -m owner --uid-owner 0 -j DROP
! ip6tables -I INPUT -i lo -p tcp --dport 8080 -m hl --hl-gt 1 -j DROP
! ip6tables -t raw -I PREROUTING -i lo -p tcp --dport 8080 -j DROP
! ip6tables -t mangle -I POSTROUTING -o lo -p tcp --dport 8080 -j DROP
! ip6tables -t nat -I OUTPUT -d ::1 -p tcp --dport 8080 -j REDIRECT --to-ports 9999
! ip6tables -P INPUT DROP
! nft ip output: tcp dport 8080 reject with tcp reset
! nft ip input: iif lo tcp sport 8080 drop
? nft ip output: meta skuid 12345 ip daddr 172.17.0.0/16 drop
? nft ip output: meta cpu 4095 ip daddr 172.17.0.0/16 drop
! nft ip input: iif lo ct direction reply drop
! nft inet input: iif lo ct state != new drop
! nft inet input: iif lo ct state established,related drop
! nft inet output: tcp dport { 8080, 9999 } drop
! nft inet output: tcp dport 8000-9000 drop
! nft inet output: tcp dport vmap { 8080 : drop }
! nft inet input: ip daddr . tcp dport { 127.0.0.1 . 8080 } drop
! nft inet input: iifname "lo" meta l4proto tcp drop
! nft inet input: tcp dport 8080 tcp flags syn drop
! nft inet input: tcp dport 8080 tcp option maxseg size > 0 drop
! nft inet input: tcp dport 8080 ip ttl > 1 drop
! nft inet input: tcp dport 8080 meta length > 10 drop
! nft inet input: tcp dport 8080 fib daddr type local drop
! nft inet input: tcp dport 8080 meta mark != 7 drop
! nft inet input: tcp dport 8080 limit rate 1000/second drop
! nft inet input: tcp dport 8080 ct count over 0 reject
! nft inet input: tcp dport 8080 quota until 10 mbytes drop
! nft inet input: tcp dport 8080 numgen random mod 1 < 1 drop
! nft inet input: iif lo @th,16,16 8080 drop
! nft inet output: tcp dport 8080 queue num 9
! nft ip output: tcp dport 8080 tcp dport set 9999
+ nft inet output priority -300: notrack
! nft inet input: policy drop; iif docker0 accept
! nft inet output priority 300: oif docker0 tcp dport 80 drop
! nft ip6 output: tcp dport 8080 drop
! nft ip6 input: iif lo ct direction reply drop
! nft ip6 input: iif lo ct state established drop
! nft ip6 input: ip6 saddr ::1 tcp sport 8080 drop
! nft netdev ingress device lo: tcp dport 8080 drop
+ nft netdev ingress device docker0: counter
+ nft netdev egress device lo: tcp dport 9999 drop
! nft inet ingress device lo: tcp dport 8080 drop
! nft bridge input: ip protocol tcp drop
! nft bridge output: ip protocol tcp drop
! tc qdisc add dev lo root bfifo limit 1
? tc qdisc add dev lo root tbf rate 1gbit burst 100k latency 10ms
! ip rule add pref 7 to 172.17.0.2 prohibit
? ip rule add pref 7 uidrange 12345-12345 prohibit
? ip rule add pref 7 ipproto tcp dport 9999 lookup 99
? ip -6 rule add pref 7 from ::1 unreachable
? ip rule add pref 7 fwmark 7 prohibit && iptables -t mangle -I OUTPUT -m owner --uid-owner 12345 -j MARK --set-mark 7
+ ip rule add pref 7 fwmark 7 lookup 99 && nft ip output: oif docker0 meta skuid 12345 meta mark set 7
+ ip rule add pref 7 fwmark 7 prohibit && iptables -t mangle -I OUTPUT -p udp -j MARK --set-mark 7
+ iptables -I INPUT -p tcp --dport 3306 -j DROP
+ iptables -I INPUT -i eth9 -j DROP
+ iptables -I INPUT -s 10.0.0.0/8 -j DROP
+ iptables -I INPUT -m conntrack --ctstate INVALID -j DROP
+ iptables -I INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
+ iptables -I INPUT -i lo -j ACCEPT
+ iptables -I OUTPUT -p udp -m owner --uid-owner 12345 -j DROP
+ iptables -I OUTPUT -d 10.0.0.0/8 -m multiport -p tcp --dports 80,8080 -j REJECT
+ iptables -I OUTPUT -p tcp --dport 8080 -m limit --limit 1/minute -j LOG
+ iptables -t mangle -I OUTPUT -p tcp --dport 9999 -j MARK --set-mark 7
+ ip6tables -I INPUT ! -i lo -j DROP
+ nft inet input: ct state established,related accept
+ nft inet input: counter
+ nft inet input: tcp dport { 22, 443 } drop
+ nft ip6 output: ip6 daddr 2001:db8::/32 drop
+ nft inet input: policy drop; iif lo accept; iif docker0 accept
+ ip rule add pref 7 to 10.0.0.0/8 lookup 99
? nft ip output: tcp dport 8080 tcp sport & 1 == 0 drop
? nft ip output: tcp dport 8080 tcp sport & 1 == 1 drop
? nft ip6 output: tcp dport 8080 tcp sport & 1 == 0 drop
? nft ip6 output: tcp dport 8080 tcp sport & 1 == 1 drop
? nft inet output: tcp dport 8080 tcp sport & 1 == 0 drop comment "both, not only ip6"
? nft ip output: tcp dport 80 tcp sport & 15 == 11 drop
? nft inet output: tcp flags fin drop
? nft ip input: iif docker0 tcp flags fin drop
? nft inet input: iif lo tcp dport 8080 tcp flags & (fin | psh) == psh drop
? nft inet input: iif lo tcp sport 8080 tcp flags & (fin | psh) == psh drop
? nft inet output: oif docker0 meta length > 1000 drop
? nft inet output: oif docker0 meta length 200-900 drop
? ip6tables -I OUTPUT -o lo -p tcp -m length --length 1400:65535 -j DROP
? iptables -I OUTPUT -o docker0 -p tcp -m length --length 1400:65535 -j REJECT --reject-with tcp-reset
? iptables-legacy -I OUTPUT -o docker0 -p tcp -m length --length 1400:65535 -j DROP
? iptables-legacy -I INPUT -i lo -p tcp --dport 8080 --tcp-flags FIN FIN -j DROP
! iptables-legacy -I INPUT -i lo -p tcp --dport 8080 -j DROP
! iptables-legacy -I OUTPUT -o lo -p tcp --dport 8080 -m owner --uid-owner 0 -j DROP
! iptables-legacy -I INPUT -i lo -p tcp -m conntrack --ctstate ESTABLISHED -j DROP
? iptables-legacy -I OUTPUT -o docker0 -p tcp -m cgroup --cgroup 7 -j DROP
! ip6tables-legacy -I INPUT -i lo -p tcp --dport 8080 -j DROP
+ iptables-legacy -I INPUT -p tcp --dport 3306 -j DROP
`

func commands(line string) (add, undo string) {
	if first, second, both := strings.Cut(line, " && "); both {
		add1, undo1 := commands(first)
		add2, undo2 := commands(second)
		return add1 + "; " + add2, undo2 + "; " + undo1
	}
	at, rule, chain := strings.Cut(line, ": ")
	words := strings.Fields(at)
	switch {
	case chain && words[0] == "nft":
		hook := strings.Join(words[2:], " ")
		if !strings.Contains(hook, "priority") {
			hook += " priority 0"
		}
		table := words[1] + " users"
		return "nft 'table " + table + " { chain c { type filter hook " + hook + "; " + rule +
			"; }; }'", "nft delete table " + table
	case strings.Contains(line, " -P "):
		return line, strings.Replace(line, " DROP", " ACCEPT", 1)
	case words[0] == "tc":
		return line, "tc qdisc del dev lo root"
	case words[0] == "ip":
		return line, strings.Replace(line, " add ", " del ", 1)
	}
	before, after, _ := strings.Cut(line, " -I ")
	name, _, _ := strings.Cut(after, " ")
	return line, before + " -D " + name + " 1"
}

func TestBesideRules(t *testing.T) { tryRules(t, 0) }

func TestBesideMoreRules(t *testing.T) { tryRules(t, 1) }

// tryRules tries every second rule. Rules that block clients must continue to block them.
func tryRules(t *testing.T, first int) {
	withEngine(t)
	container(t, "web", "-p 8080:80")
	f := turnOn(t)
	tried := 0
	for i, line := range strings.Split(strings.TrimSpace(rules), "\n") {
		if i%2 != first {
			continue
		}
		kind, line, _ := strings.Cut(strings.TrimSpace(line), " ")
		add, undo := commands(line)
		if out, err := exec.Command("sh", "-ec", add).CombinedOutput(); err != nil {
			t.Logf("%s: %v: %s", add, err, out)
			continue
		}
		tried++
		if kind == "+" {
			passes(t, f, line)
		} else {
			refuses(t, f, line, kind == "!")
		}
		run(t, undo)
	}
	if passes(t, f, "after all rules"); tried < 36 {
		pathtest.SkipOrFail(t, "this machine takes %d of the rules", tried)
	}
}

// Routes are tried in a copy only after a change.
func TestBesideUnchanged(t *testing.T) {
	withEngine(t)
	container(t, "web", "-p 8080:80")
	f := turnOn(t)
	judged := func(what string) string {
		t.Helper()
		began := cpuTime(t)
		if left := update(t, f); len(left) > 0 {
			t.Fatalf("%s: %+v", what, left)
		}
		t.Logf("%s: %v of CPU time", what, cpuTime(t)-began)
		return f.judged.of
	}
	before := judged("at first")
	passes(t, f, "at first")
	container(t, "other", "")
	if now := judged("unchanged"); now == "" || now != before {
		t.Errorf("nothing changed:\n%s\n%s", before, now)
	}
	for _, change := range []string{"iptables -I INPUT -p udp --dport 9 -j DROP",
		"ip rule add pref 7 to 10.0.0.0/8 lookup 99", "ip route add 10.1.0.0/16 dev lo",
		"sysctl -qw net.ipv4.conf.docker0.rp_filter=1"} {
		run(t, change)
		now := judged(change)
		if now == before {
			t.Errorf("%s: no copy was asked", change)
		}
		before = now
	}
	run(t, "iptables -D INPUT 1; ip rule del pref 7; ip route del 10.1.0.0/16")
}

func cpuTime(t *testing.T) (d time.Duration) {
	t.Helper()
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			t.Fatal(err)
		}
		d += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return d
}

func TestBesidePrograms(t *testing.T) {
	withEngine(t)
	container(t, "web", "-p 8080:80")
	f := turnOn(t)
	const xdpDrop, shot, nfDrop = 1, 2, 0
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	bridge, err := net.InterfaceByName("docker0")
	if err != nil {
		t.Fatal(err)
	}
	tcx := func(device int, at ebpf.AttachType) (link.Link, error) {
		return link.AttachTCX(link.TCXOptions{
			Program: bpftest.Program(t, "other", ebpf.SchedCLS, at, shot), Interface: device,
			Attach: at})
	}
	netfilter := func(family link.NetfilterProtocolFamily, hook link.NetfilterInetHook) (
		link.Link, error) {
		return link.AttachNetfilter(link.NetfilterOptions{
			Program: bpftest.Program(t, "other", ebpf.Netfilter, ebpf.AttachNetfilter,
				nfDrop),
			ProtocolFamily: family, Hook: hook, Priority: -4321})
	}
	for name, attach := range map[string]func() (link.Link, error){
		"XDP at lo": func() (link.Link, error) {
			return link.AttachXDP(link.XDPOptions{
				Program:   bpftest.Program(t, "other", ebpf.XDP, ebpf.AttachXDP, xdpDrop),
				Interface: lo.Index, Flags: link.XDPGenericMode})
		},
		"tcx ingress at lo": func() (link.Link, error) {
			return tcx(lo.Index, ebpf.AttachTCXIngress)
		},
		"tcx egress at lo": func() (link.Link, error) {
			return tcx(lo.Index, ebpf.AttachTCXEgress)
		},
		"tcx egress at bridge": func() (link.Link, error) {
			return tcx(bridge.Index, ebpf.AttachTCXEgress)
		},
		"netfilter input": func() (link.Link, error) {
			return netfilter(link.NetfilterProtoIPv4, link.NetfilterInetLocalIn)
		},
		"netfilter output": func() (link.Link, error) {
			return netfilter(link.NetfilterProtoIPv4, link.NetfilterInetLocalOut)
		},
	} {
		l, err := attach()
		if err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		if strings.HasPrefix(name, "netfilter") && seenElsewhere(t) {
			t.Logf("%s: the kernel shows it to other tests, too", name)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		refuses(t, f, name, true)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		passes(t, f, "without "+name)
	}
}

// seenElsewhere reports whether a program in the packet filters is listed in other namespaces.
func seenElsewhere(t *testing.T) bool {
	t.Helper()
	ns := netnstest.New(t)
	everywhere := false
	if err := ns.Do(func() (err error) {
		_, everywhere, err = bpf.Netfilter()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return everywhere
}

// refuses checks that Update refuses the port with a rule. If blocks is set, no client may be
// served.
func refuses(t *testing.T, f *Fast, rule string, blocks bool) {
	t.Helper()
	at, v4 := "127.0.0.1:8080", true
	if strings.Contains(rule, "ip6") || strings.Contains(rule, "-6") {
		at, v4 = "[::1]:8080", false
	}
	left := update(t, f)
	i := slices.IndexFunc(left, func(r Refusal) bool {
		return r.Host.Port() == 8080 && r.Host.Addr().Is4() == v4
	})
	if i < 0 || left[i].Why == "" {
		t.Errorf("%s: not refused: %+v", rule, left)
		return
	}
	if strings.Contains(left[i].Why, " of chain ") {
		t.Errorf("%s: the reason names a rule by its number: %s", rule, left[i].Why)
	}
	word := strings.ToLower(rule)
	if (strings.Contains(word, "drop") || strings.Contains(word, "reject")) &&
		!strings.Contains(left[i].Why, " by ") && !strings.Contains(left[i].Why, " at ") {
		t.Errorf("%s: the reason names no rule: %s", rule, left[i].Why)
	}
	t.Logf("%s: %s", rule, left[i].Why)
	n := sumTaken(t, f)
	if got, _ := soon(at, 50*time.Millisecond); blocks && strings.HasPrefix(got, "web") {
		t.Errorf("%s: %s", rule, got)
	}
	if now := sumTaken(t, f); now != n {
		t.Errorf("%s: %d clients took a shortcut", rule, now-n)
	}
}

func passes(t *testing.T, f *Fast, rule string) {
	t.Helper()
	left := update(t, f)
	// Kernels without nfnetlink_hook list another test's filter program for the whole machine.
	testwait.Until(t, time.Minute, "no BPF program filters", func() bool {
		others := slices.ContainsFunc(left, func(l Refusal) bool {
			return strings.Contains(l.Why, "BPF netfilter")
		})
		if others {
			left = update(t, f)
		}
		return !others
	})
	for _, at := range []string{"127.0.0.1:8080", "[::1]:8080"} {
		n := sumTaken(t, f)
		if got := dial(at); !strings.HasPrefix(got, "web") || sumTaken(t, f) != n+1 {
			t.Errorf("%s: %s: %s, left %+v", rule, at, got, left)
		}
	}
}

func soon(at string, limit time.Duration) (string, error) {
	c, err := net.DialTimeout("tcp", at, limit)
	if err != nil {
		return "", err
	}
	defer c.Close()
	b := make([]byte, 100)
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	n, err := c.Read(b)
	return string(b[:n]), err
}

func sumTaken(t *testing.T, f *Fast) (n uint64) {
	t.Helper()
	all, err := f.table.Entries()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		n += e.Taken
	}
	return n
}
