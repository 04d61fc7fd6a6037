package rootless

import (
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// HolderOf returns the slirp4netns or pasta that has the tap device of a network namespace, given as
// netns.ID names it. It needs permission to trace the process.
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
	return 0, "", &path.UnsupportedError{
		Missing: "no slirp4netns or pasta with the tap device of a rootless network is among the processes that toll may read",
		Remedy:  "run toll as root, outside containers; other network drivers are not measured"}
}

// pasta's process may be called pasta.avx2 or passt.avx2.
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
