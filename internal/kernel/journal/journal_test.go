package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

const patience = 60 * time.Second

// making makes something else than toll's file or directory.
type making struct {
	make func(path string) error
	says string
	root bool // needs root
}

func each(t *testing.T, all map[string]making, f func(name, path, says string)) {
	t.Helper()
	for name, c := range all {
		if c.root && os.Geteuid() != 0 {
			continue
		}
		path := filepath.Join(t.TempDir(), name)
		if err := c.make(path); err != nil {
			t.Fatal(err)
		}
		f(name, path, c.says)
	}
}

func isForeign(t *testing.T, name string, err error, path, says string) {
	t.Helper()
	var foreign *ForeignError
	if !errors.As(err, &foreign) || foreign.Path != path || foreign.Hint() == "" {
		t.Errorf("%s: %v", name, err)
	} else if foreign.Why != says {
		t.Errorf("%s: %q, want %q", name, foreign.Why, says)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("%s is gone", name)
	}
}

func TestForeignDir(t *testing.T) {
	good := t.TempDir()
	dir := func(change func(string) error) func(string) error {
		return func(d string) error { return errors.Join(os.Mkdir(d, 0o700), change(d)) }
	}
	mode := func(m os.FileMode) func(string) error {
		return dir(func(d string) error { return os.Chmod(d, m) })
	}
	foreign := dir(func(d string) error { return os.Chown(d, 65534, 65534) })
	each(t, map[string]making{
		"link": {func(d string) error { return os.Symlink(good, d) },
			"it is not a directory, or a symbolic link", false},
		"file": {func(d string) error {
			return os.WriteFile(d, nil, 0o600)
		}, "it is not a directory, or a symbolic link", false},
		"shared":  {mode(0o777), "others may write to it (mode 777)", false},
		"sticky":  {mode(0o777 | os.ModeSticky), "others may write to it (mode 777)", false},
		"foreign": {foreign, "it belongs to user 65534 and not to 0, who runs toll", true},
	}, func(name, path, says string) {
		for _, dir := range []string{path, path + "/"} {
			dir = StatePath(dir)
			_, err := Open(dir)
			isForeign(t, name, err, path, says)
			isForeign(t, name, Load(dir, "n", new(int)), path, says)
			isForeign(t, name, Trusted(dir), path, says)
			if err := Save(dir, "n", 1, true); err == nil {
				t.Errorf("%s: written", name)
			}
			if _, err := LockDir(dir, 0); err == nil {
				t.Errorf("%s: locked", name)
			}
		}
	})
}

func TestDeniedDir(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may open every directory")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir)
	if hint.Of(err) == "" || !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
}

