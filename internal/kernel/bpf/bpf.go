// Package bpf lists the BPF programs that the kernel runs for packets and sockets, and explains why
// the kernel refuses toll's. It needs root of the machine itself.
package bpf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// enum bpf_cmd
const (
	progByID       = 13
	objInfo        = 15
	progQuery      = 16
	linkByID       = 30
	linkNextID     = 31
	queryEffective = 1 // BPF_F_QUERY_EFFECTIVE
)

// ErrUnreadable means that the caller lacks permission, or that the kernel lacks the query.
var ErrUnreadable = errors.New("not readable")

// None is the text of an empty list.
const None = "none"

type query struct {
	target      uint32
	attachType  uint32
	flags       uint32
	attachFlags uint32
	ids         uint64
	count       uint32
	_           uint32
	attached    uint64
	links       uint64
	linkFlags   uint64
	revision    uint64
}

func call(command uintptr, attr unsafe.Pointer, size uintptr) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(attr), size)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Attached returns the IDs of the programs that are attached to the device with the index, at a
// place (enum bpf_attach_type). The list is empty if the kernel lacks the place, if the programs
// are at the device's peer, or if the caller lacks permission.
func Attached(index int, at uint32) ([]uint32, error) {
	ids, err := programs(index, at, 0)
	if errors.Is(err, ErrUnreadable) {
		return nil, nil
	}
	return ids, err
}

func programs(target int, at, flags uint32) ([]uint32, error) {
	const most = 64
	ids := make([]uint32, most)
	var pin runtime.Pinner // the collector does not see the address in q
	pin.Pin(&ids[0])
	defer pin.Unpin()
	q := query{target: uint32(target), attachType: at, flags: flags,
		ids: uint64(uintptr(unsafe.Pointer(&ids[0]))), count: most}
	_, err := call(progQuery, unsafe.Pointer(&q), unsafe.Sizeof(q))
	switch {
	case err == nil:
		return ids[:min(q.count, most)], nil
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOSYS):
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV),
		errors.Is(err, unix.ENXIO),
		errors.Is(err, unix.EOPNOTSUPP):
		return nil, nil
	}
	return nil, err
}

// enum bpf_attach_type
type place struct {
	name string
	at   uint32
}

var ofCgroup = []place{{"ingress", 0}, {"egress", 1}, {"sock_create", 2}, {"sock_ops", 3},
	{"bind4", 8}, {"bind6", 9},
	{"connect4", 10}, {"connect6", 11}, {"post_bind4", 12}, {"post_bind6", 13}, {"sendmsg4", 14},
	{"sendmsg6", 15},
	{"sysctl", 18}, {"recvmsg4", 19}, {"recvmsg6", 20}, {"getsockopt", 21}, {"setsockopt", 22},
	{"getpeername4", 29}, {"getpeername6", 30}, {"getsockname4", 31}, {"getsockname6", 32},
	{"sock_release", 34}}

var ofNamespace = []place{{"flow_dissector", 17}, {"sk_lookup", 36}}

// OfCgroup describes the programs, except toll's, that run for the sockets of a process: those of
// its control group (version 2) and of all parents. A pid of 0 is the caller.
func OfCgroup(pid int) (string, error) {
	dir, err := CgroupOf(pid)
	if err != nil {
		return "", err
	}
	return InCgroup(dir)
}

// InCgroup is OfCgroup for the processes of the control group with a directory.
func InCgroup(dir string) (string, error) { return attachedTo(dir, ofCgroup, queryEffective) }

// OfNamespace describes the programs of the calling thread's network namespace.
func OfNamespace() (string, error) { return attachedTo("/proc/thread-self/ns/net", ofNamespace, 0) }

func attachedTo(name string, places []place, flags uint32) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	defer f.Close()
	var out []string
	for _, p := range places {
		ids, err := programs(int(f.Fd()), p.at, flags)
		if err != nil {
			return "", fmt.Errorf("list BPF programs of %s: %w", name, err)
		}
		for _, id := range ids {
			name, err := nameOf(id)
			if err != nil {
				return "", fmt.Errorf("read BPF program %d: %w", id, err)
			}
			if !strings.HasPrefix(name, ownPrefix) {
				out = append(out, strings.TrimSpace(
					fmt.Sprintf("%s program %d %s", p.name, id, name)))
			}
		}
	}
	return text(out), nil
}

func nameOf(id uint32) (string, error) {
	var info progInfo
	err := read(progByID, id, unsafe.Pointer(&info), unsafe.Sizeof(info))
	if errors.Is(err, unix.ENOENT) {
		return "", nil
	}
	name, _, _ := strings.Cut(string(info.name[:]), "\x00")
	return printable.Words(name), err
}

