package rootless

import (
	"strconv"
	"strings"
)

// Port is a TCP port published on the machine.
type Port struct{ Host, Container uint16 }

// PastaArgs returns the arguments with which Podman 5.4.2 (containers/common,
// libnetwork/pasta) starts pasta for a network namespace's file. It stays in the foreground and
// keeps its user, so that it may be started as root.
func PastaArgs(namespace string, ports []Port) []string {
	published := "none"
	if len(ports) > 0 {
		var all []string
		for _, p := range ports {
			all = append(all, strconv.Itoa(int(p.Host))+":"+strconv.Itoa(int(p.Container)))
		}
		published = strings.Join(all, ",")
	}
	return []string{"--config-net", "-t", published, "-u", "none", "-T", "none", "-U", "none",
		"--no-map-gw", "--quiet", "--foreground", "--runas", "0", "--netns-only",
		"--netns", namespace}
}
