// Package rootless finds and starts the programs that give containers a network without root:
// pasta, slirp4netns, RootlessKit (which contains gvisor-tap-vsock) and Podman's rootlessport. It
// also finds the rootless Docker Engine or Podman behind a socket, and runs toll again in that
// engine's user namespace.
package rootless

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"

	"github.com/bridgetoll/bridgetoll/internal/machine"
)

// The programs' names.
const (
	Pasta        = "pasta"
	Slirp4netns  = "slirp4netns"
	RootlessKit  = "rootlesskit"
	RootlessPort = "rootlessport"
)

var packages = map[string]string{Pasta: "passt", Slirp4netns: "slirp4netns",
	RootlessKit: "rootlesskit", RootlessPort: "podman", "ip": "iproute2",
	"nsenter": "util-linux"}

// beside lists the files of programs that are installed outside PATH. Debian 12 has the second one.
var beside = map[string][]string{RootlessPort: {"/usr/libexec/podman/rootlessport",
	"/usr/lib/podman/rootlessport"}}

// Find returns the path of a program's file, or a *machine.UnsupportedError that names the package to
// install.
func Find(program string) (file string, err error) {
	if file, err = exec.LookPath(program); err == nil {
		return file, nil
	}
	for _, file := range beside[program] {
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", &machine.UnsupportedError{Missing: program + " is not installed",
		Remedy: "sudo apt install " + packages[program] + ", or your distribution's package of it"}
}

// Tun is the device file with which programs make tap devices.
const Tun = "/dev/net/tun"

// CheckTun returns nil if this process may open Tun, else a *machine.UnsupportedError.
func CheckTun() error {
	f, err := os.OpenFile(Tun, os.O_RDWR, 0)
	if err == nil {
		return f.Close()
	}
	remedy := "sudo chmod 666 " + Tun
	if !errors.Is(err, fs.ErrPermission) {
		remedy = "sudo modprobe tun, and in a container --device " + Tun
	}
	return &machine.UnsupportedError{Remedy: remedy, Err: err,
		Missing: Tun + ", which makes tap devices, cannot be opened"}
}
