package main

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
)

// place is a file that a command reads or writes besides --output, and how it was
// named: a flag, or "" for an argument.
type place struct{ flag, name string }

// apart refuses an --output that is a file of the command already, under whatever
// name: one would destroy the other. Terminals, pipes and the like can be both, and
// so can the standard output, wherever it goes: all write to it in turn.
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

// sameFile reports whether both names lead to one regular file, or would.
func sameFile(output, other string) bool {
	x, errX := os.Stat(output)
	y, errY := stat(other)
	if errX == nil && errY == nil {
		return x.Mode().IsRegular() && os.SameFile(x, y)
	}
	return os.IsNotExist(errX) && os.IsNotExist(errY) && resolved(output) == resolved(other)
}

// stat is what is there; "-" is the standard input.
func stat(name string) (os.FileInfo, error) {
	if name == "-" {
		return os.Stdin.Stat()
	}
	return os.Stat(name)
}

// isFile reports whether the name is that of an open file.
func isFile(f *os.File, name string) bool {
	have, errHave := f.Stat()
	want, errWant := os.Stat(name)
	return errHave == nil && errWant == nil && os.SameFile(have, want)
}

// maxLinks is as many as the kernel follows.
const maxLinks = 40

// links are a name and those that it leads to as a symbolic link, one after another.
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

// resolved is the path of a file, which need not be there, without links: of its
// directory's and of those that lead to it.
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
