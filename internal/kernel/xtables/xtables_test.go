package xtables

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
)

func skipUnlessCI(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

func textOf(t *testing.T, name string) string {
	t.Helper()
	all, err := List()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		if x.Name == name {
			return x.Text
		}
	}
	return ""
}

func TestListNoticesEachRule(t *testing.T) {
	for _, program := range []string{"iptables-legacy", "ip6tables-legacy"} {
		t.Run(program, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				skipUnlessCI(t, "%v", err)
			}
			runtime.LockOSThread()
			if err := unix.Unshare(unix.CLONE_NEWNET); errors.Is(err, unix.EPERM) {
				skipUnlessCI(t, "network namespaces need root here")
			} else if err != nil {
				t.Fatal(err)
			}
			run := func(args ...string) {
				t.Helper()
				if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
					skipUnlessCI(t, "%v: %s", err, out)
				}
			}
			table := program + " filter"
			if text := textOf(t, table); text != "" {
				t.Fatalf("there was a table: %s", text)
			}
			six := program == "ip6tables-legacy"
			if Loaded("filter", six) {
				t.Error("a table is loaded")
			}
			run("-A", "OUTPUT", "-p", "tcp", "--dport", "1", "-m", "limit", "--limit", "5/s", "-j",
				"ACCEPT")
			if !Loaded("filter", six) || Loaded("raw", six) || Loaded("filter", !six) {
				t.Error("not the one table that there is is loaded")
			}
			seen := map[string]string{"": "none"}
			for _, step := range [][]string{
				{"-A", "OUTPUT", "-p", "tcp", "--dport", "2"},
				{"-A", "OUTPUT", "-p", "tcp", "--dport", "2"},
				{"-R", "OUTPUT", "3", "-p", "tcp", "--dport", "3"},
				{"-P", "FORWARD", "DROP"},
				{"-N", "X"},
			} {
				run(step...)
				text := textOf(t, table)
				if was, ok := seen[text]; ok {
					t.Errorf("%q after %q, as after %q", text, step, was)
				}
				seen[text] = step[0]
			}
			before := textOf(t, table)
			if err := link.Up("lo"); err != nil {
				t.Fatal(err)
			}
			for _, addr := range []string{"127.0.0.1:1", "[::1]:1"} {
				if c, err := net.Dial("tcp", addr); err == nil {
					_ = c.Close()
				}
			}
			if now := textOf(t, table); now != before {
				t.Errorf("%q with traffic, was %q", now, before)
			}
		})
	}
}
