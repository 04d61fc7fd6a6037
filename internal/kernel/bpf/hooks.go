package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

// linux/netfilter/nfnetlink_hook.h
const (
	hookSubsystem = 12 // NFNL_SUBSYS_HOOK; its only message, NFNL_MSG_HOOK_GET, is 0
	hookNumber    = 1  // NFNLA_HOOK_HOOKNUM
	hookPriority  = 2
	hookInfo      = 6 // NFNLA_HOOK_CHAIN_INFO
	infoDesc      = 1 // NFNLA_HOOK_INFO_DESC
	infoType      = 2
	typeBPF       = 2
	programID     = 1 // NFNLA_HOOK_BPF_ID
)

// hook is a place in a namespace's packet filters, and the program there.
type hook struct {
	family, number uint32
	priority       int32
	program        uint32
}

// hooks lists the programs in the packet filters of the calling thread's network namespace.
func hooks() (map[hook]bool, error) {
	c, err := raw.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	out := map[hook]bool{}
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		for number := range uint32(unix.NF_INET_NUMHOOKS) {
			request := netlink.NewAttributeEncoder()
			request.ByteOrder = binary.BigEndian
			request.Uint32(hookNumber, number)
			data, err := request.Encode()
			if err != nil {
				return nil, err
			}
			msgs, err := c.Execute(netlink.Message{
				Header: netlink.Header{Type: hookSubsystem << 8,
					Flags: netlink.Request | netlink.Dump},
				Data: append([]byte{byte(family), unix.NFNETLINK_V0, 0, 0}, data...),
			})
			if err != nil {
				return nil, fmt.Errorf("list hooks of packet filters: %w", err)
			}
			for _, m := range msgs {
				h := hook{family: family, number: number}
				if err := h.parse(m.Data); err != nil {
					return nil, fmt.Errorf("list hooks of packet filters: %w", err)
				}
				if h.program != 0 {
					out[h] = true
				}
			}
		}
	}
	return out, nil
}

func (h *hook) parse(data []byte) error {
	const header = 4 // struct nfgenmsg
	if len(data) < header {
		return nil
	}
	a, err := netlink.NewAttributeDecoder(data[header:])
	if err != nil {
		return err
	}
	a.ByteOrder = binary.BigEndian
	for a.Next() {
		switch a.Type() {
		case hookPriority:
			h.priority = int32(a.Uint32())
		case hookInfo:
			a.Nested(h.parseInfo)
		}
	}
	return a.Err()
}

func (h *hook) parseInfo(a *netlink.AttributeDecoder) error {
	var kind, program uint32
	for a.Next() {
		switch a.Type() {
		case infoType:
			kind = a.Uint32()
		case infoDesc:
			a.Nested(func(a *netlink.AttributeDecoder) error {
				for a.Next() {
					if a.Type() == programID && len(a.Bytes()) == 4 {
						program = a.Uint32()
					}
				}
				return nil
			})
		}
	}
	if kind == typeBPF {
		h.program = program
	}
	return nil
}

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

// CgroupOf returns the directory of a process's control group (version 2). A pid of 0 is the
// caller.
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
