package netns

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const patience = 30 * time.Second

func opened(t *testing.T, ns *NS, err error) *NS {
	t.Helper()
	if errors.Is(err, unix.EPERM) && os.Getenv("CI") != "true" {
		t.Skip("network namespaces need root here")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return ns
}

func id(t *testing.T, ns *NS) string {
	t.Helper()
	var name string
	err := ns.Do(func() (err error) {
		name, err = os.Readlink("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestNew(t *testing.T) {
	before, err := ID(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	made, err := New()
	ns := opened(t, made, err)
	if id(t, ns) == before {
		t.Errorf("%s is the machine's", before)
	}
	err = ns.Do(func() error {
		all, err := net.Interfaces()
		if len(all) != 1 || all[0].Name != "lo" || all[0].Flags&net.FlagUp != 0 {
			t.Errorf("devices %+v", all)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if after, err := ID(os.Getpid()); err != nil || after != before {
		t.Errorf("the process is in %s, %v; it was in %s", after, err, before)
	}
	here, err := Here()
	if got := id(t, opened(t, here, err)); got != before {
		t.Errorf("here is %s, not %s", got, before)
	}
}

func TestJoin(t *testing.T) {
	made, err := New()
	ns := opened(t, made, err)
	tid, err := ns.TID()
	if err != nil {
		t.Fatal(err)
	}
	joined, err := Join(fmt.Sprintf("/proc/self/task/%d/ns/net", tid))
	if got, want := id(t, opened(t, joined, err)), id(t, ns); got != want {
		t.Errorf("joined %s, not %s", got, want)
	}
	if _, err := Join("/proc/self/ns/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe") // nobody writes into it
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(pipe); err == nil {
		t.Error("a pipe is no network namespace, and no error")
	}
}

func TestDo(t *testing.T) {
	ns, err := Here()
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.Do(func() error { return os.ErrInvalid }); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("%v", err)
	}
	for range 2 {
		if err := ns.Close(); err != nil {
			t.Error(err)
		}
	}
	ran := false
	if err := ns.Do(func() error { ran = true; return nil }); !errors.Is(err, errClosed) || ran {
		t.Errorf("in a closed namespace: %v, it ran: %t", err, ran)
	}
}

func TestStart(t *testing.T) {
	made, err := New()
	ns := opened(t, made, err)
	cmd := exec.Command("sleep", "1h")
	if err := ns.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if got, err := ID(cmd.Process.Pid); err != nil || got != id(t, ns) {
		t.Errorf("the process is in %s, %v; its namespace is %s", got, err, id(t, ns))
	}
	err = Visit(cmd.Process.Pid, func() error {
		got, err := os.Readlink("/proc/thread-self/ns/net")
		if want := id(t, ns); got != want {
			t.Errorf("visited %s, not %s", got, want)
		}
		return errors.Join(err, os.ErrInvalid)
	})
	if !errors.Is(err, os.ErrInvalid) {
		t.Errorf("the visit returns %v", err)
	}
	if err := ns.Close(); err != nil {
		t.Error(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	testwait.Until(t, patience, "the process was killed", func() bool { return len(ended) == 1 })
	<-ended
	if status := cmd.ProcessState.Sys().(interface{ Signaled() bool }); !status.Signaled() {
		t.Errorf("it ended by itself: %v", cmd.ProcessState)
	}
	if err := Visit(cmd.Process.Pid, func() error { return nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a process that has ended: %v", err)
	}
}
