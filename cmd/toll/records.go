package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// tee keeps every record and copies it to the file of --save. The kept records are complete even if
// the file cannot be written.
type tee struct {
	kept bytes.Buffer
	file io.Writer // nil: there is none
}

func (t *tee) Write(b []byte) (int, error) {
	t.kept.Write(b)
	if t.file == nil {
		return len(b), nil
	}
	return t.file.Write(b)
}

// saveFlag names the file to which every visit is written.
const saveFlag = "save"

func (f *runFlags) records(e env) (t *tee, closeFile func() error, err error) {
	t = &tee{}
	if f.save == "" {
		return t, func() error { return nil }, nil
	}
	file, closeFile, err := create(f.save, e.stdout, f.out.force)
	if errors.Is(err, fs.ErrExist) { // it appeared after the check
		return nil, nil, usage(exists(place{saveFlag, f.save}), overwriteHint(place{saveFlag, f.save}))
	}
	if err != nil {
		return nil, nil, &failure{exitFailed, fmt.Errorf("save results: %w", err), "give --save a writable path"}
	}
	t.file = file
	return t, closeFile, nil
}
