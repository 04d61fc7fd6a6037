package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func TestLimits(t *testing.T) {
	have := regexp.MustCompile(`have \d+`) // other processes of the user count, too
	threads := func(paths, need string) string {
		return "toll: error: " + paths + ": not enough threads of this user: need about " + need +
			", have N (ulimit -u is 20, and this user's other processes have N)\n" +
			"toll: hint: measure less at a time, or ulimit -u " + need + "\n"
	}
	for _, tt := range []struct{ limit, args, want string }{
		{"-u 20", "compare host bridge --rounds 1 --load rr", threads("2 paths", "48")},
		{"-u 20", "run host --server 'x {port}' --client 'x {addr}'", threads("1 path", "42")},
		{"-u 20", "path host", threads("1 path", "42")},
		{"-u 20", "modes host", threads("1 path", "42")},
		{"-n 16", "compare host bridge --rounds 1 --load rr",
			"toll: error: 2 paths: not enough open files: need about 24, have N (ulimit -n is 16)\n" +
				"toll: hint: measure less at a time, or ulimit -n 24\n"},
	} {
		t.Run(tt.limit+"-"+strings.Fields(tt.args)[0], func(t *testing.T) {
			bash, err := exec.LookPath("bash") // other shells lack ulimit -u
			if err != nil {
				t.Skip(err)
			}
			cmd := exec.Command(bash, "-c", "ulimit "+tt.limit+" && exec \"$0\" "+tt.args,
				asUser(t))
			if os.Geteuid() == 0 { // the limit does not apply to root
				cmd.SysProcAttr = &syscall.SysProcAttr{
					Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
			}
			cmd.Dir = "/"
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err = cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != exitNothing || stdout.Len() > 0 {
				t.Errorf("%v: %.600s%.600s", err, &stdout, &stderr)
			}
			if got := have.ReplaceAllString(stderr.String(), "have N"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func asUser(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "toll-limits-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	name := filepath.Join(dir, "toll")
	out, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close(), os.Chmod(dir, 0o755), os.Chmod(name, 0o755)); err != nil {
		t.Fatal(err)
	}
	return name
}

// The first Ctrl-C ends a command that waits for a pipe.
func TestInterruptedWhileItReads(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"report", fifo}, {"report", "-"}, {"predict", fifo}, {"published", "--against", fifo},
		{"ports", "--results", fifo},
	} {
		t.Run(strings.ReplaceAll(strings.Join(args, " "), fifo, "fifo"), func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("/proc/self/exe", args...)
			cmd.Args[0] = "toll"
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			testwait.InCall(t, patience, cmd.Process.Pid, syscall.SYS_OPENAT, syscall.SYS_READ)
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				if cmd.ProcessState.ExitCode() != exitSignalled+int(syscall.SIGINT) {
					t.Errorf("it ended so: %v", err)
				}
			case <-time.After(patience):
				_ = cmd.Process.Kill()
				t.Error("the first signal is lost")
			}
		})
	}
}
