package jail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
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
	m := &maker{dir: -1}
	at := string(o.Dir)
	if at != "/" && filepath.IsAbs(at) {
		m.dir, _ = unix.Open(at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	err = mount("tmpfs", newRoot, "tmpfs", safe,
		fmt.Sprintf("size=%d,nr_inodes=20000,mode=755", diskSize))
	if err != nil {
		return "", err
	}
	for _, step := range []func() error{m.directories, m.layers, m.files,
		func() error { return m.home(at) }, m.hideLayers, m.devices, func() error { return m.kernel(o) }, m.standIns, enter} {
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

type maker struct {
	dir int // the directory in which toll was started; -1: none
	n   int // number of overlays
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s%s: %w", kind, strings.TrimPrefix(target, newRoot), err)
	}
	return nil
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
	return mount("tmpfs", newRoot+layers, "tmpfs", safe, fmt.Sprintf("size=%d,nr_inodes=20000", diskSize))
}

// hideLayers takes the overlays' own directories from the script's sight. The overlays keep them.
func (m *maker) hideLayers() error {
	if err := unix.Unmount(newRoot+layers, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("hide the overlays' directories: %w", err)
	}
	return os.Remove(newRoot + layers)
}

// files shows the machine's programs and settings. Pipes and sockets in an overlay are not those of
// the directory below.
func (m *maker) files() error {
	all, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range all {
		name := e.Name()
		shown := slices.Contains([]string{"usr", "opt", "bin", "sbin", "nix", "gnu"}, name) ||
			strings.HasPrefix(name, "lib")
		switch {
		case !shown:
		case e.Type() == fs.ModeSymlink:
			to, err := os.Readlink("/" + name)
			if err == nil {
				err = os.Symlink(to, newRoot+"/"+name)
			}
			if err != nil {
				return err
			}
		case e.IsDir():
			if err := m.overlay("/"+name, "/"+name, false); err != nil {
				return err
			}
		}
	}
	return m.overlay("/etc", "/etc", true)
}

// home shows the directory in which toll was started, unless it is shown already or is the
// kernel's.
func (m *maker) home(dir string) error {
	if m.dir < 0 {
		return nil
	}
	defer func() { _ = unix.Close(m.dir) }()
	for _, shown := range []string{"/usr", "/opt", "/etc", "/bin", "/sbin", "/lib", "/nix", "/gnu",
		"/proc", "/sys", "/dev"} {
		if dir == shown || strings.HasPrefix(dir, shown+"/") {
			return nil
		}
	}
	if dir == "/run" || dir == "/var" {
		return nil
	}
	// Where it cannot be shown, it is empty.
	_ = m.overlay(fmt.Sprintf("/proc/self/fd/%d", m.dir), dir, true)
	return nil
}

// overlay shows a directory at another path, read-only or with changes that end with the jail.
func (m *maker) overlay(from, to string, writable bool) error {
	to = filepath.Join(newRoot, to)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	m.n++
	under := fmt.Sprintf("%s%s/%d", newRoot, layers, m.n)
	for _, d := range []string{"/upper", "/work", "/empty"} {
		if err := os.MkdirAll(under+d, 0o755); err != nil {
			return err
		}
	}
	flags, data := uintptr(safe|unix.MS_RDONLY), "lowerdir="+from+":"+under+"/empty"
	if writable {
		flags, data = safe, "userxattr,lowerdir="+from+",upperdir="+under+"/upper,workdir="+under+"/work"
	}
	return mount("overlay", to, "overlay", flags, data)
}

func (m *maker) devices() error {
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		at := newRoot + "/dev/" + name
		if err := os.WriteFile(at, nil, 0o644); err != nil {
			return err
		}
		if err := mount("/dev/"+name, at, "", unix.MS_BIND, ""); err != nil {
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
	const proc, sys = newRoot + "/proc", newRoot + "/sys"
	if err := mount("proc", proc, "proc", safe|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := mount("sysfs", sys, "sysfs", safe|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := openDevices(sys + "/devices/virtual/net"); err != nil {
		return err
	}
	if err := readOnly(sys, safe|unix.MS_NOEXEC); err != nil {
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

// openDevices mounts the settings of the namespace's devices, which a script may write. The directory
// above is the whole machine's.
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
