package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/ovs"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func binary(t *testing.T) string {
	t.Helper()
	if !mayBuild() {
		pathtest.SkipOrFail(t, "network namespaces need root here")
	}
	return pathtest.Toll(t)
}

func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "toll-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The processes of a tollRun are found by an environment variable that they all inherit.
type tollRun struct {
	cmd         *exec.Cmd
	out, errOut bytes.Buffer
	marker      string
	ended       chan error
}

func startToll(t *testing.T, bin string, user *syscall.Credential, args ...string) *tollRun {
	t.Helper()
	return startWriting(t, nil, bin, user, args...)
}

// startWriting starts a toll that writes to out; nil: to the run's buffer.
func startWriting(t *testing.T, out *os.File, bin string, user *syscall.Credential,
	args ...string) *tollRun {
	t.Helper()
	r := &tollRun{marker: "TOLL_TEST=" + t.Name() + "-" +
		strconv.FormatInt(time.Now().UnixNano(), 36), ended: make(chan error, 1)}
	r.cmd = exec.Command(bin, args...)
	r.cmd.Dir = "/"
	r.cmd.Env = append(os.Environ(), r.marker)
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.errOut
	if out != nil {
		r.cmd.Stdout = out
	}
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user, Setpgid: true}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- r.cmd.Wait() }()
	t.Cleanup(func() {
		for pid := range r.processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return r
}

func (r *tollRun) processes() map[int]string {
	out := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(env, []byte(r.marker)) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		out[pid] = strings.ReplaceAll(string(cmd), "\x00", " ")
	}
	return out
}

// patience is the timeout for what takes a second on an idle machine.
const patience = time.Minute

func (r *tollRun) find(t *testing.T, word string) int {
	t.Helper()
	return r.findAll(t, word, 1)[0]
}

func (r *tollRun) findAll(t *testing.T, word string, n int) (found []int) {
	t.Helper()
	if !testwait.Met(patience, func() bool {
		found = nil
		for _, pid := range descendants(r.cmd.Process.Pid) {
			cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if strings.Contains(strings.ReplaceAll(string(cmd), "\x00", " "), word) {
				found = append(found, pid)
			}
		}
		return len(found) >= n
	}) {
		t.Fatalf("no %d processes %q among %v\n%s", n, word, r.processes(), r.errOut.String())
	}
	return found
}

// A search of the whole machine would take longer than some descendants live.
func descendants(pid int) (found []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/children", pid))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for _, child := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(child); err == nil {
				found = append(append(found, n), descendants(n)...)
			}
		}
	}
	return found
}

func awaitVisits(t *testing.T, file string, n int) {
	t.Helper()
	testwait.Until(t, patience, strconv.Itoa(n)+" visits have a result", func() bool {
		b, _ := os.ReadFile(file)
		good := 0
		for l := range bytes.Lines(b) {
			if bytes.HasPrefix(l, []byte(`{"visit"`)) && !bytes.Contains(l, []byte(`"failure"`)) {
				good++
			}
		}
		return good >= n
	})
}

func (r *tollRun) wait(t *testing.T, limit time.Duration) (code int, took time.Duration) {
	t.Helper()
	began := time.Now()
	select {
	case <-r.ended:
		return r.cmd.ProcessState.ExitCode(), time.Since(began)
	case <-time.After(limit):
		t.Fatalf("it still runs after %s:\n%s", limit, r.errOut.String())
		return 0, 0
	}
}

func (r *tollRun) gone(t *testing.T) {
	t.Helper()
	var left map[int]string
	if !testwait.Met(patience, func() bool { left = r.processes(); return len(left) == 0 }) {
		t.Errorf("left behind: %v", left)
	}
}

var nobody = &syscall.Credential{Uid: 65534, Gid: 65534}

