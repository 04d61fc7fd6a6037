package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

const patientEnv = "TOLL_TEST_PATIENT"

func patient(args []string) int {
	os.Unsetenv(patientEnv)
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	alone := time.Now().Add(patience)
	for i := 1; ; i++ {
		var out, errOut bytes.Buffer
		cmd := exec.Command(self, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, &out, &errOut
		if err := cmd.Run(); cmd.ProcessState == nil {
			fmt.Fprintln(os.Stderr, err)
			return exitFailed
		}
		code, report := cmd.ProcessState.ExitCode(), out.String()+outputOf(args)
		if traced(report) && time.Now().Before(alone) {
			i--
			time.Sleep(time.Second)
			continue
		}
		if code == exitOK || i == tries || !pathtest.TooBusy(report) || !moreRounds(args) {
			os.Stdout.Write(out.Bytes())
			os.Stderr.Write(errOut.Bytes())
			if code != exitOK { // for a logged script
				fmt.Fprint(os.Stderr, outputOf(args))
			}
			return code
		}
		noteRerun(args, report)
		args = again(args)
		hurry()
	}
}

// traced reports whether another toll trace, as other packages' tests make, was in the way.
func traced(report string) bool {
	return strings.Contains(strings.Join(strings.Fields(report), " "), "another toll trace")
}

// hurry raises the priority of processes that this goroutine starts from now on, if this user may.
func hurry() {
	runtime.LockOSThread()
	const nice = -15
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, nice)
}

// runPatiently runs toll again, with more rounds, if the machine was too busy for it to succeed
// with an output that fits; a nil fits takes any.
func runPatiently(t *testing.T, bin string, user *syscall.Credential, fits func(out string) bool,
	args ...string) (r *tollRun, code int) {
	t.Helper()
	const limit = 3 * patience
	for i := 1; ; i++ {
		r = startToll(t, bin, user, args...)
		code, _ = r.wait(t, limit)
		out := r.out.String()
		if code == exitOK && (fits == nil || fits(out)) || i == tries || !pathtest.TooBusy(out) ||
			!moreRounds(args) {
			return r, code
		}
		noteRerun(args, out)
		args = again(args)
		hurry()
	}
}

// rerunsEnv names the file that gets a line for each repeated run: scripts run toll in separate
// processes, so a counter would not do.
const rerunsEnv = "TOLL_TEST_RERUNS"

// mostReruns is the largest number of runs, of some ninety, that a busy machine may spoil. An idle
// one with two cores spoils three.
const mostReruns = 20

func noteRerun(args []string, report string) {
	f, err := os.OpenFile(os.Getenv(rerunsEnv), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err) // an uncounted rerun would hide a fault
	}
	defer f.Close()
	fmt.Fprintf(f, "toll %s: %s\n", strings.Join(args, " "),
		disturbed.FindString(strings.Join(strings.Fields(report), " ")))
}

var disturbed = regexp.MustCompile(
	`.{0,60}(the machine was too busy:|the load ended before the window did).{0,80}`)

func countReruns(w io.Writer, noted string) (few bool) {
	n := strings.Count(noted, "\n")
	if n > 0 {
		fmt.Fprintf(
			w, "%d runs were made again because the machine was too busy (at most %d may be):\n%s",
			n, mostReruns, noted)
	}
	return n <= mostReruns
}

type accounted struct{ *testing.M }

func (m accounted) Run() int {
	defer pathtest.RemoveToll()
	if os.Getenv(rerunsEnv) == "" {
		dir, err := os.MkdirTemp("", "toll-test-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		os.Setenv(rerunsEnv, filepath.Join(dir, "reruns"))
	}
	code := m.M.Run()
	noted, _ := os.ReadFile(os.Getenv(rerunsEnv)) // absent without reruns
	if !countReruns(os.Stdout, string(noted)) {
		return max(1, code)
	}
	return code
}

func TestReruns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reruns")
	t.Setenv(rerunsEnv, file)
	for n := 1; n <= mostReruns+1; n++ {
		noteRerun([]string{"compare", "bridge"},
			"Failed\n  host, rr: the machine was\n  too busy: a window of 1 s")
		noted, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if few := countReruns(&out, string(noted)); few != (n <= mostReruns) {
			t.Errorf("%d reruns are few: %t", n, few)
		}
		if !strings.HasPrefix(out.String(), strconv.Itoa(n)+" runs were") ||
			strings.Count(
				out.String(),
				"toll compare bridge: Failed host, rr: the machine was too busy: a "+
					"window of 1 s\n") != n {
			t.Errorf("%d reruns:\n%s", n, out.String())
		}
	}
	if !countReruns(io.Discard, "") {
		t.Error("none are too many")
	}
}

func outputOf(args []string) string {
	at := slices.Index(args, "--output") + 1
	if at == 0 || at == len(args) {
		return ""
	}
	b, _ := os.ReadFile(args[at])
	return string(b)
}

func moreRounds(args []string) bool {
	at := slices.Index(args, "--rounds") + 1
	if at == 0 || at == len(args) {
		return false
	}
	n, err := strconv.Atoi(args[at])
	args[at] = strconv.Itoa(2 * n)
	return err == nil
}

// again returns args with --force, because the run may have written its files.
func again(args []string) []string { return append(slices.Clone(args), "--"+forceFlag) }

func TestScriptsAreRunAgain(t *testing.T) {
	t.Setenv(rerunsEnv, filepath.Join(t.TempDir(), "reruns"))
	dir := t.TempDir()
	script := filepath.Join(dir, "s.txtar")
	err := os.WriteFile(script, []byte("exec sh -c 'echo the machine was too busy; test -e "+dir+
		"/again && echo fine; touch "+dir+"/again'\nstdout fine\n"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	runScript(t, "s", testscript.Params{Files: []string{script}})
	if noted, _ := os.ReadFile(os.Getenv(rerunsEnv)); strings.Count(string(noted), "\n") != 1 {
		t.Errorf("%q", noted)
	}
}
