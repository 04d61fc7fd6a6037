package machine

import (
	"os"
	"path/filepath"
)

// docker returns "running", "installed" or "". It does not connect to the daemon, because that
// would start it if systemd holds its socket.
func (m Machine) docker() string {
	for _, name := range []string{"/run/docker.pid", "/var/run/docker.pid"} {
		pid := m.text(name)
		comm := filepath.Join("/proc", filepath.Base(pid), "comm")
		if pid != "" && m.text(comm) == "dockerd" {
			return "running"
		}
	}
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/bin") {
		if filepath.IsAbs(dir) && m.isExecutable(filepath.Join(dir, "dockerd")) {
			return "installed"
		}
	}
	return ""
}

func (m Machine) isExecutable(name string) bool {
	info, err := os.Stat(m.path(name))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
