package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/files"
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
			o.force || files.Direct(p.name) {
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

// create opens a file to write, as files.Create does. If it is the standard output under another
// name, create returns that, because two writers would overwrite each other.
func create(name string, stdout io.Writer, force bool) (io.Writer, func() error, error) {
	if out, is := fileOf(stdout); is && files.Is(out, name) {
		return stdout, func() error { return nil }, nil
	}
	f, err := files.Create(name, force)
	if err != nil {
		return nil, nil, err
	}
	return f, f.Close, nil
}

// place is a file that the command line names by a flag, or by an argument if flag is "".
type place struct{ flag, name string }

// apart returns an error if --output is also another file of the command, under any name.
// Terminals, pipes and the standard output may be both: writes go to them in turn.
func (o *outputFlags) apart(others []place) error {
	for _, p := range others {
		if o.file == "" || p.name == "" || !files.Same(o.file, p.name) ||
			p.flag == saveFlag && files.Is(os.Stdout, o.file) {
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
	if f.save == "" || files.Direct(f.save) {
		return nil
	}
	return unsaved("results", files.Writable(f.save))
}

// unsaved returns a failure to save what, or nil if err is nil.
func unsaved(what string, err error) error { return unwritten(saveFlag, "save "+what, err) }

// unwritten returns a failure to write the file of a flag, or nil if err is nil.
func unwritten(flag, op string, err error) error {
	if err == nil || errors.As(err, new(*failure)) {
		return err
	}
	hint := "give --" + flag + " a writable path"
	switch {
	case errors.As(err, new(*files.AppearedError)):
		hint = "" // it has one of its own
	case errors.Is(err, files.ErrTaken):
		hint = "give --" + flag + " another path"
	case outOfSpace(err):
		hint = "free some space, or give --" + flag + " another path"
	}
	return &failure{exitFailed, fmt.Errorf("%s: %w", op, err), hint}
}

// unsave removes the results file of a run that recorded nothing, which would be in the way of the
// next run. With --force it keeps the file, which may have existed before.
func (f *writing) unsave() error {
	if f.save == "" || f.out.force || files.Direct(f.save) {
		return nil
	}
	name := files.Resolved(f.save)
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
