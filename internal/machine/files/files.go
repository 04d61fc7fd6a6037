// Package files writes files that users name. Without force it overwrites no existing file, and a
// file that another toll is writing it leaves alone (Create).
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Direct reports whether name is a pipe, a device or an open stream, so that writing replaces
// nothing.
func Direct(name string) bool {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return true
	}
	for to := range links(name) {
		if name = to; strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/proc/") {
			return true
		}
	}
	return Is(os.Stdout, name) || Is(os.Stderr, name)
}

// ErrTaken means that another toll is writing to a file.
var ErrTaken = errors.New("another toll is writing to it")

// Create opens a file to write, and locks it until it is closed, as far as the file system has
// locks: it returns ErrTaken for a file that another toll has open. Without force the file must not
// exist. What is written is in the file at once, so a reader may see a part of it.
func Create(name string, force bool) (*os.File, error) {
	const usual = 0o666 // before the umask
	switch {
	case Direct(name): // keeps the content of an open stream
		return os.OpenFile(name, os.O_WRONLY|os.O_APPEND, usual)
	case force:
		return emptied(taken(os.OpenFile(name, os.O_WRONLY|os.O_CREATE, usual)))
	}
	// O_EXCL does not follow links.
	return taken(os.OpenFile(Resolved(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, usual))
}

// taken locks an open file, and closes it if another toll has the lock. journal.Lock does the same
// for files of toll's own, in a group that machine may not import.
func taken(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	if errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
		return nil, errors.Join(&os.PathError{Op: "open", Path: f.Name(), Err: ErrTaken}, f.Close())
	}
	return f, nil
}

// emptied truncates an open file, and closes it if that fails.
func emptied(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// beside creates a file in the directory of name, so that it can be renamed to name.
func beside(name string) (*os.File, error) {
	const tries, usual = 100, 0o666 // os.CreateTemp makes files that only their owner can read
	var f *os.File
	err := fs.ErrExist
	for i := 0; i < tries && errors.Is(err, fs.ErrExist); i++ {
		f, err = os.OpenFile(filepath.Join(filepath.Dir(name),
			fmt.Sprintf(".toll-%d-%d", os.Getpid(), i)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, usual)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: errors.Unwrap(err)}
	}
	return f, nil
}

// Writable returns an error if a file of that name cannot be written. It leaves no file behind.
func Writable(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	switch {
	case err == nil:
		return f.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err = beside(Resolved(name))
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: errors.Unwrap(err)}
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// AppearedError means that a file has appeared that would have been replaced. Kept has the data.
type AppearedError struct{ Name, Kept string }

func (e *AppearedError) Error() string {
	return "another program created " + e.Name + " meanwhile"
}

// Hint returns where the data are.
func (e *AppearedError) Hint() string { return "the output is in " + e.Kept }

// Replace writes a file atomically, or in place where it cannot be replaced: in a directory that is
// read-only, and as a mount point. Without force it returns an *AppearedError if the file exists.
func Replace(name string, data []byte, force bool) error {
	name = Resolved(name)
	old, missing := os.Stat(name)
	f, err := beside(name)
	if err != nil {
		if force && missing == nil { // the directory is read-only, the file is not
			return os.WriteFile(name, data, old.Mode())
		}
		return err
	}
	if missing == nil {
		_ = f.Chmod(old.Mode().Perm()) // as far as the file system supports it
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	err = move(f.Name(), name, force)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return &AppearedError{name, f.Name()}
	case force && missing == nil: // a mount point cannot be replaced
		err = os.WriteFile(name, data, old.Mode())
	}
	return errors.Join(err, os.Remove(f.Name()))
}

func move(from, to string, force bool) error {
	if force {
		return os.Rename(from, to)
	}
	err := os.Link(from, to)
	switch {
	case err == nil:
		return os.Remove(from)
	case errors.Is(err, fs.ErrExist):
		return err
	}
	if _, err := os.Lstat(to); err == nil { // the file system has no hard links
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// Same reports whether both names refer, or would refer, to the same regular file. As other, "-" is
// the standard input.
func Same(output, other string) bool {
	x, errX := os.Stat(output)
	y, errY := stat(other)
	if errX == nil && errY == nil {
		return x.Mode().IsRegular() && os.SameFile(x, y)
	}
	return os.IsNotExist(errX) && os.IsNotExist(errY) && Resolved(output) == Resolved(other)
}

// stat returns what os.Stat does; "-" is the standard input.
func stat(name string) (os.FileInfo, error) {
	if name == "-" {
		return os.Stdin.Stat()
	}
	return os.Stat(name)
}

// Is reports whether name is the name of an open file.
func Is(f *os.File, name string) bool {
	have, errHave := f.Stat()
	want, errWant := os.Stat(name)
	return errHave == nil && errWant == nil && os.SameFile(have, want)
}

const maxLinks = 40

// links yields the name, then each target of its symbolic links.
func links(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for range maxLinks {
			if !yield(name) {
				return
			}
			to, err := os.Readlink(name)
			if err != nil {
				return
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(name), to)
			}
			name = to
		}
		yield(name)
	}
}

// Resolved returns the name without symbolic links, also in its directory. The file need not exist.
func Resolved(name string) string {
	for to := range links(name) {
		name = to
	}
	dir, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return name
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return filepath.Join(dir, filepath.Base(name))
}
