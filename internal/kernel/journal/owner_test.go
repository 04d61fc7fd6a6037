package journal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func with(part int, value string) string {
	p := strings.Split(Mark(), "/")
	p[part] = value
	return strings.Join(p, "/")
}

func TestOfAnotherBoot(t *testing.T) {
	const other = "2f6e5d1c-0000-4000-8000-000000000000"
	if !OfAnotherBoot(with(boot, other)) {
		t.Error("another boot is this one")
	}
	for _, mark := range []string{Mark(), with(boot, ""), with(machine, "x"), "", other} {
		if OfAnotherBoot(mark) {
			t.Errorf("%q is of another boot of this machine", mark)
		}
	}
}

func TestJudge(t *testing.T) {
	own := Mark()
	if Judge(own) != Alive || Elsewhere(own) {
		t.Errorf("%s: this process is alive, and here", own)
	}
	for what, gone := range map[string]string{
		"another process had this PID": with(start, "1"),
		"nobody has this PID":          with(pid, "999999999"),
		"the machine was booted since": with(boot, "2f6e5d1c-0000-4000-8000-000000000000"),
	} {
		if Judge(gone) != Gone && machineID() != "" {
			t.Errorf("%s is not gone: %s", gone, what)
		}
	}
	for _, mark := range []string{with(machine, "0123456789abcdef0123456789abcdef"),
		with(namespace, "pid:[1]"), with(namespace, ""), with(boot, ""),
		with(start, ""), with(pid, "x"), with(pid, "-1"), with(pid, "0"), "pid:[1]/1/1", "", "x",
		"a/b"} {
		if got := Judge(mark); got != Unclear {
			t.Errorf("%q is judged: %d", mark, got)
		}
	}
	if !Elsewhere(with(machine, "0123456789abcdef0123456789abcdef")) {
		t.Error("a process of another machine is here")
	}
}

const judgeEnv = "BRIDGETOLL_TEST_JUDGE"

func TestMain(m *testing.M) {
	if mark := os.Getenv(judgeEnv); mark == "own" {
		fmt.Println(Judge(Mark()))
	} else if mark != "" {
		fmt.Println(Judge(mark))
	} else {
		os.Exit(m.Run())
	}
}

// A process that /proc does not show may run.
func TestJudgeHidden(t *testing.T) {
	if os.Geteuid() != 0 {
		skipOrFail(t, "mounting /proc needs root here")
	}
	// Where an ordinary user may run it.
	dir, err := os.MkdirTemp("", "toll-owner-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	bin := filepath.Join(dir, "judge")
	out, err := exec.Command("sh", "-c", "chmod 755 "+dir+" && cp /proc/"+strconv.Itoa(
		os.Getpid())+"/exe "+bin+" && chmod 755 "+bin).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const asUser = "setpriv --reuid 65534 --regid 65534 --clear-groups "
	for _, c := range []struct {
		name, mark, command string
		want                State
	}{
		{"seen", Mark(), "exec " + asUser, Alive},
		{"hidepid", Mark(), "mount -t proc -o hidepid=2 proc /proc && exec " + asUser, Unclear},
		{"hidepid-gone", with(pid, "999999999"),
			"mount -t proc -o hidepid=2 proc /proc && exec " + asUser, Gone},
		{"no-proc", Mark(), "mount -t tmpfs none /proc && exec ", Unclear},
		{"pid-namespace", Mark(), "exec unshare -pf --mount-proc ", Unclear},
		{"own-with-outer-proc", "own", "exec unshare -pf ", Unclear},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("unshare", "-m", "sh", "-c", c.command+bin)
			cmd.Env = append(os.Environ(), judgeEnv+"="+c.mark)
			out, err := cmd.Output()
			if got := strings.TrimSpace(string(out)); err != nil || got != fmt.Sprint(c.want) {
				t.Errorf("judged %q, %v, want %d", got, err, c.want)
			}
		})
	}
}

func skipOrFail(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}
