// Package journal keeps the files from which toll clean learns what to remove or restore. Each is
// written before the change.
//
// toll clean acts on these files, often as root. So a directory and its files must belong to this
// user, without write access for others, and symbolic links are not followed. Other files are left
// alone and named in an error.
//
//   - A run's journal is created in StatePath, and locked while its process lives: the kernel
//     releases the lock however the process ends.
//   - A note about the whole machine is saved atomically in Machine.
//
// What a toll makes is marked with the process that made it, so that another toll can recognize
// what an ended one left behind. Processes on other machines may have the same PID, and all
// managers of a swarm see its services, so a mark also names the machine and its boot.
package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Machine is the directory for the whole machine. Only root can write to it.
const Machine = "/run/bridgetoll"

// StatePath returns the directory of runs' journals: given (in tests) or the user's state
// directory.
func StatePath(given string) string {
	if given != "" {
		return filepath.Clean(given) // a trailing slash would follow a symbolic link
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "bridgetoll")
	}
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return Machine // a service has no home
	}
	return filepath.Join(home, ".local", "state", "bridgetoll")
}

const (
	dirMode  = 0o700
	fileMode = 0o600
)

// ForeignError reports why toll does not trust a file or directory.
type ForeignError struct{ Path, Why string }

func (e *ForeignError) Error() string { return fmt.Sprintf("%q is left alone: %s", e.Path, e.Why) }

// Hint returns the remedy.
func (e *ForeignError) Hint() string {
	return "look at it; remove it if toll did not make it, " +
		"or set XDG_STATE_HOME to a directory of your own"
}

type deniedError struct{ error }

func (e *deniedError) Unwrap() error { return e.error }

// Hint returns the remedy.
func (e *deniedError) Hint() string {
	return "make the directory yours, or set XDG_STATE_HOME to a directory of your own"
}

// denied adds a hint to the error of a directory in which this user cannot write: another user's,
// as of a home directory that sudo kept, or one of a read-only file system.
func denied(err error) error {
	for _, no := range []error{unix.EACCES, unix.EPERM, unix.EROFS, unix.ENOTDIR} {
		if errors.Is(err, no) {
			return &deniedError{err}
		}
	}
	return err
}

// Dir is an open directory of journals.
type Dir struct{ f *os.File }

// Open opens a directory. The error is fs.ErrNotExist if it is missing.
func Open(path string) (*Dir, error) {
	f, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil, &ForeignError{path, "it is not a directory, or a symbolic link"}
	}
	if err != nil {
		return nil, denied(err)
	}
	if _, err := ours(f, unix.S_IFDIR); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Dir{f}, nil
}

// Make opens a directory. It makes the directory first if it does not exist.
func Make(path string) (d *Dir, err error) {
	for range 3 { // another toll may remove it while it is empty
		if err = os.MkdirAll(path, dirMode); err != nil {
			return nil, denied(err)
		}
		if d, err = Open(path); !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	return d, err
}

// Close closes the directory.
func (d *Dir) Close() error { return d.f.Close() }

// Names returns the directory's names that end with suffix.
func (d *Dir) Names(suffix string) (out []string, err error) {
	all, err := d.f.Readdirnames(-1)
	for _, name := range all {
		if strings.HasSuffix(name, suffix) {
			out = append(out, name)
		}
	}
	return out, err
}

func (d *Dir) path(name string) string { return filepath.Join(d.f.Name(), name) }

// Open opens a file for reading, without blocking on a pipe or a device.
func (d *Dir) Open(name string) (*os.File, unix.Stat_t, error) {
	var st unix.Stat_t
	// Opening a device may have effects.
	if err := unix.Fstatat(int(d.f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, st, &os.PathError{Op: "stat", Path: d.path(name), Err: err}
	}
	if err := check(d.path(name), &st, unix.S_IFREG); err != nil {
		return nil, st, err
	}
	f, err := d.open(name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, st, err
	}
	if st, err = ours(f, unix.S_IFREG); err != nil {
		return nil, st, errors.Join(err, f.Close())
	}
	return f, st, nil
}

func (d *Dir) open(name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(d.f.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, fileMode)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: d.path(name), Err: err}
	}
	return os.NewFile(uintptr(fd), d.path(name)), nil
}

// Create creates a file for appending and locks it. locked is false if the file system has no
// locks.
func (d *Dir) Create(name string) (f *os.File, locked bool, err error) {
	if f, err = d.open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_APPEND); err != nil {
		return nil, false, denied(err)
	}
	if locked, err = lockNew(f); err != nil {
		return nil, false, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return f, locked, nil
}

// Remove removes a file. It returns nil if the file does not exist.
func (d *Dir) Remove(name string) error {
	if err := unix.Unlinkat(int(d.f.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "remove", Path: d.path(name), Err: err}
	}
	return nil
}

// Trusted returns an error unless path is a directory of this user's, without write access for
// others.
func Trusted(path string) error {
	d, err := Open(path)
	if err != nil {
		return err
	}
	return d.Close()
}

func ours(f *os.File, kind uint32) (st unix.Stat_t, err error) {
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return st, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return st, check(f.Name(), &st, kind)
}

var kinds = map[uint32]string{unix.S_IFDIR: "directory", unix.S_IFREG: "regular file",
	unix.S_IFLNK: "symbolic link", unix.S_IFIFO: "named pipe", unix.S_IFSOCK: "socket",
	unix.S_IFCHR: "device", unix.S_IFBLK: "device"}

func check(path string, st *unix.Stat_t, kind uint32) error {
	const othersWrite = 0o022
	switch is := st.Mode & unix.S_IFMT; {
	case is != kind:
		return &ForeignError{path, fmt.Sprintf("it is a %s, not a %s", kinds[is], kinds[kind])}
	case int(st.Uid) != os.Geteuid():
		return &ForeignError{path, fmt.Sprintf("it belongs to user %d and not to %d, who runs toll",
			st.Uid, os.Geteuid())}
	case st.Mode&othersWrite != 0:
		return &ForeignError{path, fmt.Sprintf("others may write to it (mode %03o)", st.Mode&0o777)}
	}
	return nil
}

// ErrLocked means that another process has the lock.
var ErrLocked = errors.New("it is locked")

// Lock locks a file without waiting. It returns ErrLocked if another process holds the lock. can is
// false if the file system has no locks.
func Lock(f *os.File) (can bool, err error) {
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return true, ErrLocked
	}
	return false, nil
}

// lockNew locks a new file. A toll clean may hold the lock for a moment while it reads the file.
func lockNew(f *os.File) (can bool, err error) {
	can, err = waitFor(5*time.Second, func() (bool, error) { return Lock(f) })
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(int(f.Fd()), &st)
	}
	if err == nil && st.Nlink == 0 {
		err = errors.New("it was removed")
	}
	return can, err
}

func waitFor[T any](patience time.Duration, try func() (T, error)) (T, error) {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		x, err := try()
		if !errors.Is(err, ErrLocked) || time.Now().After(end) {
			return x, err
		}
	}
}
