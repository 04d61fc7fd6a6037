package link

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Places of a device at which BPF programs are attached that no queueing discipline
// shows (enum bpf_attach_type): Linux 6.6 and 6.7.
const (
	tcxIngress    = 46
	tcxEgress     = 47
	netkitPrimary = 54
	netkitPeer    = 55
)

const bpfProgQuery = 16 // enum bpf_cmd

// bpfQuery is the part of union bpf_attr for BPF_PROG_QUERY.
type bpfQuery struct {
	index       uint32
	attachType  uint32
	flags       uint32
	attachFlags uint32
	ids         uint64
	count       uint32
	_           uint32
	attached    uint64 // three lists that are not asked for
	links       uint64
	linkFlags   uint64
	revision    uint64
}

// attached are the BPF programs of a device. Only the machine's root may ask, and
// only it may attach any; for others there are none.
func attached(index int, netkit bool) ([]string, error) {
	places := []struct {
		name string
		at   uint32
	}{{"tcx ingress", tcxIngress}, {"tcx egress", tcxEgress}, {"netkit primary", netkitPrimary}, {"netkit peer", netkitPeer}}
	const ofAll = 2
	if !netkit {
		places = places[:ofAll]
	}
	var out []string
	for _, p := range places {
		ids, err := programs(index, p.at)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			out = append(out, fmt.Sprintf("%s program %d", p.name, id))
		}
	}
	return out, nil
}

// programs are the numbers of those at one place. A kernel that has no such place,
// or a device that is the peer of the one that has them, has none.
func programs(index int, at uint32) ([]uint32, error) {
	const most = 64 // the kernel's
	ids := make([]uint32, most)
	var pin runtime.Pinner // the kernel gets its address as a number
	pin.Pin(&ids[0])
	defer pin.Unpin()
	q := bpfQuery{index: uint32(index), attachType: at, ids: uint64(uintptr(unsafe.Pointer(&ids[0]))), count: most}
	_, _, errno := unix.Syscall(unix.SYS_BPF, bpfProgQuery, uintptr(unsafe.Pointer(&q)), unsafe.Sizeof(q))
	var err error = errno
	switch {
	case errno == 0:
		return ids[:min(q.count, most)], nil
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS),
		errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO), errors.Is(err, unix.EOPNOTSUPP):
		return nil, nil
	}
	return nil, err
}
