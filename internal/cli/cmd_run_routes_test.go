package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// startLines starts a server that answers each line with the number of lines received on the
// connection.
func startLines(t *testing.T) (addr string) {
	t.Helper()
	return testnet.Serve(t, func(c net.Conn) {
		b := make([]byte, 1)
		for n := 0; ; {
			if _, err := c.Read(b); err != nil {
				return
			}
			if b[0] == '\n' {
				n++
				fmt.Fprintf(c, "line %d\n", n)
			}
		}
	}).String()
}

// Bash opens the two connections itself.
const askLines = `exec bash -c 'for c in 1 2; do exec 3<>/dev/tcp/{host}/{port}; for l in 1 2; ` +
	`do echo hello >&3; read -r x <&3; done; done; echo "$x"; id -u; ls {dir}; sleep 1000 & disown'`

func TestRunOverRoutes(t *testing.T) {
	t.Parallel()
	bin := binary(t)
	at := startLines(t)
	for name, user := range map[string]*syscall.Credential{"root": nil, "user": nobody} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(openDir(t), "run.jsonl")
			args := []string{"run", "--client", askLines, "--metric", `lines=^line (\d+)`,
				"--metric", `uid=^(\d+)$`, "--to", "first=" + at + ",second=" + at,
				"--rounds", "5", "--seed", "3", "--quiet", "--save", file,
				"--details"}
			r := startToll(t, bin, user, args...)
			if code, _ := r.wait(t, 2*patience); code != exitOK {
				t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
			}
			r.gone(t)
			out := r.out.String()
			for _, want := range []string{"Is it the network?", "No: the routes do not differ",
				"From here → the server, exec bash", "first and second have the same address"} {
				if !strings.Contains(strings.Join(strings.Fields(out), " "),
					strings.Join(strings.Fields(want), " ")) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			again := startToll(t, bin, user, "report", file, "--details")
			if code, _ := again.wait(t, patience); code != exitOK || again.out.String() != out {
				t.Errorf("judged again, exit code %d:\n%s", code, again.out.String())
			}
			as := startToll(t, bin, user, "report", file, "--format", "json")
			if code, _ := as.wait(t, patience); code != exitOK {
				t.Fatalf("exit code %d\n%s", code, as.errOut.String())
			}
			report := readReport(t, as.out.Bytes())
			if report.Study != sample.StudyEndpoints || len(report.Cells) != 2 ||
				len(report.Failed) > 0 {
				t.Fatalf("%+v", report)
			}
			uid := 0.
			if user != nil {
				uid = float64(user.Uid)
			}
			for _, c := range report.Cells {
				for metric, want := range map[string]float64{"lines": 2, "uid": uid,
					workload.Dialled: 2, workload.Resent: 0} {
					if m, ok := c.Metrics[metric]; !ok || m.Median != want {
						t.Errorf("%s: %s is %+v, want %g", c.Mode, metric, c.Metrics[metric], want)
					}
				}
			}
		})
	}
}

// The client of a recipe says once that its server is busy.
func TestRunTriesABusyServerAgain(t *testing.T) {
	t.Parallel()
	client := `mkdir {dir}/asked 2>/dev/null && echo "the server is busy running a ` +
		`test" && exit 1; ` +
		`echo '{"end": {"sum_received": {"bits_per_second": 5e9}}}' # {addr}`
	r := startToll(t, binary(t), nil, "run", "--recipe", "iperf3", "--client", client, "--to",
		startLines(t), "--rounds", "1", "--quiet", "--format", "json")
	if code, _ := r.wait(t, 2*patience); code != exitOK {
		t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
	}
	for _, c := range readReport(t, r.out.Bytes()).Cells {
		if _, lost := c.Metrics["lost"]; c.Metrics["throughput"].Median != 5e9 || lost {
			t.Errorf("%+v", c.Metrics)
		}
	}
	r.gone(t)
}

