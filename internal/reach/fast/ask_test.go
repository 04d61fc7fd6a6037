package fast

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// A result that a busy machine may have caused is doubtful.
func TestDoubtful(t *testing.T) {
	client := netip.MustParseAddr("172.17.0.1")
	got := func(g replica.Got, l *replica.Lost) replica.Answer {
		return replica.Answer{Outcomes: []replica.Outcome{{Got: g, Seen: client}}, Lost: l}
	}
	served := got(replica.Connected, nil)
	torn := replica.Answer{Outcomes: append(served.Outcomes, replica.Outcome{Got: replica.Timeout})}
	unsure := served
	unsure.Unsure = []string{"BPF program x"}
	for name, test := range map[string]struct {
		first, long   replica.Answer
		fit, doubtful bool
	}{
		"served":   {served, served, true, false},
		"rejected": {got(replica.Refused, nil), served, false, false},
		"dropped": {got(replica.Timeout, &replica.Lost{Rule: &replica.Rule{}}), served,
			false, false},
		"not routed": {got(replica.Timeout, &replica.Lost{Why: replica.NoRoute}), served, false,
			false},
		"unsure": {unsure, served, false, false},
		"lost":   {got(replica.Timeout, nil), served, false, true},
		"lost, no trace": {got(replica.Silent, &replica.Lost{Why: replica.Untraced}), served, false,
			true},
		"long lost":      {served, got(replica.Timeout, nil), false, true},
		"sometimes lost": {served, torn, false, true},
	} {
		x := trials{machine: &replica.Machine{Spaces: make([]replica.Space, 1)}}
		why := x.judge(t.Context(), &way{}, []replica.Answer{test.first, test.long})
		if why == "" != test.fit || x.doubtful != test.doubtful {
			t.Errorf("%s: %q, doubtful: %t", name, why, x.doubtful)
		}
	}
}

func TestChoosePorts(t *testing.T) {
	at := netip.MustParseAddrPort
	for _, c := range []struct {
		sysctl      string
		own         bool // no two ways share ports
		ports, free int  // of each way, and left for each docker-proxy
	}{
		{"32768\t60999", true, mostPorts, 1000},
		{"", true, mostPorts, 1000},
		{"30000 34000", true, mostPorts, 100},
		{"40000 40100", false, mostPorts, 32},
		{"40000 40020", false, 6, 12},
		{"8080 8083", false, 1, 2}, // 8080 is docker-proxy's
		{"40000 40001", false, 0, 0},
	} {
		x := trials{sockets: map[replica.Socket]int{}, machine: &replica.Machine{
			Spaces: []replica.Space{{Sysctls: map[string]string{
				"net/ipv4/ip_local_port_range": c.sysctl}}}}}
		web, db := at("172.17.0.2:80"), at("172.17.0.3:5432")
		for dial, to := range map[string]netip.AddrPort{"127.0.0.1:8080": web, "[::1]:8080": web,
			"127.0.0.1:40000": db, "127.0.0.1:32768": db} {
			proxy := x.socket(replica.Socket{Addr: at(dial), Relay: to})
			server := x.socket(replica.Socket{Space: 1, Addr: to})
			x.way(at(dial), []int{proxy}, server)
			x.way(to, nil, server)
		}
		if len(x.ways) != 6 {
			t.Fatalf("%d ways", len(x.ways))
		}
		why := x.choosePorts()
		if (why == "") != (c.ports > 0) {
			t.Errorf("%s: %q", c.sysctl, why)
		}
		low, high, all := 32768, 60999, map[uint16]bool{}
		_, _ = fmt.Sscan(c.sysctl, &low, &high)
		for _, w := range x.ways {
			ends := map[uint16]bool{}
			for _, p := range w.ports {
				if all[p] && c.own || int(p) < low || int(p) > high || p == 8080 || p == 40000 ||
					p == 32768 {
					t.Errorf("%s: %d", c.sysctl, p)
				}
				all[p], ends[p%mostPorts] = true, true
			}
			if len(w.ports) != c.ports || c.own && len(ends) != mostPorts {
				t.Errorf("%s: %d", c.sysctl, w.ports)
			}
		}
		if left := len(x.freePorts()) - len(all); why == "" && left < c.free {
			t.Errorf("%s: %d are left for docker-proxy", c.sysctl, left)
		}
	}
}

func TestRetries(t *testing.T) {
	w := Watcher{fast: &Fast{}}
	if w.retry() != nil {
		t.Error("a clear answer is asked again")
	}
	w.tries = 1
	select {
	case <-w.retry():
	case <-time.After(patience):
		t.Error("a doubtful answer is not asked again")
	}
}
