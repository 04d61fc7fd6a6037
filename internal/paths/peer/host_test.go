package peer

import (
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func TestParseHost(t *testing.T) {
	for in, want := range map[string]Host{
		"b":                     {Name: "b"},
		"me@b.example:2222":     {User: "me", Name: "b.example", Port: 2222},
		"10.0.0.2:22":           {Name: "10.0.0.2", Port: 22},
		"fd00::2":               {Name: "fd00::2"},
		"me@[fd00::2]:22":       {User: "me", Name: "fd00::2", Port: 22},
		"[fe80::1%eth0]":        {Name: "fe80::1%eth0"},
		"domain@user@b":         {User: "domain@user", Name: "b"},
		"aws-host_1.internal":   {Name: "aws-host_1.internal"},
		"user.name-x@host:0022": {User: "user.name-x", Name: "host", Port: 22},
	} {
		if got, err := ParseHost(in); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "@b", "me@", "b:", "b:0", "b:70000", "b:x", "[fd00::2", "[]",
		"[b]x", "[b]:", "-oProxyCommand=id", "-l@b",
		"me@-b", "a b", "b\nc", "b;id", "$(id)", "a`id`", "b|c", "b&", "\"b\"", "a\\b", "b\x00"} {
		if h, err := ParseHost(in); err == nil {
			t.Errorf("%q is %+v", in, h)
		}
	}
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"me@b:22", "[fd00::2]:22", "-o", "a@b@c", "fe80::1%eth0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHost(s)
		if err != nil {
			return
		}
		if again, err := ParseHost(h.String()); err != nil || again != h {
			t.Errorf("%q is %+v, written %q and read %+v, %v", s, h, h, again, err)
		}
		args := h.args("sh")
		if n := len(args); args[n-3] != "--" || args[n-2] != h.Name ||
			strings.HasPrefix(h.User, "-") || strings.ContainsAny(
			h.Name+h.User, " '\"`$;&|<>\n\x00") {
			t.Errorf("%q makes ssh's arguments %q", s, args)
		}
	})
}

func TestParseHave(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	h, err := parseHave("Linux aarch64 " + sum + " ada 10.0.0.1 4000 10.0.0.2 22")
	if err != nil || h.Machine != "aarch64" || h.Sum != sum || h.User != "ada" ||
		h.Here.String() != "10.0.0.1:4000" || h.There.String() != "10.0.0.2:22" {
		t.Errorf("%+v, %v", h, err)
	}
	if h, err := parseHave("Linux x86_64 - ada fe80::1%eth0 1 fe80::2%eth0 2"); err != nil ||
		h.Sum != "" || h.Here.Addr().Zone() != "eth0" {
		t.Errorf("%+v, %v", h, err)
	}
	if h, err := parseHave("Linux x86_64 - #1000 -"); err != nil || h.Here.IsValid() {
		t.Errorf("%+v, %v", h, err)
	}
	for _, s := range []string{"", "Linux", "Linux x86_64 - -", "Linux x86_64 - ada a b",
		"a b c d e f g h i"} {
		if _, err := parseHave(s); err == nil {
			t.Errorf("%q is understood", s)
		}
	}
}

func FuzzSaid(f *testing.F) {
	f.Add("mark have Linux x86_64 - ada 1.2.3.4 5 6.7.8.9 10\r\n")
	f.Add("mark have a b c d e")
	f.Add("markhave")
	f.Fuzz(func(t *testing.T, line string) {
		word, rest, ours := said("mark", line)
		if ours != strings.HasPrefix(strings.TrimRight(line, "\r\n"), "mark ") ||
			!ours && word+rest != "" {
			t.Errorf("%q: %q, %q, %v", line, word, rest, ours)
		}
		h, err := parseHave(rest)
		if err == nil && (h.System == "" || h.Machine == "" || h.Sum != "" && len(h.Sum) != 64) {
			t.Errorf("%q is %+v", rest, h)
		}
	})
}

func TestProgram(t *testing.T) {
	self, err := sumOf(local.Self)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(local.Self)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	own := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if own == "" || slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool {
		return p.Type == elf.PT_INTERP
	}) {
		t.Skip("this test is not a static program of a machine that it knows")
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, machine, system, sum, binary string
		want, err                          string
	}{
		{"nothing-there", own, "Linux", "", "", local.Self, ""},
		{"the-same-there", own, "Linux", self, "", "", ""},
		{"another-there", own, "Linux", strings.Repeat("0", 64), "", local.Self, ""},
		{"other-machine", "riscv64", "Linux", "", "", "",
			"the peer is riscv64, this toll is for " + runtime.GOARCH},
		{"other-machine-has-one", "riscv64", "Linux", strings.Repeat("0", 64), "", "", ""},
		{"given", own, "Linux", "", "/proc/self/exe", local.Self, ""},
		{"given-wrong", "riscv64", "Linux", "", "/proc/self/exe", "", "/proc/self/exe is for " + f.Machine.String() + ", the peer is riscv64"},
		{"given-no-program", own, "Linux", "", text, "",
			"--peer-binary DIR/text is not a program (EOF)"},
		{"other-system", own, "Darwin", "", "", "", "the peer runs Darwin, not Linux"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := (&Peer{Binary: tt.binary}).program(
				have{System: tt.system, Machine: tt.machine, Sum: tt.sum})
			if got != tt.want || (err == nil) != (tt.err == "") ||
				err != nil && (testgolden.Stable(err.Error()) != tt.err ||
					!errors.Is(err, machine.ErrUnsupported)) {
				t.Errorf("%s, want %s: %q, want %q", got, tt.want, err, tt.err)
			}
		})
	}
}

// A hint has the user, the alias and the port that were typed.
func TestHostInHints(t *testing.T) {
	me := Host{User: "me", Name: "box", Port: 2222}
	for remedy, want := range map[string]string{
		"log in once by hand, ssh HOST":         "log in once by hand, ssh -p 2222 me@box",
		"ssh-keygen -R HOST":                    "ssh-keygen -R '[box]:2222'",
		"--peer root@HOST, without --peer-sudo": "--peer root@box:2222, without --peer-sudo",
		"[user@]HOST:PORT, if it has another":   "[user@]HOST:PORT, if it has another",
		"the line \"USER ALL\"":                 "the line \"me ALL\"",
	} {
		if got := me.in(remedy, "me"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (Host{Name: "box"}).in("ssh HOST; ssh-keygen -R HOST", ""); got != "ssh box; ssh-keygen -R box" {
		t.Error(got)
	}
}
