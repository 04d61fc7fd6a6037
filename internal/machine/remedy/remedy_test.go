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
	if got := Modprobe("x") + ", " + ModprobeOr("x", "y"); got !=
		"sudo modprobe x, sudo modprobe -a x y, or use a kernel that has them" {
		t.Errorf("modules: %s", got)
	}
	if err := os.Remove(filepath.Join(dir, "sudo")); err != nil {
		t.Fatal(err)
	}
	if got := Start("docker"); strings.HasPrefix(got, "sudo") != (os.Geteuid() != 0) {
		t.Errorf("without sudo, as user %d: %s", os.Geteuid(), got)
	}
}
