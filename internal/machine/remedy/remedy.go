// Package remedy says how to install a package or start a service on this machine: by a command
// that exists here, or in words.
package remedy

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// Install returns the remedy that installs packages, given by their names in Debian. A name may
// have a remark behind it, as in "netperf (non-free)".
func Install(names ...string) string {
	remarks := strings.Contains(strings.Join(names, ""), " ")
	switch {
	case has("apt-get") && !remarks:
		return asRoot("apt-get install " + strings.Join(names, " "))
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
		return asRoot("systemctl " + verb + " " + service)
	}
	return verb + " the service " + service
}

func has(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// sudo matches the word in front of a command, at the beginning of a text or within it.
var sudo = regexp.MustCompile(`(^|[ (])sudo `)

// Typed returns a text with its commands as the user can enter them: without sudo for root, if there
// is none. It leaves commands for another machine, which are to be entered "there".
func Typed(text string) string {
	if os.Geteuid() == 0 && !has("sudo") && !strings.Contains(text, " there") {
		return sudo.ReplaceAllString(text, "$1")
	}
	return text
}

func asRoot(command string) string { return Typed("sudo " + command) }
