package cases

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// BenchmarkPorts runs `toll ports` on a machine with 30 containers, 300 published ports and 5,000
// rules.
func BenchmarkPorts(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("namespaces of a machine need root")
	}
	toll := pathtest.Toll(b)
	m := start(b, &situation{name: "crowd", setup: crowd(), cards: situations(b,
		"k03_container_filter")[0].cards})
	m.sh("server machine host tcp/0.0.0.0:22")
	run := func(b *testing.B, args ...string) {
		cmd := m.command(append([]string{toll, "ports"}, args...)...)
		out, err := cmd.Output()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		if !strings.Contains(string(out), "c29") {
			b.Fatalf("no container in %s", out)
		}
		used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		b.ReportMetric((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
			"cpu-s")
		b.ReportMetric(float64(used.Maxrss)/1024, "MiB-largest-process")
	}
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			run(b)
		}
	})
	b.Run("json", func(b *testing.B) {
		for b.Loop() {
			run(b, "--format", "json")
		}
	})
}

// crowd returns the script of a machine whose firewall knows many networks.
func crowd() string {
	const containers, each, rules = 30, 10, 5000
	var b strings.Builder
	fmt.Fprintf(&b, `br docker0 172.17.0.1/16
iptables-restore <<'R'
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A DOCKER -i docker0 -j RETURN
`)
	published := func(f func(addr string, port, to int)) {
		for c := range containers {
			for p := range each {
				f(fmt.Sprintf("172.17.0.%d", c+2), 20000+c*each+p, 8000+p)
			}
		}
	}
	n := 0
	published(func(addr string, port, to int) {
		fmt.Fprintf(&b, "-A DOCKER ! -i docker0 -p tcp -m tcp --dport %d -j DNAT --to-destination %s:%d\n",
			port, addr, to)
		fmt.Fprintf(&b, "-A POSTROUTING -s %s/32 -d %s/32 -p tcp -m tcp --dport %d -j MASQUERADE\n",
			addr, addr, to)
		n += 2
	})
	b.WriteString(`COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:DOCKER - [0:0]
:blocked - [0:0]
-A INPUT -j blocked
-A FORWARD -j blocked
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -o docker0 -j DOCKER
-A FORWARD -i docker0 -j ACCEPT
`)
	published(func(addr string, _, to int) {
		fmt.Fprintf(&b, "-A DOCKER -d %s/32 ! -i docker0 -o docker0 -p tcp -m tcp --dport %d -j ACCEPT\n",
			addr, to)
		n++
	})
	for i := range rules - n {
		fmt.Fprintf(&b, "-A blocked -s 198.18.%d.%d/32 -j DROP\n", i/250, i%250)
	}
	b.WriteString("COMMIT\nR\n")
	for c := range containers {
		fmt.Fprintf(&b, "cont c%d docker0 172.17.0.%d/16 172.17.0.1\nserver c%d c%d", c, c+2, c, c)
		for p := range each {
			fmt.Fprintf(&b, " tcp/[::]:%d", 8000+p)
		}
		b.WriteString("\n")
	}
	published(func(addr string, port, to int) {
		fmt.Fprintf(&b, "$SELF proxy -proto tcp -host-ip 0.0.0.0 -host-port %d -container-ip %s -container-port %d\n",
			port, addr, to)
	})
	return b.String()
}
