// Package rootless finds and starts the programs that give containers a network without root: pasta,
// slirp4netns, RootlessKit (with gvisor-tap-vsock within it) and Podman's rootlessport.
package rootless

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// The programs.
const (
	Pasta        = "pasta"
	Slirp4netns  = "slirp4netns"
	RootlessKit  = "rootlesskit"
	RootlessPort = "rootlessport"
)

var packages = map[string]string{Pasta: "passt", Slirp4netns: "slirp4netns",
	RootlessKit: "rootlesskit", RootlessPort: "podman", "ip": "iproute2",
	"nsenter": "util-linux"}

// beside has the places outside PATH; Debian 12 has the second.
var beside = map[string][]string{RootlessPort: {"/usr/libexec/podman/rootlessport",
	"/usr/lib/podman/rootlessport"}}

// Find returns a program's file, or an *path.UnsupportedError with the package to install.
func Find(program string) (file string, err error) {
	if file, err = exec.LookPath(program); err == nil {
		return file, nil
	}
	for _, file := range beside[program] {
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", &path.UnsupportedError{Missing: program + " is not installed",
		Remedy: "sudo apt install " + packages[program] + ", or your distribution's package of it"}
}

// Tun is the device that tap devices are made with.
const Tun = "/dev/net/tun"

// CheckTun returns nil if this process may make tap devices, or an *path.UnsupportedError.
func CheckTun() error {
	f, err := os.OpenFile(Tun, os.O_RDWR, 0)
	if err == nil {
		return f.Close()
	}
	remedy := "sudo chmod 666 " + Tun
	if !errors.Is(err, fs.ErrPermission) {
		remedy = "sudo modprobe tun, and in a container --device " + Tun
	}
	return &path.UnsupportedError{Remedy: remedy, Err: err,
		Missing: Tun + " cannot be opened, and tap devices are made with it"}
}
