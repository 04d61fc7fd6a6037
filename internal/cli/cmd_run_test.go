package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
)

// The programs start quickly and move enough data for the hops to witness.
const (
	redisServer = `cd {dir} && exec redis-server --port {port} --bind '*' --protected-mode no ` +
		`--save '' --appendonly no`
	redisCLI    = `redis-cli -h {host} -p {port} `
	redisClient = `head -c 65536 /dev/zero | tr '\0' x | ` + redisCLI + `-x set k && ` + redisCLI +
		`get k | wc -c && echo keys $(` + redisCLI + `dbsize)`
)

func needRedis(t *testing.T) {
	t.Helper()
	for _, p := range []string{"redis-server", "redis-cli"} {
		if _, err := exec.LookPath(p); err != nil {
			pathtest.SkipOrFail(t, "%s is not installed: apt-get install redis-server redis-tools",
				p)
		}
	}
	testversions.Ran(t, "Redis", testversions.Of("redis-server", "--version"), "`toll run`")
}

type judged struct {
	Cells []struct {
		Mode, From, To string
		Witnessed      bool
		Metrics        map[string]struct {
			Unit   string
			Median float64
		}
	}
	Failed []struct{ Mode, From, To, Failure, Evidence string }
}

func (r *tollRun) judged(t *testing.T) (j judged) {
	t.Helper()
	if err := json.Unmarshal(r.out.Bytes(), &j); err != nil {
		t.Fatalf("%v:\n%s\n%s", err, r.out.String(), r.errOut.String())
	}
	return j
}

func TestRun(t *testing.T) {
	t.Parallel()
	bin := binary(t)
	for _, c := range []struct {
		name  string
		test  func(t *testing.T, bin string)
		waits bool // waits more than it measures
	}{
		{"modes", runOverModesOfEachKind, false},
		{"failures", runFailures, true},
		{"stopped", runStopped, true},
		{"killed-keeper", runWithKilledKeeper, false},
		{"ordinary-user", runAsOrdinaryUser, false},
		{"recipe", runRecipe, false},
		{"one-shot-server", runOneShotServer, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.waits {
				inLabs(t)
			}
			c.test(t, bin)
		})
	}
}

