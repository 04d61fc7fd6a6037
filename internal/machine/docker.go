package machine

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// docker is "running" if a Docker Engine takes a connection, "installed" if
// there is one, else "".
//
// Be aware: where systemd holds the socket, connecting starts the daemon, as
// any docker command does.
func (m Machine) docker() string {
	found := ""
	for _, name := range []string{"/var/run/docker.sock", "/run/docker.sock"} {
		info, err := os.Stat(m.path(name))
		if err != nil || info.Mode()&os.ModeSocket == 0 {
			continue
		}
		c, err := net.DialTimeout("unix", m.path(name), 100*time.Millisecond)
		if err == nil {
			c.Close() // nothing was said on it
			return "running"
		}
		// Somebody's daemon, which we may not use.
		if errors.Is(err, syscall.EACCES) {
			found = "installed"
		}
	}
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/bin") {
		if filepath.IsAbs(dir) && m.isExecutable(filepath.Join(dir, "dockerd")) {
			return "installed"
		}
	}
	return found
}

// isExecutable reports whether name is a program.
func (m Machine) isExecutable(name string) bool {
	info, err := os.Stat(m.path(name))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
