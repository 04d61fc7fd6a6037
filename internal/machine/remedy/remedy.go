// Package remedy says how to install a package or start a service on this machine: by a command
// that exists here, or in words.
package remedy

import (
	"os"
	"os/exec"
	"strings"
)

// Install returns the remedy that installs packages, given by their names in Debian. A name may
// have a remark behind it, as in "netperf (non-free)".
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

// Start returns the remedy that starts a service of systemd.
func Start(service string) string { return control("start", service) }

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
	if has("systemctl") {
		return "systemctl --user start " + service
	}
	return "start the user's service " + service
}

// Restart returns the remedy that restarts a service of systemd.
func Restart(service string) string { return control("restart", service) }

func control(verb, service string) string {
	if has("systemctl") {
		return AsRoot("systemctl " + verb + " " + service)
	}
	return verb + " the service " + service
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

// Modprobe returns the command line that loads modules of the kernel.
func Modprobe(modules ...string) string {
	if len(modules) > 1 {
		modules = append([]string{"-a"}, modules...)
	}
	return AsRoot("modprobe " + strings.Join(modules, " "))
}

// ModprobeOr returns the remedy for what the kernel has in modules, if it has it.
func ModprobeOr(modules ...string) string {
	return Modprobe(modules...) + ", or use a kernel that has them"
}
