package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"syscall"
)

// opening keeps the first bytes of what is read.
type opening struct {
	io.Reader
	head []byte
}

const openingSize = 4 << 10

func (s *opening) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	s.head = append(s.head, b[:min(n, openingSize-len(s.head))]...)
	return n, err
}

// notResults returns the failure to read a results file. If the file, which begins with head, is
// another one of toll's, the error says which.
func notResults(name string, head []byte, err error) error {
	hint := "a results file is what toll compare --save writes"
	if errors.Is(err, syscall.EISDIR) {
		err = errors.New("it is a directory")
	}
	if what, other := otherFile(head); what != "" {
		err, hint = fmt.Errorf("this is %s, not a results file", what), other
	}
	return &failure{exitBadFile, fmt.Errorf("%s: %w", name, err), hint}
}

var schemaOf = regexp.MustCompile(`^\s*\{\s*"schema": ?"bridgetoll\.([a-z-]+)/`)

// otherFile returns the words for a file of toll's that is no results file, and a hint; "" for others.
func otherFile(head []byte) (what, hint string) {
	hint = "toll reads what --save writes, and the runs that toll history lists; " +
		"--format is for other programs"
	is := func(prefix string) bool {
		return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte(prefix))
	}
	m := schemaOf.FindSubmatch(head)
	switch {
	case m != nil && string(m[1]) == "machine", is("\x1f\x8b"):
		return "a machine that toll ports --save wrote", "toll ports --from-file FILE judges it"
	case m != nil && string(m[1]) == "requests":
		return "what toll trace --attach keeps", "toll report FILE shows it"
	case m != nil && string(m[1]) != "results":
		return fmt.Sprintf("the %s of --format json", m[1]), hint
	case is("study,"):
		return "the output of --format csv", hint
	case is("# HELP toll_"):
		return "the output of --format openmetrics", hint
	case is("Unit ") && bytes.Contains(head, []byte("\nBenchmark")):
		return "the output of --format benchfmt", hint
	case is("<?xml ") && bytes.Contains(head, []byte("<testsuites>")):
		return "the output of --format junit", hint
	case is("<!doctype html>"), is("<!DOCTYPE html>"):
		return "the page of --format html", hint
	}
	return "", ""
}
