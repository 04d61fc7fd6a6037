package netns

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Found is a network namespace of this machine. It lives at least until Close.
type Found struct {
	ID  string // as /proc/PID/ns/net prints it
	PID int    // the lowest PID of a process in it; 0: no process, but a name
	fd  int
}

// FD returns the namespace's file descriptor, which Close closes.
func (f Found) FD() int { return f.fd }

// Close closes the file descriptor.
func (f Found) Close() error { return unix.Close(f.fd) }

// Visit runs g in the namespace, on a thread of its own. It needs CAP_SYS_ADMIN.
func (f Found) Visit(g func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends
		if err := unix.Setns(f.fd, unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter network namespace %s: %w", f.ID, err)
			return
		}
		done <- g()
	}()
	return <-done
}

// Find lists network namespaces: those of the processes that the caller sees, and those with a name
// (as by ip-netns) in the caller's mount namespace. The caller's own is the first. The caller
// closes all of them.
func Find() ([]Found, error) {
	own, err := find("/proc/self/ns/net", os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("open own network namespace: %w", err)
	}
	out := []Found{own}
	add := func(file string, pid int) {
		id, err := os.Readlink(file)
		if err == nil && slices.ContainsFunc(out, func(f Found) bool { return f.ID == id }) {
			return
		}
		f, err := find(file, pid)
		if err != nil {
			return // the process has ended, or belongs to another user
		}
		if slices.ContainsFunc(out, func(g Found) bool { return g.ID == f.ID }) {
			_ = f.Close()
			return
		}
		out = append(out, f)
	}
	for _, pid := range processes() {
		add(File(pid), pid)
	}
	for _, name := range names() {
		add(name, 0)
	}
	return out, nil
}

func find(file string, pid int) (Found, error) {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Found{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return Found{}, err
	}
	return Found{ID: fmt.Sprintf("net:[%d]", st.Ino), PID: pid, fd: fd}, nil
}

func processes() (out []int) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	all, _ := d.Readdirnames(-1)
	for _, name := range all {
		if pid, err := strconv.Atoi(name); err == nil {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

func names() (out []string) {
	for _, m := range mounts("/proc/thread-self/mountinfo") {
		out = append(out, m.file)
	}
	return out
}

// Names returns the names that ip-netns knows of network namespaces, by their IDs, in the caller's
// mount namespace.
func Names() map[string][]string {
	out := map[string][]string{}
	for _, m := range mounts("/proc/thread-self/mountinfo") {
		dir, name := filepath.Split(m.file)
		if dir == "/run/netns/" || dir == "/var/run/netns/" {
			if !slices.Contains(out[m.id], name) {
				out[m.id] = append(out[m.id], name)
			}
		}
	}
	return out
}

type mount struct{ id, file string }

func mounts(info string) (out []mount) {
	all, _ := os.ReadFile(info)
	for line := range strings.Lines(string(all)) {
		f := strings.Fields(line)
		const root, at = 3, 4
		if len(f) > at && strings.HasPrefix(f[root], "net:[") {
			out = append(out, mount{f[root], octal.Replace(f[at])})
		}
	}
	return out
}

// mountinfo's escapes
var octal = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// Held returns the IDs (see ID) of the network namespaces that process pid has open as files, or in
// which it has tap devices. The caller needs permission to trace the process (ptrace).
func Held(pid int) (ids []string, err error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list the files of process %d: %w", pid, err)
	}
	for _, e := range all {
		id, err := os.Readlink(dir + "/" + e.Name())
		if err == nil && strings.HasSuffix(id, "/net/tun") {
			id, err = ofTap(pid, e.Name())
		}
		if err == nil && strings.HasPrefix(id, "net:[") && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func ofTap(pid int, theirs string) (id string, err error) {
	n, err := strconv.Atoi(theirs)
	if err != nil {
		return "", err
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(process) }()
	tap, err := unix.PidfdGetfd(process, n, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(tap) }()
	ns, err := unix.IoctlRetInt(tap, unix.TUNGETDEVNETNS)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(ns) }()
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(ns))
}

// MountedAt returns the ID of the network namespace that is mounted at a file in the mount
// namespace of process pid, or "" if there is none or the caller may not read it.
func MountedAt(pid int, file string) string {
	for _, m := range mounts("/proc/" + strconv.Itoa(pid) + "/mountinfo") {
		if m.file == file {
			return m.id
		}
	}
	return ""
}