func text(list []string) string {
	if len(list) == 0 {
		return None
	}
	return strings.Join(list, ", ")
}

// enum bpf_link_type, without those of devices and control groups
var linkKinds = map[uint32]string{9: "struct_ops", netfilter: "netfilter", 14: "sockmap"}

const netfilter = 10

type progInfo struct {
	_    [64]byte
	name [16]byte
}

// toll's own programs (kernel/shortcut) redirect only chosen connections.
const ownPrefix = "toll_"

type linkInfo struct {
	kind, id, program, _ uint32
	family, hook         uint32
	priority             int32
	flags                uint32
	_                    [64]byte
}

// Links describes the machine's BPF links of kind sockmap and struct_ops. It includes those of
// netfilter if their network namespaces are not known.
func Links() (string, error) {
	here := sync.OnceValues(inside)
	all, err := links(func(l linkInfo) bool {
		if l.kind != netfilter {
			return true
		}
		_, err := here()
		return err != nil && l.foreign()
	})
	return text(all), err
}

// Netfilter describes the BPF links of kind netfilter in the calling thread's network namespace. If
// their namespaces are not known, everywhere is true, and it describes the links of all namespaces
// except toll's. If there are links, the kernel may load the module nfnetlink_hook.
func Netfilter() (all []string, everywhere bool, err error) {
	here := sync.OnceValues(inside)
	all, err = links(func(l linkInfo) bool {
		if l.kind != netfilter {
			return false
		}
		in, err := here()
		if everywhere = err != nil; everywhere {
			return l.foreign()
		}
		return in(l)
	})
	return all, everywhere, err
}

// inside returns a function that reports whether a netfilter link is in the calling thread's
// network namespace. It returns an error if that is not known: without
// CONFIG_NETFILTER_NETLINK_HOOK, and without BTF or the permission to load programs.
func inside() (func(linkInfo) bool, error) {
	here, err := hooks()
	if err == nil {
		return func(l linkInfo) bool {
			return here[hook{l.family, l.hook, l.priority, l.program}]
		}, nil
	}
	all, errAll := spaces()
	inode, errOwn := own()
	if err := errors.Join(err, errAll, errOwn); errAll != nil || errOwn != nil {
		return nil, err
	}
	return func(l linkInfo) bool { return all[l.id] == inode }, nil
}

// foreign reports whether the program is not toll's.
func (l linkInfo) foreign() bool {
	name, err := nameOf(l.program)
	return err != nil || !strings.HasPrefix(name, ownPrefix)
}

func links(chosen func(linkInfo) bool) (out []string, err error) {
	for id := uint32(0); ; {
		next := struct{ start, next, flags uint32 }{start: id}
		_, err := call(linkNextID, unsafe.Pointer(&next), unsafe.Sizeof(next))
		if errors.Is(err, unix.ENOENT) {
			break
		}
		if err != nil { // EPERM, or EINVAL before Linux 5.8
			return nil, fmt.Errorf("list BPF links: %w: %w", ErrUnreadable, err)
		}
		id = next.next
		info, err := readLink(id)
		// The link was removed, or is not attached yet.
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EAGAIN) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read BPF link %d: %w", id, err)
		}
		name, ok := linkKinds[info.kind]
		switch {
		case !ok || !chosen(info):
		case info.kind == netfilter:
			out = append(out, fmt.Sprintf("%s link %d, program %d (family %d hook %d priority %d)",
				name, id, info.program,
				info.family, info.hook, info.priority))
		default:
			out = append(out, fmt.Sprintf("%s link %d, program %d", name, id, info.program))
		}
	}
	slices.Sort(out)
	return out, nil
}

func readLink(id uint32) (info linkInfo, err error) {
	err = read(linkByID, id, unsafe.Pointer(&info), unsafe.Sizeof(info))
	return info, err
}

func read(command uintptr, id uint32, info unsafe.Pointer, size uintptr) error {
	open := struct{ id, next, flags uint32 }{id: id}
	fd, err := call(command, unsafe.Pointer(&open), unsafe.Sizeof(open))
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var pin runtime.Pinner
	pin.Pin(info)
	defer pin.Unpin()
	ask := struct {
		fd, size uint32
		info     uint64
	}{uint32(fd), uint32(size), uint64(uintptr(info))}
	_, err = call(objInfo, unsafe.Pointer(&ask), unsafe.Sizeof(ask))
	return err
}
