package jail

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine"
)

// newRoot is where the jail's root directory is made. The mount namespace is the jail's own.
const newRoot = "/sys"

const (
	diskSize = 64 << 20
	// programs has stand-ins for programs that do not work in the jail.
	programs = "/run/toll/bin"

	safe = unix.MS_NOSUID | unix.MS_NODEV

	layers = "/.layers" // below newRoot
)

// makeRoot makes the jail's root directory and enters it. It returns the directory in which the
// script starts. /proc is still writable: see closeProc.
func makeRoot(o order) (dir string, err error) {
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "", err
	}
	// The paths below a covered directory are gone after it is covered.
	m := &maker{dir: -1, view: view{mounts: machine.Machine{}.Mounts()}}
	m.shell, _ = filepath.EvalSymlinks(shell)
	at := string(o.Dir)
	if at != "/" && filepath.IsAbs(at) {
		m.dir, _ = unix.Open(at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	if err := unix.Mount("tmpfs", newRoot, "tmpfs", safe,
		fmt.Sprintf("size=%d,nr_inodes=20000,mode=755", diskSize)); err != nil {
		return "", fmt.Errorf("mount tmpfs over %s: %w", newRoot, err)
	}
	for _, step := range []func() error{m.directories, m.layers, m.files, m.linked,
		func() error { return m.home(at) }, m.hideLayers, m.devices, func() error { return m.kernel(o) },
		m.standIns, enter, m.lacking} {
		if err := step(); err != nil {
			return "", err
		}
	}
	dir = filepath.Clean(at)
	if unix.Chdir(dir) != nil {
		dir = "/"
	}
	return dir, unix.Chdir("/")
}

const shell = "/bin/sh"

type maker struct {
	view
	dir   int    // the directory in which toll was started; -1: none
	shell string // where the machine has it
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s at %s: %w", cmp.Or(kind, source, "again"), inJail(target), err)
	}
	return nil
}

// inJail returns the path that a script sees.
func inJail(target string) string {
	return cmp.Or(strings.TrimPrefix(target, newRoot), "/")
}

// readOnly makes a mount read-only.
func readOnly(at string, flags uintptr) error {
	return mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|flags, "")
}

