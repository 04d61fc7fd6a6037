package rootless

import (
	"bytes"
	"encoding/json"
	"io"
	"net/netip"
)

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
