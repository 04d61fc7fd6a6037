package journal

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// bytes
const maxNote = 16 << 20

// Load reads a note in JSON. The error is fs.ErrNotExist if it is missing.
func Load(dir, name string, into any) error {
	d, err := Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	f, _, err := d.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxNote))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return nil
}

// Save writes a note in JSON, atomically. If replace is false and a note exists, the error is
// fs.ErrExist.
func Save(dir, name string, v any, replace bool) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	for range 3 { // another toll may remove the directory while it is empty
		if err = save(dir, name, text, replace); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return err
}

func save(dir, name string, text []byte, replace bool) (err error) {
	d, err := Make(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	temporary := name + "." + rand.Text()
	f, err := d.open(temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return denied(err)
	}
	defer func() { err = errors.Join(err, d.Remove(temporary)) }()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	at := int(d.f.Fd())
	if replace {
		err = unix.Renameat(at, temporary, at, name)
	} else {
		err = unix.Linkat(at, temporary, at, name, 0)
	}
	if err != nil {
		return &os.PathError{Op: "write", Path: d.path(name), Err: err}
	}
	return nil
}

// Drop removes a note, and temporary files that killed processes left. It returns nil if there is
// no note.
func Drop(dir, name string) error {
	d, err := Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	all, err := d.Names("")
	errs := []error{err}
	for _, x := range all {
		if x == name || strings.HasPrefix(x, name+".") {
			errs = append(errs, d.Remove(x))
		}
	}
	return errors.Join(errs...)
}

// Hold is a locked directory.
type Hold struct{ d *Dir }

// LockDir makes and locks a directory, so that only one toll at a time changes the things that its
// notes are about. It waits for at most patience, and then returns ErrLocked.
func LockDir(path string, patience time.Duration) (*Hold, error) {
	return waitFor(patience, func() (*Hold, error) {
		d, err := Make(path)
		if err != nil {
			return nil, err
		}
		return hold(d)
	})
}

// hold locks an open directory, and closes it after an error.
func hold(d *Dir) (*Hold, error) {
	_, err := Lock(d.f)
	if err == nil {
		locked, errLocked := d.f.Stat()
		now, errNow := os.Lstat(d.f.Name())
		if errLocked != nil || errNow != nil || !os.SameFile(locked, now) {
			err = ErrLocked // another toll had the lock and removed the directory
		}
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return &Hold{d}, nil
}

// Close removes the directory if it is empty, and releases the lock.
func (h *Hold) Close() error {
	err := os.Remove(h.d.f.Name())
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, h.d.Close())
}

// RemoveDir removes an empty directory. If another toll has locked it, that toll removes it.
func RemoveDir(path string) error {
	d, err := Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	h, err := hold(d)
	if errors.Is(err, ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	return h.Close()
}
