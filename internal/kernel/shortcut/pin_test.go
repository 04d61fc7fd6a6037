package shortcut

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

const pinEnv = "BRIDGETOLL_TEST_PINS"

func TestPins(t *testing.T) {
	if os.Getenv(pinEnv) != "" {
		t.Skip("it is what runs this")
	}
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "BPF needs root")
	}
	for name, prepare := range map[string]string{
		"own":       "true",
		"machine's": "mount -t bpf bpf /sys/fs/bpf",
	} {
		cmd := exec.Command(
			"sh", "-ec",
			"mount -t tmpfs tmpfs /run; umount /sys/fs/bpf "+
				"2>/dev/null || true; "+prepare+`; exec "$0" -test.run ^TestPinned`,
			"/proc/self/exe")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWNS, Unshareflags: syscall.CLONE_NEWNS}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Args[3] = self
		cmd.Env = append(os.Environ(), pinEnv+"="+name)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func pinned(t *testing.T) *Table {
	t.Helper()
	if os.Getenv(pinEnv) == "" {
		t.Skip("TestPins runs it")
	}
	x, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Pin(); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	o, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o
}

func TestPinnedTable(t *testing.T) {
	o := pinned(t)
	err := errors.Join(o.Renew(time.Minute), o.Choose([]uint16{80, 443}), o.Choose([]uint16{443}))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := o.State(); err != nil || !s.On || s.Lease == 0 || s.Netns == 0 {
		t.Error(s, err)
	}
	if p, all, err := o.Chosen(); err != nil || all || len(p) != 1 || p[0] != 443 {
		t.Error(p, all, err)
	}
	if err := o.Choose(nil); err != nil {
		t.Fatal(err)
	}
	if p, all, err := o.Chosen(); err != nil || !all || len(p) != 0 {
		t.Error(p, all, err)
	}
	files, err := os.ReadDir(pins())
	if err != nil || len(files) != 14 {
		t.Error(len(files), err)
	}
	for _, name := range append(files, nil) {
		file := pins()
		if name != nil {
			file = filepath.Join(file, name.Name())
		}
		if st, err := os.Stat(file); err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", file, st.Mode(), err)
		}
	}
	if !o.Current() {
		t.Error("it is not the pinned one")
	}
	if err := Unpin(); err != nil {
		t.Fatal(err)
	}
	if o.Current() || Pinned() {
		t.Error("it is still there")
	}
	if s, err := o.State(); err != nil || s.On {
		t.Error("it still works", s, err)
	}
	for _, left := range []string{ownRun, machinesFS + "/" + pinName} {
		if _, err := os.Stat(left); !os.IsNotExist(err) {
			t.Errorf("%s: %v", left, err)
		}
	}
	if err := Unpin(); err != nil {
		t.Error("a second time:", err)
	}
}

func TestPinnedIncomplete(t *testing.T) {
	o := pinned(t)
	for _, missing := range []string{complete, "shortcuts", "link0"} {
		if err := os.Remove(filepath.Join(pins(), missing)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(); !errors.Is(err, ErrNone) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
	if s, err := o.State(); err != nil || s.On || s.Lease != 0 {
		t.Error(s, err)
	}
	if err := Unpin(); err != nil || Pinned() {
		t.Error(err)
	}
}

func TestPinnedByOthers(t *testing.T) {
	pinned(t)
	if err := os.Chmod(pins(), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(); err == nil || errors.Is(err, ErrNone) {
		t.Error("others may write:", err)
	}
	if err := Unpin(); err == nil || !Pinned() {
		t.Error("others may write:", err)
	}
	if err := errors.Join(os.Chmod(pins(), 0o700), os.Chown(pins(), 65534, -1)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(); err == nil || errors.Is(err, ErrNone) {
		t.Error("another's:", err)
	}
	if err := os.Chown(pins(), 0, -1); err != nil {
		t.Fatal(err)
	}
	if err := Unpin(); err != nil || Pinned() {
		t.Error(err)
	}
}