func (m *maker) directories() error {
	for _, d := range []string{"dev", "dev/shm", "etc", "home", "media", "mnt", "proc", "root", "run",
		"run/lock", "run/netns", "srv", "sys", "tmp", "var", "var/lib", "var/log", "var/tmp",
		"var/cache", programs, layers} {
		if err := os.MkdirAll(filepath.Join(newRoot, d), 0o755); err != nil {
			return err
		}
	}
	err := os.Chmod(newRoot+"/tmp", 0o777|fs.ModeSticky)
	if err == nil {
		err = os.Symlink("/run", newRoot+"/var/run")
	}
	if err != nil {
		return err
	}
	to, err := os.Readlink("/run/current-system") // of NixOS
	if err == nil {
		err = os.Symlink(to, newRoot+"/run/current-system")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (m *maker) layers() error {
	return mount("tmpfs", newRoot+layers, "tmpfs", safe,
		fmt.Sprintf("size=%d,nr_inodes=20000", diskSize))
}

// hideLayers takes the overlays' own directories from the script's sight. The overlays keep them.
func (m *maker) hideLayers() error {
	if err := unix.Unmount(newRoot+layers, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("hide the overlays' directories: %w", err)
	}
	return os.Remove(newRoot + layers)
}

// files shows the machine's programs and settings. A symbolic link leads where it leads on the
// machine, because linked shows that.
func (m *maker) files() error {
	all, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range all {
		name := "/" + e.Name()
		if !slices.Contains([]string{"/usr", "/opt", "/bin", "/sbin", "/nix", "/gnu"}, name) &&
			!strings.HasPrefix(name, "/lib") {
			continue
		}
		switch {
		case e.Type() == fs.ModeSymlink:
			err = relink(name, newRoot+name)
		case e.IsDir():
			err = m.show(tree{name, name, false})
		}
		if err != nil {
			return err
		}
	}
	return m.show(tree{"/etc", "/etc", true})
}

// linked shows the directories to which symbolic links in place of a directory of programs lead, as
// /usr/local of Fedora's Atomic Desktops does.
func (m *maker) linked() error {
	for _, link := range []string{"/usr", "/opt", "/bin", "/sbin", "/lib", "/lib64", "/usr/local",
		"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/local/bin", "/usr/local/sbin"} {
		to, err := filepath.EvalSymlinks(link)
		if err != nil || m.has(to) || to == "/" {
			continue
		}
		if err := m.show(tree{to, to, false}); err != nil {
			return err
		}
	}
	return nil
}

// has reports whether a directory is shown, or is one of the kernel's or of the jail.
func (m *maker) has(dir string) bool {
	return dir == "/run" || dir == "/var" || slices.ContainsFunc(
		append([]string{"/proc", "/sys", "/dev"}, m.shown...),
		func(s string) bool { return below(dir, s) })
}

// home shows the directory in which toll was started.
func (m *maker) home(dir string) error {
	if m.dir < 0 {
		return nil
	}
	defer func() { _ = unix.Close(m.dir) }()
	if !m.has(dir) {
		// Where it cannot be shown, it is empty.
		_ = m.show(tree{fmt.Sprintf("/proc/self/fd/%d", m.dir), dir, true})
	}
	return nil
}

// lacking returns the reason why the shell is not in the jail, or nil if it is.
func (m *maker) lacking() error {
	_, err := os.Stat(shell)
	if err == nil {
		return nil
	}
	return cmp.Or(m.why(m.shell), m.why(shell), err)
}

func (m *maker) devices() error {
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		at := newRoot + "/dev/" + name
		if err := os.WriteFile(at, nil, 0o644); err != nil {
			return err
		}
		err := mount("/dev/"+name, at, "", unix.MS_BIND, "")
		if errors.Is(err, unix.ENOENT) && name != "null" { // a container may lack it
			continue
		}
		if err != nil {
			return err
		}
		// A device may be written, but its mode and owner are the machine's.
		if err := readOnly(at, unix.MS_NOSUID|unix.MS_NOEXEC); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		if err := os.Symlink("/proc/self/fd"+to, newRoot+"/dev/"+name); err != nil {
			return err
		}
	}
	return nil
}

// kernel mounts /proc and /sys, in which only settings of the copied namespaces may be written, and
// the named namespaces.
func (m *maker) kernel(o order) error {
	const proc = newRoot + "/proc"
	if err := m.mountProc(proc); err != nil {
		return err
	}
	if err := m.mountSys(newRoot + "/sys"); err != nil {
		return err
	}
	for _, p := range o.Places {
		for _, name := range p.Names {
			if name == "." || name == ".." || filepath.Base(name) != name {
				return fmt.Errorf("no namespace can have the name %q", name)
			}
			at := newRoot + "/run/netns/" + name
			if err := os.WriteFile(at, nil, 0o444); err != nil {
				return err
			}
			err := mount(fmt.Sprintf("/proc/self/fd/%d", p.FD), at, "", unix.MS_BIND, "")
			if err != nil {
				return err
			}
		}
	}
	return in(o.Places, func(Place) error { return openSettings(proc + "/sys/net") })
}

// forMounts lists the directories of /proc that have nothing but a mount.
var forMounts = []string{"/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd"}

// mountProc mounts the jail's /proc. A user namespace may not have one where the machine's is
// covered in part.
func (m *maker) mountProc(at string) error {
	err := mount("proc", at, "proc", safe|unix.MS_NOEXEC, "")
	if i := slices.IndexFunc(m.mounts, func(x machine.Mount) bool {
		return x.Point != "/proc" && below(x.Point, "/proc") && !slices.Contains(forMounts, x.Point)
	}); i >= 0 && errors.Is(err, unix.EPERM) {
		return fmt.Errorf("the mount at %s hides a part of /proc: %w", m.mounts[i].Point, err)
	}
	return err
}

// mountSys mounts the jail's /sys, in which a script may write settings of devices. Where the
// machine's is read-only, it may not, and where a part is covered, there is none.
func (m *maker) mountSys(at string) error {
	err := mount("sysfs", at, "sysfs", safe|unix.MS_NOEXEC, "")
	if errors.Is(err, unix.EPERM) {
		if mount("sysfs", at, "sysfs", safe|unix.MS_NOEXEC|unix.MS_RDONLY, "") != nil {
			return os.Chmod(at, 0o555)
		}
		return nil
	}
	if err == nil {
		err = openDevices(at + "/devices/virtual/net")
	}
	if err == nil {
		err = readOnly(at, safe|unix.MS_NOEXEC)
	}
	return err
}

// openDevices mounts the settings of the namespace's devices, which a script may write. The
// directory above is the whole machine's.
func openDevices(dir string) error {
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range all {
		at := dir + "/" + e.Name()
		if err := mount(at, at, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

// in calls f in each place, on the calling thread, which returns to its own namespace.
func in(places []Place, f func(Place) error) error {
	own, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(own) }()
	for _, p := range places {
		if err := unix.Setns(p.FD, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a namespace: %w", err)
		}
		if err := f(p); err != nil {
			return err
		}
	}
	return unix.Setns(own, unix.CLONE_NEWNET)
}

// openSettings mounts those settings of the calling thread's network namespace that a script may
// write. Others, such as nf_hooks_lwtunnel, may be the whole machine's although the kernel lets
// root of a user namespace write them.
func openSettings(dir string) error {
	tracked, err := filepath.Glob(dir + "/netfilter/nf_conntrack_*")
	if err != nil {
		return err
	}
	for _, name := range []string{"core", "ipv4", "ipv6", "bridge"} {
		tracked = append(tracked, dir+"/"+name)
	}
	for _, at := range tracked {
		err := mount(at, at, "", unix.MS_BIND, "")
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

// closeProc makes /proc read-only, except for what openSettings mounted.
func closeProc() error {
	if err := limitProcesses(); err != nil {
		return fmt.Errorf("limit processes: %w", err)
	}
	return readOnly("/proc", safe|unix.MS_NOEXEC)
}

// enter makes newRoot the root directory and detaches the old one.
func enter() error {
	if err := unix.Chdir(newRoot); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root directory: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach the machine's files: %w", err)
	}
	return unix.Chdir("/")
}

// sudoText runs its arguments, because a script is root already.
const sudoText = `#!/bin/sh
while :; do
	case "$1" in
	-u | -g | -h | -p | -C | -D | -R | -T) shift 2 ;;
	--) shift; break ;;
	-*) shift ;;
	*=*) export "$1"; shift ;;
	*) break ;;
	esac
done
[ $# -eq 0 ] || exec "$@"
`

// ipText enters a named namespace without the mounts that ip makes for that.
const ipText = `#!/bin/sh
options= name= run=
while :; do
	case "$1" in
	-n | -netns | --netns) name=$2; shift 2 ;;
	-f | -family | -l | -loops | -rc | -rcvbuf) options="$options $1 $2"; shift 2 ;;
	-*) options="$options $1"; shift ;;
	*) break ;;
	esac
done
case "$1" in
net | netn | netns) [ "$2" = exec ] && run=yes ;;
esac
if [ -n "$run" ]; then
	name=$3
	shift 3
	exec nsenter --net="/run/netns/$name" -- "$@"
elif [ -n "$name" ]; then
	exec nsenter --net="/run/netns/$name" -- %[1]s $options "$@"
fi
exec %[1]s $options "$@"
`

func (m *maker) standIns() error {
	write := func(name, text string) error {
		return os.WriteFile(filepath.Join(newRoot, programs, name), []byte(text), 0o755)
	}
	err := errors.Join(write("sudo", sudoText), write("doas", sudoText))
	for _, dir := range []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin",
		"/run/current-system/sw/bin"} {
		if _, there := os.Stat(dir + "/ip"); there == nil {
			return errors.Join(err, write("ip", fmt.Sprintf(ipText, dir+"/ip")))
		}
	}
	return err
}