// TestConformance of the lab starts programs over every mode.
func runOverModesOfEachKind(t *testing.T, bin string) {
	needRedis(t)
	args := []string{"run", "shared", "bridge", "publish-nat", "publish-proxy", "macvlan-bridge",
		"overlay", "--from", "container,remote", "--rounds", "1", "--quiet",
		"--format", "json",
		"--server", redisServer, "--client", redisClient, "--metric", `moved:B=^(\d+)$`, "--metric",
		`keys=^keys (\d+)`}
	said, err := exec.Command(bin, append(args, "--dry-run")...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var plan struct{ Cells []struct{ Control bool } }
	if err := json.Unmarshal(said, &plan); err != nil {
		t.Fatal(err)
	}
	r := startToll(t, bin, nil, args...)
	if code, _ := r.wait(t, 4*patience); code != exitOK {
		t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
	}
	j := r.judged(t)
	for _, f := range j.Failed {
		t.Errorf("failed: %+v", f)
	}
	planned := 0
	for _, c := range plan.Cells {
		if !c.Control {
			planned++
		}
	}
	const least = 8
	if len(j.Cells) != planned || planned < least {
		t.Errorf("%d of %d cells have a result", len(j.Cells), planned)
	}
	for _, c := range j.Cells {
		const payload = 65536 + 1 // plus a newline
		if !c.Witnessed || c.Metrics["moved"].Median != payload || c.Metrics["moved"].Unit != "B" ||
			c.Metrics["keys"].Median != 1 ||
			c.Metrics["elapsed"].Median <= 0 {
			t.Errorf("%s from %s to %s: %+v", c.Mode, c.From, c.To, c)
		}
	}
	r.gone(t)
}

// Failures that only real programs and paths make. TestFailingProgramFailsItsVisitOnly of the
// engine and the tests of measure/program have the others.
func runFailures(t *testing.T, bin string) {
	needRedis(t)
	const nothing, busyTime = "true # {host}", "20s" // for a busy machine
	for _, c := range []struct {
		name           string
		modes          string
		server, client string
		timeout        string
		code           int
		want           string // a regexp, of the one cell's reason and evidence
	}{
		{"missing-server", "host", "exec /no/such/server {port}", nothing, busyTime, exitFailed,
			`^server: it ended before it was ready \(exit status 127\); it said: ` +
				`.*/no/such/server.*not found`},
		{"endless-client", "host", redisServer, "yes | head -c 64M; sleep 60 # {host}", "3s",
			exitFailed, `^client: it did not end within 3s; it said: …`},
		{"server-crashes", "host", redisServer + " --enable-debug-command yes",
			redisClient + "; " + redisCLI + "debug segfault; sleep 1", busyTime, exitFailed,
			`^server: it ended before it was stopped \(signal: segmentation fault\); it said: `},
		{"client-goes-nowhere", "host", redisServer, nothing, busyTime, exitFailed,
			`lo \(machine A\): saw no packet`},
		// The client dials the address that NAT publishes, which the baseline lacks.
		{"client-goes-another-way", "publish-proxy", redisServer,
			"case {host} in 127.0.0.1) if [ {port} = 8080 ]; then redis-cli -h 198.18.0.1 -p " +
				"8080 ping; else " + redisCLI + "ping; fi;; *) " + redisCLI + "ping;; esac",
			busyTime, exitCells,
			`(?s)lo \(machine A\): saw no packet.*nat DOCKER publish \(machine A\): hit |` +
				`nat DOCKER publish \(machine A\): hit .*lo \(machine A\): saw no packet`},
		{"one-mode-only", "bridge", redisServer,
			redisCLI + "ping; [ {host} = 127.0.0.1 ] || { echo I want 127.0.0.1 >&2; exit 1; }",
			busyTime, exitCells,
			`^client: it failed \(exit status 1\); it said: I want 127\.0\.0\.1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			besideLabs(t)
			r := startToll(t, bin, nil, "run", c.modes, "--rounds", "1", "--quiet", "--format",
				"json", "--timeout", c.timeout, "--server", c.server, "--client", c.client)
			code, _ := r.wait(t, 2*patience)
			j := r.judged(t)
			if code != c.code || len(j.Failed) != 1 {
				t.Fatalf("exit code %d, want %d; failed %+v\n%s", code, c.code, j.Failed,
					r.errOut.String())
			}
			if got := j.Failed[0].Failure + j.Failed[0].Evidence; !regexp.MustCompile(c.want).MatchString(got) {
				t.Errorf("failed %q, want %s", got, c.want)
			}
			r.gone(t)
		})
	}
}

func runStopped(t *testing.T, bin string) {
	if _, err := exec.LookPath("setsid"); err != nil {
		pathtest.SkipOrFail(t, "setsid is not installed: apt-get install util-linux")
	}
	// toll's own command line contains the programs', but with the sums not evaluated.
	const (
		deaf = `(trap '' TERM INT HUP; setsid sleep $((1000+1)) & setsid sleep $((1000+2))) & ` +
			`echo kept >{dir}/toll-test-file; : {port}; `
		server = deaf + "echo up; exec sleep $((1000+3))"
		client = deaf + ": {host}; exec sleep $((1000+4))"
	)
	for _, c := range []struct {
		name   string
		user   *syscall.Credential
		signal syscall.Signal
		code   int
		ready  string
		wait   string // for a program with this command line
		more   []string
	}{
		{"root-SIGINT", nil, syscall.SIGINT, 130, "up", "sleep 1004", nil},
		{"root-SIGTERM-before-ready", nil, syscall.SIGTERM, 143, "never", "sleep 1003", nil},
		{"root-SIGKILL", nil, syscall.SIGKILL, -1, "up", "sleep 1004", nil},
		{"root-SIGKILL-before-ready", nil, syscall.SIGKILL, -1, "never", "sleep 1003", nil},
		{"user-SIGINT", nobody, syscall.SIGINT, 130, "up", "sleep 1004", nil},
		{"user-SIGKILL", nobody, syscall.SIGKILL, -1, "up", "sleep 1004", nil},
		{"no-root-SIGKILL", nobody, syscall.SIGKILL, -1, "up", "sleep 1004", []string{"--no-root"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			besideLabs(t)
			left := func(t *testing.T) string { return filesIn(t) + kept(t) }
			before := left(t)
			args := append([]string{"run", "bridge", "--rounds", "1000", "--timeout", "100s",
				"--ready", c.ready, "--server", server, "--client", client}, c.more...)
			r := startToll(t, bin, c.user, args...)
			r.find(t, c.wait)
			r.find(t, "sleep 1002")
			if err := r.cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			if code, _ := r.wait(t, patience); code != c.code {
				t.Errorf("exit code %d, want %d\n%s", code, c.code, r.errOut.String())
			}
			r.gone(t)
			nothingMore(t, before, left)
		})
	}
}

func kept(t *testing.T) string {
	t.Helper()
	names, err := filepath.Glob("/dev/shm/toll-*")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, "\n")
}

func runWithKilledKeeper(t *testing.T, bin string) {
	needRedis(t)
	// With this seed the first visit is not the control's, whose failures are not listed.
	r := startToll(t, bin, nil, "run", "bridge", "--rounds", "4", "--seed", "1", "--quiet",
		"--format", "json", "--server", redisServer,
		"--client", redisClient+"; sleep 0.2", "--metric", `moved:B=^(\d+)$`)
	if err := syscall.Kill(r.find(t, "toll program"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	code, _ := r.wait(t, 2*patience)
	if j := r.judged(t); code != exitOK || len(j.Cells) != 2 ||
		!strings.Contains(r.out.String(), "failed-visits") {
		t.Errorf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
	}
	r.gone(t)
}

// A second, nested user namespace is for programs that refuse to run as root.
func runAsOrdinaryUser(t *testing.T, bin string) {
	needRedis(t)
	dir := openDir(t)
	// Secrets go through the environment, which no file records.
	secret := []string{"TOLL_SECRET=open-sesame", bin}
	const say = `[ ${#TOLL_SECRET} = 11 ] || { echo no secret >&2; exit 1; }; `
	for _, c := range []struct {
		name string
		user *syscall.Credential
		uid  float64
		more []string
	}{
		{"root-without", nil, 1000, []string{"--no-root"}},
		{"user", nobody, 0, nil},
		{"user-without", nobody, 1000, []string{"--no-root"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			save := filepath.Join(dir, c.name)
			r := startToll(t, "env", c.user, append(
				append(secret, "run", "bridge", "publish-proxy", "--rounds", "1", "--quiet",
					"--format", "json", "--save", save,
					"--server", say+redisServer, "--client",
					say+redisClient+`; echo uid $(id -u); echo here >{dir}/$$ && cat {dir}/$$`,
					"--metric", `uid=^uid (\d+)`, "--metric", `moved:B=^(\d+)$`), c.more...)...)
			if code, _ := r.wait(t, 2*patience); code != exitOK {
				t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
			}
			j := r.judged(t)
			for _, cell := range j.Cells {
				if !cell.Witnessed || cell.Metrics["uid"].Median != c.uid {
					t.Errorf("%+v", cell)
				}
			}
			if len(j.Cells) != 4 || len(j.Failed) > 0 {
				t.Errorf("%d cells, failed %+v", len(j.Cells), j.Failed)
			}
			file, err := os.ReadFile(save)
			if err != nil || len(file) == 0 {
				t.Fatal(err)
			}
			for _, text := range [][]byte{file, r.out.Bytes(), r.errOut.Bytes()} {
				if bytes.Contains(text, []byte("open-sesame")) {
					t.Error("the environment got into what toll writes")
				}
			}
			r.gone(t)
		})
	}
}

func runRecipe(t *testing.T, bin string) {
	needRedis(t)
	r := startToll(t, bin, nobody, "run", "host", "--recipe", "redis", "--rounds", "1", "--quiet",
		"--format", "json")
	if code, _ := r.wait(t, 2*patience); code != exitOK {
		t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
	}
	for _, c := range r.judged(t).Cells {
		for _, m := range []string{"requests", "p50", "p99"} {
			if c.Metrics[m].Median <= 0 {
				t.Errorf("%s: %+v", m, c.Metrics)
			}
		}
	}
	r.gone(t)
}

func runOneShotServer(t *testing.T, bin string) {
	needRedis(t)
	r := startToll(t, bin, nil, "run", "host", "--rounds", "2", "--quiet", "--format", "json",
		"--server", redisServer, "--client", redisClient+"; "+redisCLI+"shutdown nosave",
		"--metric", `moved:B=^(\d+)$`)
	code, _ := r.wait(t, 2*patience)
	if j := r.judged(t); code != exitOK || len(j.Cells) != 1 || !j.Cells[0].Witnessed {
		t.Errorf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
	}
	r.gone(t)
}

func TestRecipeNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out, errOut bytes.Buffer
	code := run(context.Background(), env{stdout: &out, stderr: &errOut},
		[]string{"run", "--recipe", "iperf3"})
	const want = "toll: error: recipe iperf3: not installed: iperf3\n" +
		"toll: hint: install iperf3 (Debian's name of the package)\n"
	if code != exitNothing || out.Len() > 0 || errOut.String() != want {
		t.Errorf("exit code %d\n%s\n%s", code, out.String(), errOut.String())
	}
}

// --window reaches a client only as {seconds}.
func TestRunWindow(t *testing.T) {
	for _, tt := range []struct {
		client, said string
		more         []string
	}{
		{"true {addr}", "toll: error: --window is {seconds}, which --client does not " +
			"have\ntoll: hint: " +
			"toll run 127.0.0.1:5201 --client 'iperf3 -c {host} -t {seconds}'\n", []string{
			"--window", "5s"}},
		{"true {addr}", "", []string{"--timeout", "1s"}},
		{"true {addr} {seconds}", "toll: error: --timeout 1s is too short: the client alone " +
			"runs for 1 s\ntoll: " +
			"hint: --timeout 12s\n", []string{"--timeout", "1s"}},
		{"true {addr} {seconds}", "", []string{"--window", "5s"}},
	} {
		for _, what := range [][]string{{"127.0.0.1:6379"}, {"host", "--server", "true {port}"}} {
			args := slices.Concat([]string{"run"}, what, []string{"--client", tt.client}, tt.more,
				[]string{"--dry-run"})
			code, _, said := toll(t, args...)
			if (code == exitUsage) != (tt.said != "") || code == exitUsage && said != tt.said {
				t.Errorf("toll %q: exit %d, %q, want %q", args, code, said, tt.said)
			}
		}
	}
}
