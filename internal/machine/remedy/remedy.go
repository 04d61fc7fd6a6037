// Package remedy says how to install a package or start a service on this machine: by a command
// that exists here, or in words.
package remedy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// root is the directory with the machine's files. Tests set it.
var root = "/"

// Install returns the remedy that installs packages, given by their names in Debian. A name may
// have a remark behind it, as in "netperf (Debian 12: non-free)".
func Install(names ...string) string {
	remarks := strings.Contains(strings.Join(names, ""), " ")
	switch {
	case has("apt-get") && !remarks:
		return AsRoot("apt-get install " + strings.Join(names, " "))
	case len(names) > 1:
		return "install " + strings.Join(names, ", ") + " (Debian's names of the packages)"
	case remarks:
		return "install " + names[0]
	}
	return "install " + names[0] + " (Debian's name of the package)"
}

// Start returns the remedy that starts a service of systemd, which may have other names in some
// distributions.
func Start(service string, others ...string) string {
	names := append([]string{service}, others...)
	if i := slices.IndexFunc(names, func(name string) bool {
		return isFile("usr/lib/systemd/system", name+".service") ||
			isFile("lib/systemd/system", name+".service") ||
			isFile("etc/systemd/system", name+".service")
	}); i > 0 {
		service = names[i]
	}
	return control("start", service)
}

// Provide returns the remedy that starts a service of systemd, or that installs its package, given
// by its name in Debian, if none of its programs is installed.
func Provide(service, pkg string, programs ...string) string {
	for _, p := range programs {
		if has(p) || has("/usr/sbin/"+p) { // which is not in the PATH of ordinary users
			return Start(service)
		}
	}
	return Install(pkg)
}

// StartOwn returns the remedy that starts a service of the user's own systemd.
func StartOwn(service string) string {
	if systemd() {
		return "systemctl --user start " + service
	}
	return "start the user's service " + service
}

// Restart returns the remedy that restarts a service of systemd.
func Restart(service string) string { return control("restart", service) }

func control(verb, service string) string {
	if systemd() {
		return AsRoot("systemctl " + verb + " " + service)
	}
	return verb + " the service " + service
}

// systemd reports whether systemd runs. The command may be installed without it.
func systemd() bool { return has("systemctl") && isFile("run/systemd/system") }

// isFile reports whether the machine has a file or directory with the parts of a name.
func isFile(parts ...string) bool {
	_, err := os.Stat(filepath.Join(append([]string{root}, parts...)...))
	return err == nil
}

func has(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// AsRoot returns the command line by which the user runs a command as root: with sudo, unless the
// user is root and there is none. It is for this machine; commands for others keep their sudo.
func AsRoot(command string) string {
	if os.Geteuid() == 0 && !has("sudo") {
		return command
	}
	return "sudo " + command
}

// Modprobe returns the command line that loads modules of the kernel, or what to do if this machine
// has no files of them.
func Modprobe(modules ...string) string {
	do, _ := load(modules)
	return do
}

// ModprobeOr returns the remedy for what the kernel has in modules, if it has it.
func ModprobeOr(modules ...string) string {
	do, sure := load(modules)
	if sure {
		return do + ", or use a kernel that has " + units.Agree(len(modules), "it", "them")
	}
	return do
}

// load returns the remedy that loads modules, and whether this machine has them all.
func load(modules []string) (do string, sure bool) {
	lacks, known := lacking(modules)
	switch {
	case !known: // in a container, or with a kernel without modules
		return "load " + printable.List(modules) + " on the machine itself (modprobe), or use a " +
			"kernel that has " + units.Agree(len(modules), "it", "them"), false
	case len(lacks) > 0:
		return moreModules() + "use a kernel that has " + printable.List(lacks), false
	case len(modules) > 1:
		modules = append([]string{"-a"}, modules...)
	}
	return AsRoot("modprobe " + strings.Join(modules, " ")), true
}

// lacking returns the modules that the running kernel has neither built in nor as files; known is
// false if this machine has no list of them.
func lacking(modules []string) (lacks []string, known bool) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return nil, false
	}
	var lists []byte
	for _, dir := range []string{"lib/modules", "run/booted-system/kernel-modules/lib/modules"} { // NixOS
		for _, name := range []string{"modules.dep", "modules.builtin"} {
			b, err := os.ReadFile(filepath.Join(root, dir, unix.ByteSliceToString(u.Release[:]), name))
			lists, known = append(lists, b...), known || err == nil
		}
	}
	return slices.DeleteFunc(slices.Clone(modules), func(name string) bool {
		return bytes.Contains(lists, []byte("/"+name+".ko"))
	}), known
}

// moreModules returns how to install the modules that the distribution keeps in a package of their
// own, or "".
func moreModules() string {
	b, _ := os.ReadFile(filepath.Join(root, "etc/os-release"))
	for _, x := range []struct{ like, command string }{
		{"fedora", "dnf install kernel-modules-extra-$(uname -r)"},
		{"ubuntu", "apt-get install linux-modules-extra-$(uname -r)"},
	} {
		for line := range strings.Lines(string(b)) {
			k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
			if (k == "ID" || k == "ID_LIKE") && slices.Contains(
				strings.Fields(strings.Trim(v, `"'`)), x.like) {
				return AsRoot(x.command) + " may have it, else "
			}
		}
	}
	return ""
}
