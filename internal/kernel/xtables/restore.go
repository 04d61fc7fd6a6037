package xtables

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

// Save reads the tables of the calling thread's namespace. It creates none.
func Save() (out []Saved, err error) {
	err = each(func(f family, name string) error {
		head, entries, err := f.entries(name)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return err
		}
		out = append(out, Saved{Name: name, Six: f.domain == unix.AF_INET6, Info: head.bytes(),
			Entries: entries})
		return nil
	})
	return out, err
}

func (i info) bytes() []byte { return (*[unsafe.Sizeof(i)]byte)(unsafe.Pointer(&i))[:] }

var errDamaged = errors.New("the table is damaged")

// maxEntries limits the memory that the kernel spends on a table, in bytes. A rule takes about 300.
const maxEntries = 32 << 20

func (s Saved) head() (info, error) {
	if len(s.Info) != int(unsafe.Sizeof(info{})) || len(s.Name) >= nameSize ||
		len(s.Entries) > maxEntries {
		return info{}, errDamaged
	}
	head := *(*info)(unsafe.Pointer(&s.Info[0]))
	if int(head.size) != len(s.Entries) {
		return info{}, errDamaged
	}
	return head, nil
}

func (s Saved) family() family {
	if s.Six {
		return families[1]
	}
	return families[0]
}

// Table returns the table's name as in "iptables-legacy filter".
func (s Saved) Table() string { return s.family().program + " " + s.Name }

// struct ipt_replace and ip6t_replace; the entries follow.
type replace struct {
	name       [nameSize]byte
	validHooks uint32
	entries    uint32
	size       uint32
	first      [hooks]uint32
	policies   [hooks]uint32
	counters   uint32 // the number of the replaced entries
	into       uintptr
}

// Restore replaces the table in the calling thread's namespace. Counters begin at 0. The kernel
// accepts all rules or none. If it refuses them, Restore tries again with doubtful rules (see
// Doubt) that never match; if the kernel accepts that, Restore returns these rules as refused.
func (s Saved) Restore() (refused []raw.Refused, err error) {
	err = s.replace()
	if err == nil {
		return nil, nil
	}
	all := s.rules()
	words := doubts(all, Known{}, false)
	for i, word := range words {
		if word != "" {
			refused = append(refused, raw.Refused{What: fmt.Sprintf("rule %d of %s %s (%s)",
				all[i].number, s.Table(), all[i].chain, word), Err: err})
		}
	}
	open := func(int) Effect { return Open }
	if len(refused) > 0 && s.assume(all, words, open, false, Known{}).replace() == nil {
		return refused, nil
	}
	return nil, fmt.Errorf("write table %s: %w", s.Table(), err)
}

func (s Saved) replace() error {
	head, err := s.head()
	if err != nil {
		return err
	}
	f := s.family()
	now, _, err := f.entries(s.Name) // also creates it
	if err != nil {
		return err
	}
	fd, err := unix.Socket(f.domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	old := make([]byte, countSize*int(now.entries))
	r := replace{validHooks: head.validHooks, entries: head.entries, size: head.size,
		first: head.first, policies: head.policies, counters: now.entries,
		into: uintptr(unsafe.Pointer(unsafe.SliceData(old)))}
	copy(r.name[:], s.Name)
	b := append((*[unsafe.Sizeof(r)]byte)(unsafe.Pointer(&r))[:], s.Entries...)
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(f.level), setReplace,
		uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0)
	runtime.KeepAlive(old)
	if errno != 0 {
		return errno
	}
	return nil
}

// Saved is a table of iptables-legacy or ip6tables-legacy.
type Saved struct {
	Name    string `json:"name"`
	Six     bool   `json:"ipv6,omitempty"`
	Info    []byte `json:"info"`    // struct ipt_getinfo
	Entries []byte `json:"entries"` // as IPT_SO_GET_ENTRIES returns them
}
