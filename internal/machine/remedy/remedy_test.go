package remedy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRemedies(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if got := Install("passt") + ", " + Start("docker") + ", " + Restart("docker"); got !=
		"install passt (Debian's name of the package), start the service docker, "+
			"restart the service docker" {
		t.Errorf("without either: %s", got)
	}
	for _, name := range []string{"apt-get", "systemctl", "sudo"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := Install("passt") + ", " + Start("docker") + ", " + Restart("docker"); got !=
		"sudo apt-get install passt, sudo systemctl start docker, sudo systemctl restart docker" {
		t.Errorf("with both: %s", got)
	}
	if got := Provide("absent", "absent.io", "no-such-program"); got != "sudo apt-get install absent.io" {
		t.Errorf("not installed: %s", got)
	}
	if got := Provide("sudo", "sudo", "no-such-program", "sudo"); got != "sudo systemctl start sudo" {
		t.Errorf("installed: %s", got)
	}
	if got := Install("a", "b") + ", " + Install("c (non-free)"); got !=
		"sudo apt-get install a b, install c (non-free)" {
		t.Errorf("several, and with a remark: %s", got)
	}
	if got := Typed("sudo x"); got != "sudo x" {
		t.Errorf("with sudo: %s", got)
	}
	if err := os.Remove(filepath.Join(dir, "sudo")); err != nil {
		t.Fatal(err)
	}
	if got := Start("docker"); strings.HasPrefix(got, "sudo") != (os.Geteuid() != 0) {
		t.Errorf("without sudo, as user %d: %s", os.Geteuid(), got)
	}
	const text = "run toll as root, or: sudo modprobe x, or sudo y (sudo A=b toll …), as --peer-sudo is"
	want := text
	if os.Geteuid() == 0 {
		want = "run toll as root, or: modprobe x, or y (A=b toll …), as --peer-sudo is"
	}
	if got := Typed(text); got != want {
		t.Errorf("without sudo, as user %d: %s", os.Geteuid(), got)
	}
}

func TestTypedLeavesOtherMachines(t *testing.T) {
	const text = "sudo modprobe ip_vs there, and restart docker"
	if got := Typed(text); got != text {
		t.Errorf("%q", got)
	}
}
