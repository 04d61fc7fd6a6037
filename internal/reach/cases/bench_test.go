package cases

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// againstEnv names another build of toll, which then runs in turns with this one.
const againstEnv = "BRIDGETOLL_BENCH_AGAINST"

// BenchmarkPorts runs `toll ports` on two machines: one with 5 containers, and one with 30
// containers, 300 published ports and 5,000 rules. It makes the list, the report on a port that a
// rule blocks, with its remedies, and a change.
func BenchmarkPorts(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("namespaces of a machine need root")
	}
	toll := pathtest.Toll(b)
	for _, x := range []struct {
		name, setup string
		last        string // container
	}{{"small", crowd(5, 1, 0), "c4"}, {"large", crowd(30, 10, 5000), "c29"}} {
		m := start(b, &situation{name: "crowd", setup: x.setup, cards: situations(b,
			"k03_container_filter")[0].cards})
		m.sh("server machine host tcp/0.0.0.0:22")
		m.sh("iptables -A INPUT -p tcp --dport 22 -j DROP")
		var list used
		for _, c := range []struct {
			name, says string
			args       []string
		}{
			{"list", x.last, nil}, {"json", x.last, []string{"--format", "json"}},
			{"remedy", "(tried in a copy)", []string{"22"}},
			{"try", "would lose 20000/tcp", []string{"--try",
				"iptables -I FORWARD -i eth0 -p tcp -d 172.17.0.2 --dport 8000 -j DROP"}},
		} {
			b.Run(x.name+"/"+c.name, func(b *testing.B) {
				ours := m.inTurns(b, toll, c.args, c.says)
				if c.name == "list" {
					list = ours
				}
				if list.cpu > 0 {
					b.ReportMetric(ours.cpu/list.cpu, "cpu-of-list")
				}
			})
		}
	}
}

// inTurns runs toll ports in turns with the other build, if there is one, and returns the means of
// what toll used.
func (m *machine) inTurns(b *testing.B, toll string, args []string, says string) used {
	b.Helper()
	var ours, theirs used
	for b.Loop() {
		ours.add(m.use(b, toll, args, says))
		if against := os.Getenv(againstEnv); against != "" {
			b.StopTimer()
			theirs.add(m.use(b, against, args, ""))
			b.StartTimer()
		}
	}
	n := float64(b.N)
	b.ReportMetric(ours.cpu/n, "cpu-s/op")
	b.ReportMetric(ours.memory/n, "MiB-largest-process")
	if theirs.cpu > 0 {
		b.ReportMetric(ours.cpu/theirs.cpu, "cpu-ratio")
		b.ReportMetric(ours.wall/theirs.wall, "time-ratio")
		b.ReportMetric(ours.memory/theirs.memory, "memory-ratio")
	}
	return used{ours.wall / n, ours.cpu / n, ours.memory / n}
}

// used is what runs used: seconds, and the resident memory of the largest process in MiB.
type used struct{ wall, cpu, memory float64 }

func (u *used) add(o used) { u.wall, u.cpu, u.memory = u.wall+o.wall, u.cpu+o.cpu, u.memory+o.memory }

// use runs toll ports in the machine. Its output must have a text.
func (m *machine) use(b *testing.B, toll string, args []string, says string) used {
	b.Helper()
	cmd := m.command(append([]string{toll, "ports"}, args...)...)
	began := time.Now()
	out, err := cmd.Output()
	wall := time.Since(began)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || !strings.Contains(string(out), says) {
		b.Fatalf("%v: no %q in %s", err, says, out)
	}
	state := cmd.ProcessState
	const kibibytes = 1024
	return used{wall.Seconds(), (state.UserTime() + state.SystemTime()).Seconds(),
		float64(state.SysUsage().(*syscall.Rusage).Maxrss) / kibibytes}
}

// crowd returns the script of a machine with containers that publish ports. Its firewall knows many
// networks, by at least that many rules in all.
func crowd(containers, each, rules int) string {
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
	for i := range max(0, rules-n) {
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
		fmt.Fprintf(&b, "proxy -proto tcp -host-ip 0.0.0.0 -host-port %d -container-ip %s -container-port %d\n",
			port, addr, to)
	})
	return b.String()
}
