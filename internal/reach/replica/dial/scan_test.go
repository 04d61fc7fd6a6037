package dial

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
)

func TestScanOfAllPorts(t *testing.T) {
	l := newLAN(t)
	l.run(l.machine, `
		iptables -t nat -N PODS
		iptables -t nat -A PREROUTING -d 192.0.2.10 -p tcp --dport 3000:3010 -j PODS
		iptables -t nat -A PREROUTING -d 192.0.2.10 -p tcp --dport 65535 -j PODS
		iptables -t nat -A OUTPUT -d 192.0.2.10 -p tcp --dport 1 -j PODS
		iptables -t nat -A PODS -p tcp -j DNAT --to-destination 172.17.0.2:80
		iptables -A INPUT -p tcp --dport 25 -j DROP
		iptables -A INPUT -p tcp --dport 26 -j REJECT
		iptables -A INPUT -p tcp --dport 7000:30000 -j DROP
		iptables -A FORWARD -p tcp --dport 80 -m conntrack --ctorigdstport 3005 -j DROP`)
	n := l.open(tcp(inMachine, "0.0.0.0:22"), tcp(inMachine, "0.0.0.0:25"),
		tcp(inMachine, "0.0.0.0:26"), tcp(inMachine, "127.0.0.1:6379"), tcp(inMachine, "[::]:1024"),
		tcp(inK2, "[::]:80"), tcp(inK3, "[fd17::3]:40000"))
	pods := []uint16{3000, 3001, 3002, 3003, 3004, 3006, 3007, 3008, 3009, 3010}
	var all, some []uint16
	for p := range 1<<16 - 1 {
		all = append(all, uint16(p+1))
		if p%100 == 0 || p+1 >= 3000 && p+1 <= 3011 {
			some = append(some, uint16(p+1))
		}
	}
	some = append(some, 22, 25, 26, 80, 1024, 6379, 40000, 65535)
	call := func(from *netns.NS, addr string) Call {
		return Call{From: from, Proto: "tcp", To: netip.AddrPortFrom(ip(addr), 0)}
	}
	scan := func(t *testing.T, ports []uint16, want [][]uint16, calls ...Call) {
		t.Helper()
		got, err := n.Scan(t.Context(), calls, ports, []*netns.NS{l.machine})
		if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%d, %v, not %d", got, err, want)
		}
	}
	outer := slices.Concat([]uint16{22, 1024}, pods, []uint16{65535})
	far, near := call(l.other, "192.0.2.10"), call(l.k3, "192.0.2.10")
	t.Run("all ports", func(t *testing.T) { scan(t, all, [][]uint16{outer}, near) })
	t.Run("several", func(t *testing.T) {
		scan(t, some, [][]uint16{outer,
			outer, // K2's answers to its neighbour are not translated, so none arrives
			{1, 22, 1024}, {22, 1024, 6379}, {80}, {1024}, {40000},
			nil, // nobody has the address
			nil, // no route
		}, far, near, call(l.machine, "192.0.2.10"),
			call(l.machine, "127.0.0.1"), call(l.other, "172.17.0.2"), call(l.other, "fd00::10"),
			call(l.k2, "fd17::3"), call(l.other, "192.0.2.99"), call(l.other, "203.0.113.1"))
	})
	t.Run("longer than the kernel keeps what the first one met", func(t *testing.T) {
		const kept = 10 * time.Second // without an answer that arrives
		l.sysctl(l.machine, "netfilter/nf_conntrack_tcp_timeout_syn_sent", "10")
		times := int(kept/(2*scanWait)) + 1 // a lost segment makes a scan wait twice
		began := time.Now()
		calls := append([]Call{near}, slices.Repeat([]Call{far}, times)...)
		scan(t, some, slices.Repeat([][]uint16{outer}, len(calls)), calls...)
		if took := time.Since(began); took <= kept {
			t.Errorf("it took only %s", took)
		}
	})
}

// Of UDP, a scan finds the ports that rules redirect, whether anybody listens there or not.
func TestScanOfDatagrams(t *testing.T) {
	l := newLAN(t)
	l.run(l.machine, `
		iptables -t nat -A PREROUTING -p udp --dport 3000:3010 -j DNAT --to-destination 172.17.0.2:80
		iptables -t nat -A PREROUTING -d 192.0.2.10 -p udp --dport 65535 -j REDIRECT --to-ports 9
		iptables -t nat -A PREROUTING -d 192.0.2.10 -p tcp --dport 4000 -j REDIRECT --to-ports 9
		iptables -t nat -A OUTPUT -d 192.0.2.10 -p udp --dport 1 -j DNAT --to-destination 172.17.0.2:80
		iptables -I INPUT -p udp --dport 5000 -j ACCEPT`)
	n := l.open(udp(inMachine, "0.0.0.0:53"), udp(inK2, "0.0.0.0:80"))
	all := []uint16{1, 4000, 5000, 53}
	for p := uint16(2990); p < 3020; p++ {
		all = append(all, p)
	}
	for p := uint16(20000); p < 21000; p++ { // more than wait for a neighbour to be resolved
		all = append(all, p)
	}
	all = append(all, 65535)
	call := func(from *netns.NS, addr string) Call {
		return Call{From: from, Proto: "udp", To: netip.AddrPortFrom(ip(addr), 0)}
	}
	outer := []uint16{3000, 3001, 3002, 3003, 3004, 3005, 3006, 3007, 3008, 3009, 3010, 65535}
	got, err := n.Scan(t.Context(), []Call{call(l.other, "192.0.2.10"), call(l.k3, "192.0.2.10"),
		call(l.machine, "192.0.2.10"), call(l.other, "203.0.113.1")}, all, []*netns.NS{l.machine})
	want := [][]uint16{outer, outer, {1}, nil}
	if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%d, %v, not %d", got, err, want)
	}
}
