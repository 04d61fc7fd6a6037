package rootless

import (
	"cmp"
	"strconv"
	"strings"
)

// Port is a TCP or UDP port published on the machine.
type Port struct {
	Host, Container uint16
	UDP             bool
}

// Protocol returns "tcp" or "udp".
func (p Port) Protocol() string {
	if p.UDP {
		return "udp"
	}
	return "tcp"
}

// PastaArgs returns the arguments with which Podman 5.4.2 (containers/common, libnetwork/pasta)
// starts pasta. namespace is the file of the container's network namespace. Unlike under Podman,
// pasta stays in the foreground, and stays root if root starts it.
func PastaArgs(namespace string, ports []Port) []string {
	published := func(udp bool) string {
		var all []string
		for _, p := range ports {
			if p.UDP == udp {
				all = append(all, strconv.Itoa(int(p.Host))+":"+strconv.Itoa(int(p.Container)))
			}
		}
		return cmp.Or(strings.Join(all, ","), "none")
	}
	return []string{"--config-net", "-t", published(false), "-u", published(true),
		"-T", "none", "-U", "none",
		"--no-map-gw", "--quiet", "--foreground", "--runas", "0", "--netns-only",
		"--netns", namespace}
}