// A service may have no home that it can write to.
func TestDirThatCannotBeMade(t *testing.T) {
	hinted := func(what string, err error) {
		if got, want := hint.Of(err), "make the directory yours, or set XDG_STATE_HOME to a "+
			"directory of your own"; got != want {
			t.Errorf("%s: %v: %q, want %q", what, err, got, want)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Make(filepath.Join(file, "state"))
	hinted("below a file", err)
	_, err = Make("/sys/bridgetoll") // not even root may
	hinted("in /sys", err)

	mounted := make(chan error)
	go func() {
		runtime.LockOSThread() // ends with its mounts
		dir := t.TempDir()
		err := errors.Join(unix.Unshare(unix.CLONE_NEWNS|unix.CLONE_FS),
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("toll", dir, "tmpfs", unix.MS_RDONLY, "mode=700"))
		if err == nil {
			_, err := Make(filepath.Join(dir, "state"))
			hinted("read-only", err)
			d, err := Open(dir)
			if err == nil {
				_, _, failed := d.Create("x")
				hinted("a file, read-only", failed)
				hinted("a note, read-only", Save(dir, "x", 1, true))
			}
			mounted <- err
			return
		}
		mounted <- nil
	}()
	if err := <-mounted; err != nil {
		t.Error(err)
	}
}

func TestForeignFile(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good")
	write := func(mode os.FileMode) func(string) error {
		return func(f string) error {
			return errors.Join(os.WriteFile(f, []byte("1"), mode), os.Chmod(f, mode))
		}
	}
	foreign := func(f string) error {
		return errors.Join(write(0o600)(f), os.Chown(f, 65534, 65534))
	}
	zero := func(f string) error { return unix.Mknod(f, unix.S_IFCHR|0o600, 1<<8|5) }
	nowhere := func(f string) error { return os.Symlink("/nonexistent", f) }
	if err := write(0o600)(good); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	each(t, map[string]making{
		"fifo": {func(f string) error { return unix.Mkfifo(f, 0o600) },
			"it is a named pipe, not a regular file", false},
		"link": {func(f string) error { return os.Symlink(good, f) },
			"it is a symbolic link, not a regular file", false},
		"nowhere": {nowhere, "it is a symbolic link, not a regular file", false},
		"directory": {func(f string) error { return os.Mkdir(f, 0o700) },
			"it is a directory, not a regular file", false},
		"device":   {zero, "it is a device, not a regular file", true},
		"foreign":  {foreign, "it belongs to user 65534 and not to 0, who runs toll", true},
		"writable": {write(0o622), "others may write to it (mode 622)", false},
	}, func(name, path, says string) {
		d, err := Open(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		_, _, err = d.Open(name)
		isForeign(t, name, err, path, says)
		isForeign(t, name, Load(filepath.Dir(path), name, new(int)), path, says)
		if _, _, err := d.Create(name); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: created: %v", name, err)
		}
	})
	if took := time.Since(began); took > patience {
		t.Errorf("it took %s", took)
	}
}

func TestCreate(t *testing.T) {
	d, err := Make(filepath.Join(t.TempDir(), "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f, locked, err := d.Create("x.y")
	if err != nil || !locked {
		t.Fatal(locked, err)
	}
	other, st, err := d.Open("x.y")
	if err != nil || st.Mode&0o777 != 0o600 {
		t.Fatalf("%o, %v", st.Mode, err)
	}
	defer other.Close()
	if _, err := Lock(other); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(other); err != nil {
		t.Error(err)
	}
	if names, err := d.Names(".y"); err != nil || strings.Join(names, ",") != "x.y" {
		t.Errorf("%q, %v", names, err)
	}
	if err := errors.Join(d.Remove("x.y"), d.Remove("x.y")); err != nil {
		t.Error(err)
	}
	if _, _, err := d.Open("x.y"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestNote(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	var got []int
	if err := Load(dir, "n", &got); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := Save(dir, "n", []int{1}, false); err != nil {
		t.Fatal(err)
	}
	if err := Save(dir, "n", []int{2}, false); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	err := errors.Join(Save(dir, "n", []int{3}, true), Load(dir, "n", &got))
	if err != nil || len(got) != 1 || got[0] != 3 {
		t.Errorf("%v, %v", got, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	for _, name := range []string{"n", "n.of-a-killed-process"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`[1`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Load(dir, "n", &got); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that was cut short: %v", err)
	}
	if err := errors.Join(Drop(dir, "n"), Drop(dir, "n"), RemoveDir(dir), Drop(dir, "n")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
}

// A directory that another toll has locked, or that is not empty, stays.
func TestLockDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := RemoveDir(dir); err != nil {
		t.Errorf("there is none: %v", err)
	}
	for range 2 {
		h, err := LockDir(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := LockDir(dir, 0); !errors.Is(err, ErrLocked) {
			t.Errorf("locked twice: %v", err)
		}
		if err := RemoveDir(dir); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("removed although locked: %v", err)
		}
		got := make(chan error, 1)
		go func() {
			h, err := LockDir(dir, patience)
			if err == nil {
				err = h.Close()
			}
			got <- err
		}()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if err := <-got; err != nil {
			t.Errorf("the one that waited: %v", err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an empty one is left: %v", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "fast"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(RemoveDir(dir), os.Remove(filepath.Join(dir, "fast"))); err != nil {
		t.Error(err)
	}
}