func TestRunNamesServersCPULimit(t *testing.T) {
	t.Parallel()
	bin := binary(t)
	group := "/sys/fs/cgroup/cpu/toll-test-" + strconv.Itoa(os.Getpid())
	files := map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "5000"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil { // version 2
		group = "/sys/fs/cgroup/toll-test-" + strconv.Itoa(os.Getpid())
		files = map[string]string{"cpu.max": "5000 100000"}
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		pathtest.SkipOrFail(t, "no cgroup can be made: %v", err)
	}
	t.Cleanup(func() {
		testwait.Met(patience, func() bool { return os.Remove(group) == nil })
	})
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(group, name), []byte(text), 0o644); err != nil {
			pathtest.SkipOrFail(t, "no CPU limit can be set: %v", err)
		}
	}
	at, pid := startRedis(t)
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		pathtest.SkipOrFail(t, "the server cannot be limited: %v", err)
	}
	r := startToll(t, bin, nil, "run", "--client",
		"redis-benchmark -h {host} -p {port} -c 4 -n 4000 -t get --csv", "--timeout", "2m", "--to",
		at.String(),
		"--rounds", "1", "--quiet")
	if code, _ := r.wait(t, 2*patience); code != exitOK {
		t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
	}
	if out := strings.Join(strings.Fields(r.out.String()), " "); !regexp.MustCompile(`the server: its CPU limit stopped it in [1-9]\d* of [1-9]\d* periods`).MatchString(out) {
		t.Errorf("no word of the limit in\n%s", r.out.String())
	}
}

func TestRunOverRoutesKilled(t *testing.T) {
	t.Parallel()
	r := startToll(t, binary(t), nil, "run", "--client", "sleep 1000; true {addr}", "--timeout",
		"1h", "--to", startLines(t))
	started := testwait.Met(patience, func() bool {
		for _, cmd := range r.processes() {
			if cmd == "sleep 1000 " {
				return true
			}
		}
		return false
	})
	if !started {
		t.Fatalf("no client runs: %s", r.errOut.String())
	}
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.gone(t)
}

// The client reaches the servers by the container's loopback and by a name that only Docker's DNS
// server knows.
func ranInContainers(e *dockerHost, t *testing.T, bin, echo string) {
	client := echo + ` dial {addr} | grep -q answered && echo {name}`
	args := func(to, from string) []string {
		return []string{bin, "run", "--client", client, "--to", to, "--from", from, "--rounds", "1",
			"--quiet", "--format", "json"}
	}
	report := readReport(t, []byte(e.run(args("own=127.0.0.1:9000", "container:quiet")...)))
	report.Cells = append(report.Cells, readReport(
		t, []byte(e.run(args("mate=mate:9000", "network:dual")...))).Cells...)
	for i, want := range []struct {
		name, from string
		looked     bool
	}{{"own@container:quiet", "container:quiet", false},
		{"mate@network:dual", "network:dual", true}} {
		if i >= len(report.Cells) {
			t.Fatalf("%+v", report)
		}
		c := report.Cells[i]
		if string(c.Mode) != want.name || c.Facts["from"] != want.from ||
			c.Metrics[workload.Dialled].Median != 1 ||
			(c.Metrics[workload.LookUpTime].Median > 0) != want.looked {
			t.Errorf("%+v", c)
		}
	}
	report = readReport(t, []byte(e.run(args(
		"published=127.0.0.1:8080,nat=198.18.0.1:8080,direct=172.17.0.2:80", "host")...)))
	for _, c := range report.Cells {
		behind := map[mode.Name]string{"published": "172.17.0.2:80"}[c.Mode]
		if _, seen := c.Metrics[workload.ServerOverflows]; c.Facts["behind_docker_proxy"] != behind || c.Facts["container"] != "web" || !seen {
			t.Errorf("%s: %v, the server's kernel was asked: %t", c.Mode, c.Facts, seen)
		}
	}
	if said := strings.Join(report.Answer.Text, " "); !strings.Contains(said,
		"published goes through docker-proxy") {
		t.Error(said)
	}
	if _, err := e.try(args("own=127.0.0.1:9000", "host")...); err == nil ||
		!strings.Contains(err.Error(), "nothing listens at 127.0.0.1:9000") {
		t.Errorf("from this machine: %v", err)
	}
	if _, err := e.try(args("own=127.0.0.1:9000", "container:quit")...); err == nil ||
		!strings.Contains(err.Error(), "did you mean container:quiet?") {
		t.Errorf("a slip: %v", err)
	}
}
