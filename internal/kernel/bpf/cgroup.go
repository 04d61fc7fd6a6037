package bpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

var errNoCgroup = errors.New("control groups of version 2 are not mounted")

// mount returns the mount point of version 2, and the group at its top.
var mount = sync.OnceValues(func() (m struct{ dir, root string }, err error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return m, err
	}
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		at, kind := strings.Fields(before), strings.Fields(after)
		if len(at) > 4 && len(kind) > 0 && kind[0] == "cgroup2" {
			m.root, m.dir = at[3], at[4]
			return m, nil
		}
	}
	return m, errNoCgroup
})

// CgroupOf returns the directory of a process's control group (version 2). A pid of 0 is the caller.
func CgroupOf(pid int) (string, error) {
	dir, err := cgroupOf(pid)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return dir, nil
}

func cgroupOf(pid int) (string, error) {
	m, err := mount()
	if err != nil {
		return "", err
	}
	name := "self"
	if pid > 0 {
		name = strconv.Itoa(pid)
	}
	text, err := os.ReadFile("/proc/" + name + "/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if group, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			below, err := filepath.Rel(m.root, group)
			if err != nil || strings.HasPrefix(below, "..") {
				below = "."
			}
			return filepath.Join(m.dir, below), nil
		}
	}
	return "", errNoCgroup
}
