package rootless

import (
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
)

// HolderOf returns the PID and the name of the slirp4netns or pasta process that holds the tap
// device of a network namespace. namespace is a result of netns.ID. The caller needs permission to
// trace that process (ptrace).
func HolderOf(namespace string) (pid int, program string, err error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, "", err
	}
	for _, p := range all {
		program := programOf(p)
		if program == "" {
			continue
		}
		if ids, err := netns.Held(p.PID); err == nil && slices.Contains(ids, namespace) {
			return p.PID, program, nil
		}
	}
	return 0, "", &machine.UnsupportedError{
		Missing: "toll finds no slirp4netns or pasta process with the rootless network's tap device, or may not read it",
		Remedy:  "run toll as root, outside containers; other network drivers are not measured"}
}

// programOf returns the name of a slirp4netns or pasta process, or "" for other processes. pasta's
// process may have the name pasta.avx2 or passt.avx2.
func programOf(p procfs.Proc) string {
	name, err := p.Comm()
	switch {
	case err != nil:
	case name == Slirp4netns:
		return Slirp4netns
	case strings.HasPrefix(name, Pasta), strings.HasPrefix(name, "passt"):
		return Pasta
	}
	return ""
}
