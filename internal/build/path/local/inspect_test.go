package local

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/build/path"
)

func skipUnlessCI(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// here is the test's own network namespace.
type here struct{ Space }

func (here) Do(f func() error) error { return f() }

// A program that the control group of an end has in mid-run changes the path, whatever it does.
func TestInspectNoticesProgramsOfControlGroups(t *testing.T) {
	dir, err := os.MkdirTemp(cgroups(t), "toll-test-")
	if err != nil {
		skipUnlessCI(t, "%v", err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := exec.Command("sleep", "1000")
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd()), Pdeathsig: unix.SIGKILL}
	if err := c.Start(); err != nil {
		skipUnlessCI(t, "%v", err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SockOps, AttachType: ebpf.AttachCGroupSockOps, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()}})
	if err != nil {
		skipUnlessCI(t, "BPF programs cannot be loaded here: %v", err)
	}
	defer p.Close()
	spots := []Inspected{{Space: here{}, Where: "server container", Devices: []string{}, PID: c.Process.Pid}}
	before, err := Inspect(spots)
	if err != nil {
		t.Fatal(err)
	}
	l, err := link.AttachCgroup(link.CgroupOptions{Path: dir, Attach: ebpf.AttachCGroupSockOps, Program: p})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	now, err := Inspect(spots)
	if err != nil {
		t.Fatal(err)
	}
	found := path.Differences(before, now)
	if len(found) != 1 || found[0].Where != "server container" || found[0].What != "BPF programs of its control group" ||
		!strings.Contains(found[0].Is, "sock_ops program ") {
		t.Errorf("%+v", found)
	}
}

// cgroups returns where control groups of version 2 are mounted.
func cgroups(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var st unix.Statfs_t
		if unix.Statfs(dir, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
			return dir
		}
	}
	skipUnlessCI(t, "control groups of version 2 are not mounted")
	return ""
}
