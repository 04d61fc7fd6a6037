// Package bpftest loads BPF programs that only return a number, and starts processes in control
// groups to attach them to; for tests only.
package bpftest

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// Program loads a program that returns result until the test ends. The test is skipped where
// programs cannot be loaded.
func Program(t *testing.T, name string, kind ebpf.ProgramType, at ebpf.AttachType,
	result int32) *ebpf.Program {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: name, Type: kind, AttachType: at, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, result), asm.Return()}})
	if err != nil {
		pathtest.SkipOrFail(t, "BPF programs cannot be loaded here: %v", err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// Grouped starts a process in a control group of its own (version 2), and returns the group's
// directory. Both end with the test.
func Grouped(t *testing.T) (pid int, dir string) {
	t.Helper()
	dir, err := os.MkdirTemp(cgroups(t), "toll-test-")
	if err != nil {
		pathtest.SkipOrFail(t, "%v", err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := exec.Command("sleep", "1000")
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd()),
		Pdeathsig: unix.SIGKILL}
	if err := c.Start(); err != nil {
		pathtest.SkipOrFail(t, "%v", err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c.Process.Pid, dir
}

func cgroups(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var st unix.Statfs_t
		if unix.Statfs(dir, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
			return dir
		}
	}
	pathtest.SkipOrFail(t, "control groups of version 2 are not mounted")
	return ""
}
