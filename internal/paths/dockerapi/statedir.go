package dockerapi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// stateDir is the open directory of journals. Clean acts on journals, so the directory and its
// files must belong to this user, and others must not be able to write there.
type stateDir struct{ *os.File }

// StatePath returns the directory of all journals, also of swarms and clusters: the user's state
// directory, or given if that is not "" (tests).
func StatePath(given string) string {
	if given != "" {
		return filepath.Clean(given) // with a trailing slash a link would be followed
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "bridgetoll")
	}
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return "/run/bridgetoll" // a service has no home
	}
	return filepath.Join(home, ".local", "state", "bridgetoll")
}

func openStateDir(path string) (stateDir, error) {
	f, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return stateDir{}, &notOurs{path, "it is not a directory, or a symbolic link"}
	}
	if err != nil {
		return stateDir{}, err
	}
	if _, err := ours(f, unix.S_IFDIR); err != nil {
		return stateDir{}, errors.Join(err, f.Close())
	}
	return stateDir{f}, nil
}

// notOurs reports why a file or directory is not trusted.
type notOurs struct{ path, why string }

func (e *notOurs) Error() string { return fmt.Sprintf("%q is left alone: %s", e.path, e.why) }

// Hint returns the remedy.
func (e *notOurs) Hint() string {
	return "look at it; remove it if toll did not make it, or set XDG_STATE_HOME to a directory of your own"
}

// open opens a journal of this user's. It does not block on a pipe or a device.
func (d stateDir) open(name string) (*os.File, unix.Stat_t, error) {
	path := filepath.Join(d.Name(), name)
	var st unix.Stat_t
	// Opening a device may have effects.
	if err := unix.Fstatat(int(d.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, st, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if err := check(path, &st, unix.S_IFREG); err != nil {
		return nil, st, err
	}
	fd, err := unix.Openat(int(d.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, st, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	if st, err = ours(f, unix.S_IFREG); err != nil {
		return nil, st, errors.Join(err, f.Close())
	}
	return f, st, nil
}

// create creates a journal.
func (d stateDir) create(name string) (*os.File, error) {
	const mode = 0o600
	path := filepath.Join(d.Name(), name)
	fd, err := unix.Openat(int(d.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_APPEND|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func (d stateDir) remove(name string) error {
	if err := unix.Unlinkat(int(d.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "remove", Path: filepath.Join(d.Name(), name), Err: err}
	}
	return nil
}

func ours(f *os.File, kind uint32) (st unix.Stat_t, err error) {
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return st, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return st, check(f.Name(), &st, kind)
}

var kinds = map[uint32]string{unix.S_IFDIR: "directory", unix.S_IFREG: "regular file", unix.S_IFLNK: "symbolic link", unix.S_IFIFO: "named pipe",
	unix.S_IFSOCK: "socket", unix.S_IFCHR: "device", unix.S_IFBLK: "device"}

// check returns an error for another kind or owner, or if others may write.
func check(path string, st *unix.Stat_t, kind uint32) error {
	const othersWrite = 0o022
	switch is := st.Mode & unix.S_IFMT; {
	case is != kind:
		return &notOurs{path, fmt.Sprintf("it is a %s, not a %s", kinds[is], kinds[kind])}
	case int(st.Uid) != os.Geteuid():
		return &notOurs{path, fmt.Sprintf("it belongs to user %d and not to %d, who runs toll", st.Uid, os.Geteuid())}
	case st.Mode&othersWrite != 0 && (kind != unix.S_IFDIR || st.Mode&unix.S_ISVTX == 0):
		return &notOurs{path, fmt.Sprintf("others may write to it (mode %03o)", st.Mode&0o777)}
	}
	return nil
}

// errLocked means that another process has the lock.
var errLocked = errors.New("it is locked")

// lock takes the lock of a journal, which its run holds while it lives: the kernel releases it
// however the process ends, and every process can see it. can is false if the file system has no
// locks.
func lock(f *os.File) (can bool, err error) {
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return true, errLocked
	}
	return false, nil
}

// lockOwn is lock for the run whose journal it is. A toll clean may be looking at the file.
func lockOwn(f *os.File) (can bool, err error) {
	const (
		again  = 5 * time.Millisecond
		latest = 5 * time.Second
	)
	for began := time.Now(); ; time.Sleep(again) {
		can, err = lock(f)
		if err == nil || time.Since(began) > latest {
			break
		}
	}
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(int(f.Fd()), &st)
	}
	if err == nil && st.Nlink == 0 {
		err = errors.New("it was removed")
	}
	return can, err
}
