// Package xtables reads and copies the rules of iptables-legacy and ip6tables-legacy, which
// nf_tables does not show, in the calling thread's network namespace. Call it inside netns.NS.Do.
package xtables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Table is a table of one family.
type Table struct {
	Name string // "ip6tables-legacy filter"
	// Text has the number of entries, including chains' policies, and a checksum that ignores
	// counters.
	Text string
}

// linux/netfilter_ipv4/ip_tables.h, linux/netfilter_ipv6/ip6_tables.h
type family struct {
	program string
	names   string // file that lists the existing tables; querying another one would create it
	domain  int
	level   int
	address int  // size of an address; an entry begins with four addresses
	inverse int  // offset of the flags that invert an entry's matches, after its other flags
	goesTo  byte // IPT_F_GOTO, IP6T_F_GOTO
	next    int  // offset of an entry's length, after that of its target's position
	counts  int  // offset of an entry's counters, the end of its head
}

var families = []family{
	{"iptables-legacy", "/proc/thread-self/net/ip_tables_names", unix.AF_INET, unix.SOL_IP,
		4, 83, 2, 90, 96},
	{"ip6tables-legacy", "/proc/thread-self/net/ip6_tables_names", unix.AF_INET6, unix.SOL_IPV6,
		16, 132, 4, 142, 152},
}

const (
	getInfo    = 64 // IPT_SO_GET_INFO, IP6T_SO_GET_INFO
	getEntries = 65
	setReplace = 64 // IPT_SO_SET_REPLACE, IP6T_SO_SET_REPLACE
	nameSize   = 32 // XT_TABLE_MAXNAMELEN
	countSize  = 16 // struct xt_counters
)

// struct ipt_getinfo and ip6t_getinfo
type info struct {
	name       [nameSize]byte
	validHooks uint32
	first      [hooks]uint32 // the positions of the base chains
	policies   [hooks]uint32 // and of their last entries
	entries    uint32
	size       uint32
}

const hooks = 5 // NF_INET_NUMHOOKS

// List lists the tables of both families in a fixed order. Without CAP_NET_ADMIN the Text reports
// that the table is unreadable.
func List() (out []Table, err error) {
	err = each(func(f family, name string) error {
		text, err := f.read(name)
		switch {
		case errors.Is(err, unix.ENOENT):
			return nil
		case errors.Is(err, unix.EPERM), errors.Is(err, unix.EAFNOSUPPORT):
			text = "not readable: " + err.Error()
		case err != nil:
			return err
		}
		out = append(out, Table{Name: f.program + " " + name, Text: text})
		return nil
	})
	return out, err
}

// each calls f for each table of the namespace, in a fixed order.
func each(f func(family, string) error) error {
	for _, x := range families {
		names, err := os.ReadFile(x.names)
		if err != nil {
			continue
		}
		tables := strings.Fields(string(names))
		slices.Sort(tables)
		for _, name := range tables {
			if err := f(x, name); err != nil {
				return fmt.Errorf("read table %s of %s: %w", name, x.program, err)
			}
		}
	}
	return nil
}

// Loaded reports whether the namespace has a table, or may have it; six means the table for IPv6.
// Callers check this first, because reading the rules of a table that does not exist creates it.
func Loaded(table string, six bool) bool {
	f := families[0]
	if six {
		f = families[1]
	}
	names, err := os.ReadFile(f.names)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err != nil || slices.Contains(strings.Fields(string(names)), table)
}

func (f family) read(table string) (string, error) {
	_, entries, err := f.entries(table)
	return f.text(entries), err
}

// entries reads a table. If the namespace lacks it, the kernel creates it.
func (f family) entries(table string) (head info, entries []byte, err error) {
	fd, err := unix.Socket(f.domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return head, nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	const tries = 5 // the table may grow between the two calls
	for range tries {
		head = info{}
		copy(head.name[:nameSize-1], table)
		err = getsockopt(fd, f.level, getInfo, unsafe.Pointer(&head), unsafe.Sizeof(head))
		if err != nil {
			return head, nil, err
		}
		const header = nameSize + 8 // struct ipt_get_entries: name, size, padding
		blob := make([]byte, header+int(head.size))
		copy(blob[:nameSize-1], table)
		binary.NativeEndian.PutUint32(blob[nameSize:], head.size)
		err = getsockopt(fd, f.level, getEntries, unsafe.Pointer(&blob[0]), uintptr(len(blob)))
		if err == nil {
			return head, blob[header:], nil
		}
		if !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return head, nil, err
}

func (f family) text(entries []byte) string {
	n, sum := 0, uint32(0)
	for len(entries) >= f.counts+countSize {
		size := int(binary.NativeEndian.Uint16(entries[f.next:]))
		if size < f.counts+countSize || size > len(entries) {
			break
		}
		sum = crc32.Update(sum, crc32.IEEETable, entries[:f.counts])
		sum = crc32.Update(sum, crc32.IEEETable, entries[f.counts+countSize:size])
		entries = entries[size:]
		n++
	}
	return fmt.Sprintf("%s (checksum %06x)", units.Plural(n, "entry"), sum&0xffffff)
}

// getsockopt calls getsockopt(2). With these options, the kernel also reads from value.
func getsockopt(fd, level, option int, value unsafe.Pointer, size uintptr) error {
	length := uint32(size)
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option),
		uintptr(value), uintptr(unsafe.Pointer(&length)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
