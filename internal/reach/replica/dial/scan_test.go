package dial

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
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
	var all []uint16
	for p := range 1<<16 - 1 {
		all = append(all, uint16(p+1))
	}
	call := func(from *netns.NS, addr string) Call {
		return Call{From: from, Proto: "tcp", To: netip.AddrPortFrom(ip(addr), 0)}
	}
	var calls []Call
	var want [][]uint16
	for _, test := range []struct {
		name string
		from *netns.NS
		addr string
		want []uint16
	}{
		{"another machine", l.other, "192.0.2.10",
			slices.Concat([]uint16{22, 1024}, pods, []uint16{65535})},
		// K2's answers to its neighbour are not translated, so none arrives.
		{"a container", l.k3, "192.0.2.10",
			slices.Concat([]uint16{22, 1024}, pods, []uint16{65535})},
		{"itself", l.machine, "192.0.2.10", []uint16{1, 22, 1024}},
		{"loopback", l.machine, "127.0.0.1", []uint16{22, 1024, 6379}},
		{"a container's", l.other, "172.17.0.2", []uint16{80}},
		{"IPv6", l.other, "fd00::10", []uint16{1024}},
		{"IPv6 of a container", l.k2, "fd17::3", []uint16{40000}},
		{"nobody", l.other, "192.0.2.99", nil},
		{"no route", l.other, "203.0.113.1", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := n.Scan(t.Context(), []Call{call(test.from, test.addr)}, all,
				[]*netns.NS{l.machine})
			if err != nil || !slices.Equal(got[0], test.want) {
				t.Errorf("%d, %v, not %d", got, err, test.want)
			}
		})
		calls, want = append(calls, call(test.from, test.addr)), append(want, test.want)
	}
	// All take longer than the kernel keeps what the first ones met.
	if err := l.machine.Do(func() error {
		return sysctl.Set("net.netfilter.nf_conntrack_tcp_timeout_syn_sent", "10")
	}); err != nil {
		t.Fatal(err)
	}
	got, err := n.Scan(t.Context(), calls, all, []*netns.NS{l.machine})
	if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("all at once: %d, %v, not %d", got, err, want)
	}
}