// For an ordinary user there is a second toll inside the user namespace.
func TestInterrupt(t *testing.T) {
	bin := binary(t)
	for _, c := range []struct {
		name   string
		user   *syscall.Credential
		signal syscall.Signal
		code   int
		args   string
	}{
		{"root-SIGINT", nil, syscall.SIGINT, 130, "compare bridge publish-proxy --load rr"},
		{"root-SIGTERM", nil, syscall.SIGTERM, 143, "compare bridge publish-proxy --load rr"},
		{"user-SIGINT", nobody, syscall.SIGINT, 130, "compare bridge publish-proxy --load rr"},
		{"crowd", nobody, syscall.SIGINT, 130, "scale bridge --clients 2x4x2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			besideLabs(t)
			file := filepath.Join(openDir(t), "run.jsonl")
			r := startToll(t, bin, c.user, append(
				strings.Fields(c.args), "--window", "50ms", "--rounds", "1000", "--format", "json",
				"--save", file)...)
			awaitVisits(t, file, 4)
			if err := r.cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			code, took := r.wait(t, patience)
			if code != c.code {
				t.Errorf("exit code %d, want %d\n%s", code, c.code, r.errOut.String())
			}
			t.Logf("it ended after %s", took)
			report := readReport(t, r.out.Bytes())
			if report.Plan.EndedBy != sample.EndedByInterrupt || len(report.Cells) == 0 {
				t.Errorf("what was measured is missing:\n%s", r.out.String())
			}
			r.gone(t)
		})
	}
}

// A run that nobody reads ends as an interrupted one does.
func TestReaderGone(t *testing.T) {
	bin := binary(t)
	for name, user := range map[string]*syscall.Credential{"root": nil, "user": nobody} {
		t.Run(name, func(t *testing.T) {
			besideLabs(t)
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r := startWriting(t, write, bin, user, "compare", "bridge", "publish-proxy", "--load",
				"rr", "--window", "50ms", "--rounds", "1000", "--save", "/dev/stdout")
			write.Close()
			lines := bufio.NewScanner(read)
			for range 4 { // the header, and visits
				if !lines.Scan() {
					t.Fatalf("%v\n%s", lines.Err(), r.errOut.String())
				}
			}
			read.Close()
			const want = exitSignalled + int(syscall.SIGPIPE)
			if code, _ := r.wait(t, patience); code != want {
				t.Errorf("exit code %d, want %d\n%s", code, want, r.errOut.String())
			}
			r.gone(t)
		})
	}
}

func TestKillToll(t *testing.T) {
	bin := binary(t)
	for _, c := range []struct {
		name string
		user *syscall.Credential
		args string
		wait string // kill toll when a process with this in its command line runs
	}{
		// docker-proxy's or toll's
		{"root-while-building", nil, "compare publish-proxy", "-container-ip"},
		{"root-while-measuring", nil, "compare publish-proxy", " worker"},
		{"user-while-measuring", nobody, "compare publish-proxy", " worker"},
		{"open-vswitch-while-building", nil, "compare ovs", "ovsdb-server"},
		{"open-vswitch-while-measuring", nil, "compare ovs", " worker"},
		{"pasta-while-building", nil, "compare pasta", "--config-net"},
		{"slirp4netns-while-building", nil, "compare slirp4netns", "--disable-host-loopback"},
		{"slirp4netns-while-measuring", nil, "compare slirp4netns", " worker"},
		{"crowd", nil, "scale publish-proxy --clients 8x8", " worker"},
		{"crowd-of-a-user", nobody, "scale bridge --clients 8x8", " worker"},
	} {
		t.Run(c.name, func(t *testing.T) {
			besideLabs(t)
			if _, err := ovs.Find("ovs-vswitchd"); err != nil && c.args == "compare ovs" {
				pathtest.SkipOrFail(
					t, "Open vSwitch is not installed: apt-get install openvswitch-switch")
			}
			before := filesIn(t)
			r := startToll(t, bin, c.user, append(strings.Fields(c.args), "--rounds", "1000")...)
			r.find(t, c.wait)
			if err := r.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			r.wait(t, patience)
			r.gone(t)
			nothingMore(t, before, filesIn)
		})
	}
}

// nothingMore waits until list has only lines of before. Some of those may vanish, because other
// programs come and go.
func nothingMore(t *testing.T, before string, list func(*testing.T) string) {
	t.Helper()
	had := strings.Split(before, "\n")
	var more []string
	if !testwait.Met(patience, func() bool {
		more = slices.DeleteFunc(strings.Split(list(t), "\n"), func(l string) bool {
			return slices.Contains(had, l)
		})
		return len(more) == 0
	}) {
		t.Errorf("left behind: %q", more)
	}
}

