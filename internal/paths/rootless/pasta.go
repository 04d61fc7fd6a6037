package rootless

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/machine"
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

// Passt2023 is the version of pasta in Debian 12. Over the tap device it connects to the server
// only when the client has sent something. Where it splices sockets, it loses replies to datagrams
// unless the port has the same number in the container. Replies to a client with the machine's own
// address go to the gateway.
const Passt2023 = "git20230309"

// CheckAnswers returns a *machine.UnsupportedError if this pasta loses replies to datagrams. pasta is
// its name with the version; see Named.
func CheckAnswers(pasta string) error {
	if !strings.Contains(pasta, Passt2023) {
		return nil
	}
	return &machine.UnsupportedError{
		Missing: pasta +
			" loses replies to datagrams that are sent to the machine's own address, or to a port with another number in the container",
		Remedy: "pasta 2025_05; or --to loopback with one server in the lab"}
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
