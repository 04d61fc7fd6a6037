package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

// Someone who gives --try a file of commands is told of --try @FILE.
func TestTryOfFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "firewall.sh")
	if err := os.WriteFile(file, []byte("true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		commands string
		code     int
		hint     string
	}{
		{file, notFound, "toll ports --try @" + file},
		{file, 1, ""},
		{"nonsense", notFound, ""},
	} {
		try := tryFlags{commands: c.commands}
		err := try.failed(&ports.Report{Tried: &ports.Tried{Commands: c.commands, Code: c.code}})
		f, ok := errors.AsType[*failure](err)
		if !ok || f.code != exitFailed || f.hint != c.hint || (f.err != nil) != (c.hint != "") {
			t.Errorf("%s with exit code %d: %+v", c.commands, c.code, f)
		}
	}
}

// A program that a copy does not have makes a try fail, with what helps.
func TestTryWithoutProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "own.sh")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	for _, c := range []struct {
		names []string
		hint  string
	}{
		{[]string{"nft", "ip", "bridge"},
			"install nftables, iproute2 (Debian's names of the packages)"},
		{[]string{program}, "run toll in the directory of own.sh"},
		{[]string{"nonsense"}, ""},
	} {
		try := tryFlags{commands: "true"}
		err := try.failed(&ports.Report{Tried: &ports.Tried{NotFound: c.names}})
		f, ok := errors.AsType[*failure](err)
		if !ok || f.code != exitFailed || !strings.HasSuffix(f.hint, c.hint) || f.err == nil {
			t.Errorf("%v: %+v", c.names, f)
		}
	}
}
