package cli

import (
	"cmp"
	"errors"
	"net/netip"
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

// A shell would run other commands than those that an editor on Windows wrote.
func TestTryOfWindowsFile(t *testing.T) {
	for text, ok := range map[string]bool{"true\r\nfalse\r\n": false, "printf 'a\\r\\n'\n": true} {
		file := filepath.Join(t.TempDir(), "firewall.sh")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := (&tryFlags{commands: "@" + file}).read(env{}, nil)
		f, failed := errors.AsType[*failure](err)
		if _, err := (&tryFlags{commands: text}).read(env{}, nil); ok != (err == nil) {
			t.Errorf("%q: %v", text, err)
		}
		if ok != (err == nil && got == text) || failed && (f.code != exitBadFile ||
			f.hint != "tr -d '\\r' <"+file+" >"+file+".unix, and try that file") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// Commands that need a daemon leave it open whether a line holds, and what was lost is lost.
func TestTryWithDaemon(t *testing.T) {
	line := func() []ports.Expectation {
		lines, err := ports.ParseExpectations(strings.NewReader("other machines reach no port\n"),
			netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	answered := ports.Path{Client: ports.Remote, Kind: ports.Direct, Dial: "192.0.2.10:22"}
	for _, c := range []struct {
		daemons []string
		rows    []ports.Row
		code    int
	}{
		{nil, nil, exitOK},
		{[]string{"docker"}, nil, exitUnclear},
		{[]string{"docker"}, []ports.Row{{Port: 22, Proto: "tcp", Dials: []ports.Path{answered}}},
			exitWorse},
	} {
		r := &ports.Report{Ports: c.rows, Changes: &ports.Changes{},
			Tried: &ports.Tried{Daemons: c.daemons}}
		with := comparedWith{lines: line()}
		with.apply(r)
		code := exitOK
		err := cmp.Or((&tryFlags{commands: "true"}).failed(r), with.failed(r))
		if f, ok := errors.AsType[*failure](err); ok {
			code = f.code
		}
		if code != c.code {
			t.Errorf("%q, %d rows: exit code %d, want %d", c.daemons, len(c.rows), code, c.code)
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
		{[]string{"ebtables", "arptables", "modprobe", "iptables"},
			"install iptables, kmod (Debian's names of the packages)"},
		{[]string{program}, "run toll in the directory of own.sh"},
		{[]string{"/bin/sh"}, "is the program installed that the first line of sh names?"},
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