func filesIn(t *testing.T) string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"/run/*", "/run/openvswitch/*", "/etc/openvswitch/*",
		"/var/log/openvswitch/*", "/sys/class/net/*"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, names...)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, "\n") + "\n" + string(mounts)
}

// A worker that dies fails only its visit, and a proxy only its path.
func TestKillParts(t *testing.T) {
	bin := binary(t)
	for _, c := range []struct {
		name, victims string
		number        int    // of such processes
		want          string // in the report
		code          int
	}{
		// both of each cell
		{"workers", " worker", 6, "1 of 3 visits failed and is left out", exitOK},
		{"proxy", "-container-ip", 1, `"reason": "the path broke in round `, exitCells},
	} {
		t.Run(c.name, func(t *testing.T) {
			besideLabs(t)
			// They may have ended before the kill, or fail by themselves.
			testwait.Unhindered(t, 2*patience, func(u testing.TB) {
				file := filepath.Join(t.TempDir(), "run.jsonl")
				r := startToll(t, bin, nil, "compare", "publish-proxy", "--to", "loopback",
					"--load", "rr", "--window", "60ms", "--rounds", "3", "--format", "json",
					"--save", file)
				awaitVisits(t, file, 3) // one of each cell
				for _, pid := range r.findAll(t, c.victims, c.number) {
					if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
						u.Error(err)
					}
				}
				code, _ := r.wait(t, patience)
				if code != c.code || !strings.Contains(r.out.String(), c.want) {
					u.Errorf("exit code %d\n%s\n%s", code, r.out.String(), r.errOut.String())
				}
				r.gone(t)
			})
		})
	}
}

func TestOrdinaryUser(t *testing.T) {
	inLabs(t)
	r, code := runPatiently(t, binary(t), nobody, nil, "compare", "--from",
		"host,container,remote,remote-container", "--load", "rr", "--rounds", "1", "--pin", "far",
		"--window", "60ms", "--format", "json")
	if code != exitOK {
		t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
	}
	report := readReport(t, r.out.Bytes())
	if len(report.Cells) == 0 || len(report.Failed) > 0 ||
		slices.ContainsFunc(report.Cells, func(c analysis.Cell) bool { return !c.Witnessed }) {
		t.Errorf("not every row was witnessed:\n%s", r.out.String())
	}
	r.gone(t)
}

func TestUserNamespacesForbidden(t *testing.T) {
	bin := binary(t)
	for _, tool := range []string{"unshare", "setpriv"} {
		if _, err := exec.LookPath(tool); err != nil {
			pathtest.SkipOrFail(t, "%s is not installed: apt-get install util-linux", tool)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// A user namespace that forbids nested ones, and a process in it without any capability.
	cmd := exec.CommandContext(ctx, "unshare", "--user", "--map-root-user", "sh", "-c",
		"echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all "+
			"--inh-caps=-all --no-new-privs "+bin+" compare")
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != exitNothing {
		t.Errorf("exit code %d", code)
	}
	want := "toll: error: make a user namespace: /proc/sys/user/max_user_namespaces is 0: enter a " +
		"user namespace: fork/exec /proc/self/exe: no space left on device\n" +
		"toll: hint: " + remedy.AsRoot("sysctl -w user.max_user_namespaces=15000") + "\n"
	if got := errOut.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestModesWithoutLab lists the modes where the lab cannot be had, and the reason once.
func TestModesWithoutLab(t *testing.T) {
	cause := &machine.UnsupportedError{Missing: "no namespaces", Remedy: "leave the jail"}
	list := checkModes(t.Context(), refusing{err: cause}, nil)
	if len(list) != len(mode.All()) {
		t.Errorf("%d modes", len(list))
	}
	d := view.ModeLines(list)
	var why []string
	for _, b := range d.Sections[1].Blocks {
		why = append(why, b.(document.Paragraph).Text.String())
	}
	if want := []string{"all: no namespaces; hint: leave the jail"}; !slices.Equal(why, want) {
		t.Errorf("%q, want %q", why, want)
	}
}
