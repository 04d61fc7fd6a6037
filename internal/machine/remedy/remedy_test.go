package remedy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRemedies(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	setRoot(t, dir)
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
	if got := Start("docker"); got != "start the service docker" {
		t.Errorf("systemd is installed and does not run: %s", got)
	}
	write(t, dir, "run/systemd/system/x", "")
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
	for _, unit := range []string{"ovs-vswitchd", "openvswitch", "openvswitch-switch"} {
		write(t, dir, "usr/lib/systemd/system/"+unit+".service", "")
		if got := Start("openvswitch-switch", "openvswitch", "ovs-vswitchd"); got !=
			"sudo systemctl start "+unit {
			t.Errorf("as %s: %s", unit, got)
		}
	}
	if err := os.Remove(filepath.Join(dir, "sudo")); err != nil {
		t.Fatal(err)
	}
	if got := Start("docker"); strings.HasPrefix(got, "sudo") != (os.Geteuid() != 0) {
		t.Errorf("without sudo, as user %d: %s", os.Geteuid(), got)
	}
}

// A remedy for missing modules can be followed on each distribution.
func TestModprobe(t *testing.T) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	release := unix.ByteSliceToString(u.Release[:])
	const (
		fedora = "dnf install kernel-modules-extra-$(uname -r) may have it, else "
		ubuntu = "apt-get install linux-modules-extra-$(uname -r) may have it, else "
	)
	for _, tt := range []struct{ name, osRelease, modules, more string }{
		{"fedora", "ID=fedora\n", "lib/modules", fedora},
		{"rhel", "ID=\"rhel\"\nID_LIKE=\"fedora\"\n", "lib/modules", fedora},
		{"rocky", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "lib/modules", fedora},
		{"amazon", "ID=\"amzn\"\nID_LIKE=\"fedora\"\n", "lib/modules", fedora},
		{"ubuntu", "ID=ubuntu\nID_LIKE=debian\n", "lib/modules", ubuntu},
		{"debian", "ID=debian\n", "lib/modules", ""},
		{"opensuse", "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n", "lib/modules", ""},
		{"arch", "ID=arch\n", "lib/modules", ""},
		{"alpine", "ID=alpine\n", "lib/modules", ""},
		{"nixos", "ID=nixos\n", "run/booted-system/kernel-modules/lib/modules", ""},
		{"none", "", "lib/modules", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			setRoot(t, dir)
			write(t, dir, "etc/os-release", tt.osRelease)
			check := func(got, want string) {
				t.Helper()
				if got != want {
					t.Errorf("%s, want %s", got, want)
				}
			}
			check(ModprobeOr("x", "y"), "load x and y on the machine itself (modprobe), or use a kernel "+
				"that has them")
			write(t, dir, tt.modules+"/"+release+"/modules.dep",
				"kernel/net/x.ko.xz: kernel/net/in_z.ko.xz\nkernel/net/in_y.ko:\n")
			check(Modprobe("x"), AsRoot("modprobe x"))
			check(ModprobeOr("x"), AsRoot("modprobe x")+", or use a kernel that has it")
			more := tt.more
			if more != "" {
				more = AsRoot(more)
			}
			check(ModprobeOr("x", "y"), more+"use a kernel that has y")
			check(Modprobe("y"), more+"use a kernel that has y")
			write(t, dir, tt.modules+"/"+release+"/modules.builtin", "kernel/net/y.ko\n")
			check(ModprobeOr("x", "y"), AsRoot("modprobe -a x y")+", or use a kernel that has them")
		})
	}
}

func setRoot(t *testing.T, dir string) {
	before := root
	root = dir
	t.Cleanup(func() { root = before })
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
