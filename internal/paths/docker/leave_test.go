package docker

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func sh(t *testing.T, command string) string {
	t.Helper()
	out, err := exec.Command("bash", "-c", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// aUsers makes things that must stay: in Docker, in a swarm, and bridges and a rule with names like
// toll's.
func aUsers(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	program, err := os.ReadFile(local.Self)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "toll"), program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	sh(
		t,
		"tar -C "+dir+" -c toll | docker import - users:1 && docker network create users && "+
			"docker run -dit --name users --network users -p 127.0.0.1:4321:80 users:1 /toll pause")
	t.Cleanup(func() {
		sh(t, "docker rm -f users && docker network rm users && docker rmi users:1")
	})
	const rule = "DOCKER-USER -s 203.0.113.7 -m comment --comment io.bridgetoll.run -j DROP"
	sh(t, `ip link add tollusers type bridge && ip addr add 198.18.8.1/22 dev tollusers && ip link set tollusers up
ovs-vsctl --no-syslog add-br tollovs -- set bridge tollovs datapath_type=netdev external_ids:owner=user && iptables -I `+rule)
	t.Cleanup(func() {
		sh(t, "ip link del tollusers; ovs-vsctl --no-syslog del-br tollovs; iptables -D "+rule)
	})
	if inSwarm() {
		sh(
			t,
			"docker network create -d overlay --attachable usersover && docker run -dit --name "+
				"usersover --network usersover users:1 /toll pause")
		t.Cleanup(func() { sh(t, "docker rm -f usersover && docker network rm usersover") })
	}
}

func inSwarm() bool { return os.Getenv(swarmEnv) == "true" }

// These details change on their own.
var volatile = regexp.MustCompile(
	`"tentative":true,|packets \d+ bytes \d+|# handle ` +
		`\d+|(?m)^#.*$|\[\d+:\d+\]|"(preferred|valid)_life_time":\d+|(?m)^net\.netfilter\.nf_conntrack_count.*$`)

func truth(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range []string{
		"docker ps -a --no-trunc --format '{{.ID}} {{.Names}} {{.State}}'",
		"docker network ls --no-trunc", "docker images -a --no-trunc --format '{{.ID}} {{.Tag}}'",
		"docker volume ls", "ovs-vsctl --no-syslog show",
		"ovs-vsctl --no-syslog --columns=name,external_ids,datapath_type list bridge",
		"iptables-save", "ip6tables-save", "nft list ruleset", "ip -j link", "ip -j addr",
		"ip -j route", "sysctl -a -r '^net'",
		"ls " + filepath.Join(os.Getenv("XDG_STATE_HOME"), "bridgetoll") + " 2>/dev/null || true",
	} {
		out[c] = volatile.ReplaceAllString(sh(t, c), "")
	}
	return out
}

func sameTruth(t *testing.T, when string, before map[string]string) {
	t.Helper()
	diff := ""
	if !testwait.Met(time.Minute, func() bool {
		diff = cmp.Diff(before, truth(t))
		return diff == ""
	}) {
		t.Errorf("%s, something is left (-before +after):\n%s", when, diff)
	}
}

func toll(args ...string) (*exec.Cmd, *bytes.Buffer) {
	var out bytes.Buffer
	cmd := exec.Command(os.Getenv(pathtest.TollEnv), args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// long starts an endless run with short visits. Two can run at once: no path uses the machine's
// loopback device, which counts for both.
func long() []string {
	modes := []string{"bridge", "bridge-default", "publish-nat", "--baseline", "bridge", "--on",
		"docker,lab"}
	if inSwarm() {
		modes = []string{"pipework", "ovs", "overlay", "--baseline", "overlay", "--on", "docker",
			"--from", "container"}
	}
	return append(append([]string{"compare"}, modes...), "--load", "rr", "--slice", "0", "--pin",
		"far", "--rounds", "1000", "--window", "20ms", "--quiet")
}

type midRun struct {
	cmd  *exec.Cmd
	out  *bytes.Buffer
	file string
}

func startMid(t *testing.T) *midRun {
	t.Helper()
	r := &midRun{file: filepath.Join(t.TempDir(), "results.jsonl")}
	r.cmd, r.out = toll(append(long(), "--save", r.file)...)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	made, want := "docker ps -q --filter label="+dockerapi.RunLabel, 3
	if inSwarm() { // this run's marks contain its PID
		made = fmt.Sprintf(
			"docker ps --filter label=%s --format '{{.Label %[1]q}}' | grep /%[2]d/; iptables "+
				"-S %[3]s | grep /%[2]d/; "+
				"ip link | grep /%[2]d/; ovs-vsctl --no-syslog list bridge | grep /%[2]d/",
			dockerapi.RunLabel, r.cmd.Process.Pid, userChain)
		want = 6 + 1 + 5 + 1
	}
	r.waitFor(t, "what it makes", func() bool {
		return strings.Count(sh(t, made+" || true"), "\n") >= want
	})
	r.visits(t, "its first visits", 1, func(pathtest.Visit) bool { return true })
	return r
}

func (r *midRun) waitFor(t *testing.T, what string, met func() bool) {
	t.Helper()
	if !testwait.Met(3*time.Minute, met) {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
		t.Fatalf("no sign of %s:\n%s", what, r.out)
	}
}

func (r *midRun) visits(t *testing.T, what string, n int, of func(pathtest.Visit) bool) {
	t.Helper()
	count := func() int {
		return len(slices.DeleteFunc(pathtest.Visits(r.file), func(v pathtest.Visit) bool {
			return !of(v)
		}))
	}
	before := count()
	r.waitFor(t, what, func() bool { return count() >= before+n })
}

func (r *midRun) interrupt(t *testing.T) int {
	t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	end := time.AfterFunc(3*time.Minute, func() { _ = r.cmd.Process.Kill() })
	defer end.Stop()
	_ = r.cmd.Wait()
	return r.cmd.ProcessState.ExitCode()
}

func TestBesideLeavesNothing(t *testing.T) {
	daemon(t)
	aUsers(t)
	before := truth(t)

	modes := []string{"native", "shared", "bridge", "publish-nat", "publish-proxy",
		"macvlan-bridge", "--on", "docker,lab"}
	if inSwarm() {
		modes = []string{"pipework", "ovs", "macvlan-vepa", "overlay", "--on", "docker"}
	}
	cmd, out := toll(append(append([]string{"compare"}, modes...), "--parent", "card2", "--from",
		"host,container",
		"--load", "rr", "--pin", "far", "--rounds", "1", "--window", "50ms")...)
	_ = cmd.Run() // visits may fail on a busy machine, but not for another reason
	if s := out.String(); !strings.Contains(s, "from another container") ||
		strings.Contains(s, "not witnessed") {
		t.Errorf("a run: %v\n%s", cmd.ProcessState, out)
	}
	sameTruth(t, "after a run", before)

	r := startMid(t)
	if code := r.interrupt(t); code != 130 {
		t.Errorf("interrupted: exit %d\n%s", code, r.out)
	}
	sameTruth(t, "after Ctrl-C", before)

	r = startMid(t)
	alive := startMid(t) // clean must not remove what it made
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait()
	clean, out := toll("clean")
	removed := []string{"removed network"}
	if inSwarm() {
		removed = append(removed, "removed link toll", "removed rule", "removed bridge toll")
	}
	err := clean.Run()
	for _, what := range removed {
		if err != nil || !strings.Contains(out.String(), what) {
			t.Errorf("toll clean: %v\n%s", err, out)
		}
	}
	alive.visits(t, "going on after toll clean", 8, func(pathtest.Visit) bool { return true })
	if code, s := alive.interrupt(t), alive.out.String(); code != 130 || len(failures(s)) > 0 {
		t.Errorf("beside toll clean: exit %d, failed %q\n%s", code, failures(s), s)
	}
	sameTruth(t, "after SIGKILL and toll clean", before)
}

// busy matches reasons of a busy machine, or of an early interrupt.
var busy = regexp.MustCompile(
	`it was never visited|the machine was too busy|the load ended before the window did`)

func failures(report string) (out []string) {
	_, rest, _ := strings.Cut(report, "\nFailed\n")
	rest, _, _ = strings.Cut(rest, "\n\n")
	rest = strings.ReplaceAll(rest, "\n    ", " ") // an entry continues
	for line := range strings.Lines(rest) {
		if !busy.MatchString(line) {
			out = append(out, line)
		}
	}
	return out
}

func TestBesideDaemonRestart(t *testing.T) {
	d := daemon(t)
	r := startMid(t)
	d.Stop()
	d.Start(t)
	r.visits(t, "a visit that fails", 1, func(v pathtest.Visit) bool { return v.Failure != "" })
	r.interrupt(t)
	if clean, out := toll("clean"); clean.Run() != nil {
		t.Errorf("toll clean: %s", out)
	}
	const left = "docker ps -aq --filter label=" + dockerapi.RunLabel +
		"; docker network ls -q --filter label=" + dockerapi.RunLabel +
		"; docker images -q --filter label=" + dockerapi.RunLabel +
		`; ls "$XDG_STATE_HOME/bridgetoll"`
	if s := sh(t, left); s != "" {
		t.Errorf("after a restart, something is left:\n%s\nof %s", s, r.out)
	}
}
