package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const forceFlag = "force"

// runNumber matches the names of kept runs.
var runNumber = regexp.MustCompile(`^@\d+$`)

// fresh refuses files to write that are there already, unless --force was given, and names of kept
// runs. What is no regular file, such as a pipe, is written as ever.
func (o *outputFlags) fresh(others []place) error {
	for _, p := range append([]place{{outputFlag, o.file}}, others...) {
		if runNumber.MatchString(p.name) && (p.flag == outputFlag || p.flag == saveFlag) {
			return usage(fmt.Errorf("--%s %s: this names a kept run, not a file", p.flag, p.name), "give --"+p.flag+" another path, such as run.jsonl")
		}
		if written := p.flag == outputFlag || p.flag == saveFlag; !written || p.name == "" || o.force || direct(p.name) {
			continue
		}
		if _, err := os.Stat(p.name); err == nil {
			return usage(exists(p), overwriteHint(p))
		}
	}
	return nil
}

func exists(p place) error { return fmt.Errorf("--%s %s: the file exists", p.flag, p.name) }

func overwriteHint(p place) string {
	return fmt.Sprintf("--%s overwrites it; or give --%s another path", forceFlag, p.flag)
}

// direct reports whether what is written goes straight to where the name leads, and destroys
// nothing: a pipe, a device, a stream that is open already.
func direct(name string) bool {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return true
	}
	for to := range links(name) {
		if name = to; strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/proc/") {
			return true
		}
	}
	return isFile(os.Stdout, name) || isFile(os.Stderr, name)
}

// create opens a file that is written as the run goes. It is new, or emptied with force. The
// standard output, under whatever name, is not opened a second time: what others write there
// would be overwritten.
func create(name string, stdout io.Writer, force bool) (f *os.File, closeFile func() error, err error) {
	if out, is := stdout.(*os.File); is && isFile(out, name) {
		return out, func() error { return nil }, nil
	}
	const usual = 0o666 // less the umask
	switch {
	case direct(name): // what a stream's file has already stays
		f, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND, usual)
	case force:
		f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, usual)
	default: // O_EXCL does not follow links
		f, err = os.OpenFile(resolved(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, usual)
	}
	if err != nil {
		return nil, nil, err
	}
	return f, f.Close, nil
}

// beside makes a file next to another one, to become that one.
func beside(name string) (*os.File, error) {
	const tries, usual = 100, 0o666 // os.CreateTemp's are for their owner only
	var f *os.File
	err := fs.ErrExist
	for i := 0; i < tries && errors.Is(err, fs.ErrExist); i++ {
		f, err = os.OpenFile(filepath.Join(filepath.Dir(name), fmt.Sprintf(".toll-%d-%d", os.Getpid(), i)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, usual)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: errors.Unwrap(err)}
	}
	return f, nil
}

// writable reports why no file of that name can be written. It leaves nothing.
func writable(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	switch {
	case err == nil:
		return f.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err = beside(resolved(name))
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: errors.Unwrap(err)}
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// replace makes data the file's content at once: who reads it meanwhile sees the old content or
// the new. A file that appeared since it was looked for is kept without force, and the hint says
// where the data is.
func replace(name string, data []byte, force bool) error {
	name = resolved(name)
	old, missing := os.Stat(name)
	f, err := beside(name)
	if err != nil {
		if force && missing == nil { // the directory is read-only, the file is not
			return os.WriteFile(name, data, old.Mode())
		}
		return err
	}
	if missing == nil {
		_ = f.Chmod(old.Mode().Perm()) // as far as the file system has modes
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
		return &failure{exitFailed, fmt.Errorf("--%s %s: the file appeared in the meantime", outputFlag, name), "what was to be written is in " + f.Name()}
	case force && missing == nil: // what is mounted at a name cannot be replaced
		err = os.WriteFile(name, data, old.Mode())
	}
	return errors.Join(err, os.Remove(f.Name()))
}

// move renames a file; one that has the name already is replaced with force only.
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
	if _, err := os.Lstat(to); err == nil { // a file system without links
		return fs.ErrExist
	}
	return os.Rename(from, to)
}
