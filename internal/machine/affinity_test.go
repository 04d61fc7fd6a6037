package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

func sleeper(t *testing.T) int {
	t.Helper()
	c := exec.Command("sleep", "3600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c.Process.Pid
}

func TestSetAffinity(t *testing.T) {
	pid := sleeper(t)
	own, err := AffinityOf(pid)
	if err != nil || len(own) == 0 {
		t.Fatal(own, err)
	}
	last := own[len(own)-1:]
	if err := SetAffinity(pid, last); err != nil {
		t.Fatal(err)
	}
	if got, err := AffinityOf(pid); err != nil || !slices.Equal(got, last) {
		t.Errorf("moved to %v, %v, want %v", got, err, last)
	}
	if err := SetAffinity(pid, own); err != nil {
		t.Fatal(err)
	}
	if got, _ := AffinityOf(pid); !slices.Equal(got, own) {
		t.Errorf("put back to %v, want %v", got, own)
	}
}

func TestSetAffinityOfThreads(t *testing.T) {
	all, err := AffinityOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := SetAffinity(os.Getpid(), all); err != nil {
			t.Error(err)
		}
	}()
	if err := SetAffinity(os.Getpid(), all[:1]); err != nil {
		t.Fatal(err)
	}
	tasks, err := filepath.Glob("/proc/self/task/*")
	if err != nil || len(tasks) < 2 {
		t.Fatalf("threads %v, %v: a Go process has several", tasks, err)
	}
	for _, task := range tasks {
		tid, _ := strconv.Atoi(filepath.Base(task))
		if got, err := AffinityOf(tid); err == nil && !slices.Equal(got, all[:1]) {
			t.Errorf("thread %d may use %v", tid, got)
		}
	}
}

func TestAffinityOfNobody(t *testing.T) {
	const none = 1 << 30
	if _, err := AffinityOf(none); err == nil {
		t.Error("a process that does not exist has CPUs")
	}
	if err := SetAffinity(none, []int{0}); err == nil {
		t.Error("a process that does not exist was moved")
	}
}
