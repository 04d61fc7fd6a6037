package main

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
)

// place is a file that a command reads or writes besides --output. flag is the flag that named it,
// or "" for an argument.
type place struct{ flag, name string }

// apart refuses an --output that is already a file of the command under any name, because one would
// destroy the other. Terminals, pipes and the standard output are allowed for both: writes go to
// them in turn.
func (o *outputFlags) apart(others []place) error {
	for _, p := range others {
		if o.file == "" || p.name == "" || !sameFile(o.file, p.name) || p.flag == saveFlag && isFile(os.Stdout, o.file) {
			continue
		}
		what := "the results file " + p.name
		if p.flag != "" {
			what = "--" + p.flag + " " + p.name
		}
		return usage(fmt.Errorf("--output %s would destroy %s: it is the same file", o.file, what), "give --output another path")
	}
	return nil
}

// sameFile reports whether both names lead to the same regular file, or would if it existed.
func sameFile(output, other string) bool {
	x, errX := os.Stat(output)
	y, errY := stat(other)
	if errX == nil && errY == nil {
		return x.Mode().IsRegular() && os.SameFile(x, y)
	}
	return os.IsNotExist(errX) && os.IsNotExist(errY) && resolved(output) == resolved(other)
}

// stat is os.Stat, with "-" for the standard input.
func stat(name string) (os.FileInfo, error) {
	if name == "-" {
		return os.Stdin.Stat()
	}
	return os.Stat(name)
}

// isFile reports whether the name leads to the open file f.
func isFile(f *os.File, name string) bool {
	have, errHave := f.Stat()
	want, errWant := os.Stat(name)
	return errHave == nil && errWant == nil && os.SameFile(have, want)
}

// maxLinks is the number of symbolic links that the kernel follows.
const maxLinks = 40

// links yields a name and then each target as it follows symbolic links.
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

// resolved returns the path of a file without symbolic links, in the name or in its directory. The
// file need not exist.
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
