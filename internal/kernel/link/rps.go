package link

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

type Steering struct{ queues, file string }

// RPS steers received packets, XPS steers sent ones.
var (
	RPS = Steering{"rx-", "rps_cpus"}
	XPS = Steering{"tx-", "xps_cpus"}
)

// Steer steers the packets of all queues of the device to all CPUs or, with off, as by default. It
// returns an error if the kernel does not adopt that. During the call it uses a private mount of
// sysfs.
func (s Steering) Steer(name string, on bool) error {
	cpus := "0"
	if on {
		var err error
		if cpus, err = allCPUs(); err != nil {
			return fmt.Errorf("set %s of %s: %w", s.file, name, err)
		}
	}
	if err := withSysfs(func(root int) error { return s.steer(root, name, cpus) }); err != nil {
		return fmt.Errorf("set %s of %s: %w", s.file, name, err)
	}
	return nil
}

func (s Steering) steer(root int, name, cpus string) error {
	dir := "class/net/" + name + "/queues/"
	for i := 0; ; i++ {
		file := fmt.Sprintf("%s%s%d/%s", dir, s.queues, i, s.file)
		err := writeAt(root, file, cpus)
		if i > 0 && errors.Is(err, unix.ENOENT) {
			if _, gone := readAt(root, file); errors.Is(gone, unix.ENOENT) {
				return nil
			}
		}
		if err != nil {
			return err
		}
		got, err := readAt(root, file)
		if err != nil {
			return err
		}
		if isZero := strings.Trim(got, "0,") == ""; isZero != (cpus == "0") {
			return fmt.Errorf("the kernel kept %q for %s", got, cpus)
		}
	}
}

// SetThreaded sets whether the device's NAPI runs in kernel threads. It returns an error if the
// kernel does not adopt that, and EOPNOTSUPP for a device without NAPI.
func SetThreaded(name string, on bool) error {
	value := "0"
	if on {
		value = "1"
	}
	err := withSysfs(func(root int) error {
		file := "class/net/" + name + "/threaded"
		if err := writeAt(root, file, value); err != nil {
			return err
		}
		got, err := readAt(root, file)
		if err == nil && got != value {
			err = fmt.Errorf("the kernel kept %q", got)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("set threaded NAPI of %s: %w", name, err)
	}
	return nil
}

// withSysfs calls f with a writable mount of sysfs. Container engines make sysfs read-only, which
// applies to all its mounts in a network namespace; withSysfs restores that.
func withSysfs(f func(root int) error) error {
	root, err := mountSysfs()
	if err != nil {
		return err
	}
	var is unix.Statfs_t
	if err := unix.Fstatfs(root, &is); err != nil {
		return errors.Join(err, unix.Close(root))
	}
	if is.Flags&unix.ST_RDONLY == 0 {
		return errors.Join(f(root), unix.Close(root))
	}
	if err := remount(root, "rw"); err != nil {
		return errors.Join(err, unix.Close(root))
	}
	return errors.Join(f(root), remount(root, "ro"), unix.Close(root))
}

func remount(root int, flag string) error {
	fs, err := unix.Fspick(root, "", unix.FSPICK_CLOEXEC|unix.FSPICK_EMPTY_PATH)
	if err == nil {
		err = errors.Join(unix.FsconfigSetFlag(fs, flag), unix.FsconfigReconfigure(fs),
			unix.Close(fs))
	}
	if err != nil {
		return fmt.Errorf("remount sysfs %s: %w", flag, err)
	}
	return nil
}

func readAt(root int, file string) (string, error) {
	fd, err := unix.Openat(root, file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	b := make([]byte, os.Getpagesize())
	n, err := unix.Read(fd, b)
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b[:n])), nil
}

func writeAt(root int, file, text string) error {
	fd, err := unix.Openat(root, file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(text))
	return errors.Join(err, unix.Close(fd))
}

func mountSysfs() (int, error) {
	fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("mount sysfs: %w", err)
	}
	root := -1
	if err = unix.FsconfigCreate(fs); err == nil {
		root, err = unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	}
	if err := errors.Join(err, unix.Close(fs)); err != nil {
		return -1, fmt.Errorf("mount sysfs: %w", err)
	}
	return root, nil
}

func allCPUs() (string, error) {
	b, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return "", fmt.Errorf("read online CPUs: %w", err)
	}
	return mask(strings.TrimSpace(string(b)))
}

func mask(list string) (string, error) {
	var words []uint32
	for part := range strings.SplitSeq(list, ",") {
		var first, last int
		if n, _ := fmt.Sscanf(part, "%d-%d", &first, &last); n == 1 {
			last = first
		} else if n != 2 {
			return "", fmt.Errorf("read list of CPUs %q: %q", list, part)
		}
		const most = 1 << 16
		if first < 0 || last < first || last >= most {
			return "", fmt.Errorf("read list of CPUs %q: %q", list, part)
		}
		for c := first; c <= last; c++ {
			for len(words) <= c/32 {
				words = append(words, 0)
			}
			words[c/32] |= 1 << (c % 32)
		}
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[len(words)-1-i] = fmt.Sprintf("%x", w)
		if i < len(words)-1 {
			out[len(words)-1-i] = fmt.Sprintf("%08x", w)
		}
	}
	return strings.Join(out, ","), nil
}

// SteeredDevices returns the names of the namespace's devices that leave received packets to CPUs of
// a mask (rps_cpus), by index.
func SteeredDevices() (out map[int]string, err error) {
	root, err := mountSysfs()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unix.Close(root)) }()
	links, err := listLinks()
	if err != nil {
		return nil, err
	}
	out = map[int]string{}
	for _, l := range links {
		name := l.Attrs().Name
		for i := 0; ; i++ {
			cpus, err := readAt(root, fmt.Sprintf("class/net/%s/queues/rx-%d/rps_cpus", name, i))
			if err != nil { // there is no further queue
				break
			}
			if strings.Trim(cpus, "0,") != "" {
				out[l.Attrs().Index] = name
				break
			}
		}
	}
	return out, nil
}

type steering struct{ root int }

func openSteering() *steering {
	root, err := mountSysfs()
	if err != nil {
		root = -1
	}
	return &steering{root}
}

func (s *steering) read(name string) string {
	if s.root < 0 {
		return ""
	}
	cpus, err := readAt(s.root, "class/net/"+name+"/queues/rx-0/rps_cpus")
	if err != nil {
		return ""
	}
	return cpus
}

func (s *steering) close() {
	if s.root >= 0 {
		_ = unix.Close(s.root)
	}
}
