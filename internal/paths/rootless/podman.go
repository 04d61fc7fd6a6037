package rootless

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
)

const maxPID = 64 // bytes of a file with a PID

// FindPodman returns the PID of a process in the user namespace of the rootless Podman whose
// service has the given Unix socket. The process is the service or, where systemd listens on the
// socket, Podman's pause process. FindPodman returns a *machine.UnsupportedError if it finds
// neither.
func FindPodman(socket string) (pid int, err error) {
	if pid, err = listener(socket); err == nil && InUserNamespace(strconv.Itoa(pid)) {
		return pid, nil
	}
	owner := ownerOf(socket)
	for _, dir := range []string{filepath.Dir(filepath.Dir(socket)), os.Getenv("XDG_RUNTIME_DIR"),
		"/run/user/" + strconv.Itoa(owner)} {
		text, err := exchange.ReadFile(filepath.Join(dir, "libpod/tmp/pause.pid"), maxPID)
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err == nil && ownerOf("/proc/"+strconv.Itoa(pid)) == owner &&
			InUserNamespace(strconv.Itoa(pid)) {
			return pid, nil
		}
	}
	return 0, &machine.UnsupportedError{
		Missing: "toll finds no process in the namespaces of the rootless Podman behind " + socket,
		Remedy:  "run podman unshare true as Podman's user, which starts one; run toll outside containers", Err: err}
}

// ownerOf returns the user ID of a file's owner, or -1 if the file cannot be read.
func ownerOf(file string) int {
	info, err := os.Stat(file)
	if err != nil {
		return -1
	}
	return int(info.Sys().(*syscall.Stat_t).Uid) //nolint:forcetypeassert // on Linux always
}

// InUserNamespace reports whether a process is in a user namespace other than the machine's.
// process is a PID or "self".
func InUserNamespace(process string) bool {
	text, err := os.ReadFile("/proc/" + process + "/uid_map")
	f := strings.Fields(string(text))
	return err == nil && len(f) >= 3 && f[2] != "4294967295"
}

// BridgesOf returns the file of the network namespace with the bridges of a rootless Podman (4.0
// and later). pid is a process in Podman's namespaces, runRoot Podman's directory of that name. The
// file exists while a container is on a bridge.
func BridgesOf(pid int, runRoot string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", pid), runRoot,
		"networks/rootless-netns/rootless-netns")
}

// PortConfig returns what Podman 5.4.2 (libpod/networking_slirp4netns_linux.go) writes to
// rootlessport's standard input. rootlessport listens on the address machine, exits at the end of
// file of descriptor 3 and writes a byte to descriptor 4 when it is ready. Descriptor 5 must be the
// container's network namespace.
func PortConfig(ports []Port, machine, container netip.Addr) (io.Reader, error) {
	type mapping struct {
		Address   string `json:"host_ip"`
		Container uint16 `json:"container_port"`
		Host      uint16 `json:"host_port"`
		Range     uint16 `json:"range"`
		Protocol  string `json:"protocol"`
	}
	var all []mapping
	for _, p := range ports {
		all = append(all, mapping{machine.String(), p.Container, p.Host, 1, p.Protocol()})
	}
	const exit, ready = 3, 4
	b, err := json.Marshal(struct {
		Mappings        []mapping
		NetNSPath       string
		ExitFD, ReadyFD int
		TmpDir, ChildIP string
		RootlessCNI     bool
	}{all, "/proc/self/fd/5", exit, ready, scratch, container.String(), false})
	return bytes.NewReader(b), err
}
