package link

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// SetRPS steers the device's received packets to all CPUs, or to none in
// particular (the CPU that received them). The kernel has no netlink message
// for it: it is a file of sysfs, and of a sysfs that was mounted in the
// device's namespace. That mount is attached nowhere and ends with the call.
func SetRPS(name string, on bool) error {
	cpus := "0"
	if on {
		var err error
		if cpus, err = allCPUs(); err != nil {
			return fmt.Errorf("set rps of %s: %w", name, err)
		}
	}
	root, err := mountSysfs()
	if err != nil {
		return fmt.Errorf("set rps of %s: %w", name, err)
	}
	err = writeAt(root, "class/net/"+name+"/queues/rx-0/rps_cpus", cpus)
	if err := errors.Join(err, unix.Close(root)); err != nil {
		return fmt.Errorf("set rps of %s: %w", name, err)
	}
	return nil
}

// writeAt writes a file of the mount at root.
func writeAt(root int, file, text string) error {
	fd, err := unix.Openat(root, file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(text))
	return errors.Join(err, unix.Close(fd))
}

// mountSysfs returns a descriptor of the root of a sysfs that shows the
// calling thread's network namespace.
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

// allCPUs is the mask of the CPUs that are online.
func allCPUs() (string, error) {
	b, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return "", fmt.Errorf("read online CPUs: %w", err)
	}
	return mask(strings.TrimSpace(string(b)))
}

// mask turns a list of CPUs, "0-3,8", into a mask as sysfs takes it: groups of
// 32 bits in hexadecimal, the highest first.
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

// steering reads which CPUs devices' packets are steered to.
type steering struct{ root int }

// openSteering returns one that reads nothing where sysfs cannot be mounted: there
// only the machine's root could steer.
func openSteering() *steering {
	root, err := mountSysfs()
	if err != nil {
		root = -1
	}
	return &steering{root}
}

// read is the device's mask of CPUs; "" if it is not to be read.
func (s *steering) read(name string) string {
	if s.root < 0 {
		return ""
	}
	fd, err := unix.Openat(s.root, "class/net/"+name+"/queues/rx-0/rps_cpus", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	b := make([]byte, os.Getpagesize())
	n, err := unix.Read(fd, b)
	if errors.Join(err, unix.Close(fd)) != nil {
		return ""
	}
	return strings.TrimSpace(string(b[:n]))
}

func (s *steering) close() {
	if s.root >= 0 {
		_ = unix.Close(s.root)
	}
}
