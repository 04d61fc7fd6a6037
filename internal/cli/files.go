package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
)

const forceFlag = "force"

var runNumber = regexp.MustCompile(`^@\d+$`)

// fresh returns an error if a file to write exists, or has the name of a kept run. Pipes and
// devices may exist.
func (o *outputFlags) fresh(others []place) error {
	for _, p := range append([]place{{outputFlag, o.file}}, others...) {
		if runNumber.MatchString(p.name) && (p.flag == outputFlag || p.flag == saveFlag) {
			return usage(fmt.Errorf("--%s %s: this names a kept run, not a file", p.flag, p.name),
				"give --"+p.flag+" another path, such as run.jsonl")
		}
		if written := p.flag == outputFlag || p.flag == saveFlag; !written || p.name == "" ||
			o.force || direct(p.name) {
			continue
		}
		if _, err := os.Stat(p.name); err == nil {
			return usage(exists(p), overwriteHint(p))
		}
	}
	return nil
}

// openInput opens a file to read. While a named pipe has no writer, it prints that it waits.
func openInput(e env, name string) (*os.File, error) {
	if info, err := os.Stat(name); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		const patience = time.Second
		waiting := time.AfterFunc(patience, func() {
			say(e.stderr, "toll: waiting for a program that writes to "+name+", a named pipe")
		})
		defer waiting.Stop()
	}
	return os.Open(name)
}

// input opens a file to read, or returns the standard input for "-".
func input(e env, name string, stdin io.Reader) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(stdin), nil
	}
	return openInput(e, name)
}

func exists(p place) error { return fmt.Errorf("--%s %s: the file exists", p.flag, p.name) }

func overwriteHint(p place) string {
	return fmt.Sprintf("--%s overwrites it; or give --%s another path", forceFlag, p.flag)
}

// direct reports whether name is a pipe, a device or an open stream, so that writing replaces
// nothing.
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

var errTaken = errors.New("another toll is writing to it")

// create opens a file to write. If it is the standard output under another name, create returns
// that, because two writers would overwrite each other. For the same reason it returns errTaken for
// a file that another toll has open.
func create(name string, stdout io.Writer, force bool) (w io.Writer, closeFile func() error,
	err error) {
	if out, is := fileOf(stdout); is && isFile(out, name) {
		return stdout, func() error { return nil }, nil
	}
	const usual = 0o666 // before the umask
	var f *os.File
	switch {
	case direct(name): // keeps the content of an open stream
		f, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND, usual)
	case force:
		f, err = taken(os.OpenFile(name, os.O_WRONLY|os.O_CREATE, usual))
		if err == nil {
			err = f.Truncate(0)
		}
	default: // O_EXCL does not follow links
		f, err = taken(os.OpenFile(resolved(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, usual))
	}
	if err != nil {
		return nil, nil, err
	}
	return f, f.Close, nil
}

// taken locks an opened file until it is closed, as far as the file system has locks.
func taken(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	if _, err := journal.Lock(f); err != nil {
		return nil, errors.Join(&os.PathError{Op: "open", Path: f.Name(), Err: errTaken}, f.Close())
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

// writable returns an error if a file of that name cannot be written. It leaves no file behind.
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

// replace writes a file atomically. Without force it keeps a file that has appeared since the
// check, and the hint names the file that has the data.
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
		return &failure{exitFailed, fmt.Errorf(
			"--%s %s: another program created the file meanwhile", outputFlag, name),
			"the output is in " + f.Name()}
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

// place is a file that the command line names by a flag, or by an argument if flag is "".
type place struct{ flag, name string }

// apart returns an error if --output is also another file of the command, under any name.
// Terminals, pipes and the standard output may be both: writes go to them in turn.
func (o *outputFlags) apart(others []place) error {
	for _, p := range others {
		if o.file == "" || p.name == "" || !sameFile(o.file, p.name) ||
			p.flag == saveFlag && isFile(os.Stdout, o.file) {
			continue
		}
		what := "the results file " + p.name
		if p.flag != "" {
			what = "--" + p.flag + " " + p.name
		}
		return usage(fmt.Errorf("--output %s would destroy %s: it is the same file", o.file, what),
			"give --output another path")
	}
	return nil
}

// sameFile reports whether both names refer, or would refer, to the same regular file.
func sameFile(output, other string) bool {
	x, errX := os.Stat(output)
	y, errY := stat(other)
	if errX == nil && errY == nil {
		return x.Mode().IsRegular() && os.SameFile(x, y)
	}
	return os.IsNotExist(errX) && os.IsNotExist(errY) && resolved(output) == resolved(other)
}

// stat returns what os.Stat does; "-" is the standard input.
func stat(name string) (os.FileInfo, error) {
	if name == "-" {
		return os.Stdin.Stat()
	}
	return os.Stat(name)
}

func isFile(f *os.File, name string) bool {
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

// resolved returns the name without symbolic links, also in its directory. The file need not exist.
func resolved(name string) string {
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

// tee keeps the records and writes them to the file of --save. The kept records are complete even
// if the file cannot be written.
type tee struct {
	kept bytes.Buffer
	file io.Writer // nil without --save
}

func (t *tee) Write(b []byte) (int, error) {
	t.kept.Write(b)
	if t.file == nil {
		return len(b), nil
	}
	return t.file.Write(b)
}

const saveFlag = "save"

// savable returns an error if the file of --save cannot be written. It leaves no file behind.
func (f *writing) savable() error {
	if f.save == "" || direct(f.save) {
		return nil
	}
	return unsaved("results", writable(f.save))
}

// unsaved returns a failure to save what, or nil if err is nil.
func unsaved(what string, err error) error {
	if err == nil {
		return nil
	}
	hint := "give --" + saveFlag + " a writable path"
	if errors.Is(err, errTaken) {
		hint = "give --" + saveFlag + " another path"
	}
	return &failure{exitFailed, fmt.Errorf("save %s: %w", what, err), hint}
}

// unsave removes the results file of a run that recorded nothing, which would be in the way of the
// next run. With --force it keeps the file, which may have existed before.
func (f *writing) unsave() error {
	if f.save == "" || f.out.force || direct(f.save) {
		return nil
	}
	name := resolved(f.save)
	if info, err := os.Stat(name); err == nil && info.Size() == 0 {
		return os.Remove(name)
	}
	return nil
}

func (f *writing) records(e env) (t *tee, closeFile func() error, err error) {
	t = &tee{}
	if f.save == "" {
		return t, func() error { return nil }, nil
	}
	file, closeFile, err := create(f.save, e.stdout, f.out.force)
	if errors.Is(err, fs.ErrExist) { // it appeared after the check
		return nil, nil, usage(exists(place{saveFlag, f.save}),
			overwriteHint(place{saveFlag, f.save}))
	}
	if err != nil {
		return nil, nil, unsaved("results", err)
	}
	t.file = file
	return t, closeFile, nil
}
