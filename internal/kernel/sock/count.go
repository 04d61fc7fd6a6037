package sock

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/procfs"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// thread returns the calling thread in /proc: /proc/net would show the namespace of the process's
// first thread. It returns an error if the mounted /proc is of another PID namespace.
func thread() (procfs.Proc, error) {
	self, err := os.Readlink("/proc/thread-self")
	if err != nil {
		return procfs.Proc{}, err
	}
	var pid, tid int
	if _, err := fmt.Sscanf(self, "%d/task/%d", &pid, &tid); err != nil {
		return procfs.Proc{}, fmt.Errorf("/proc/thread-self is %q: %w", self, err)
	}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return procfs.Proc{}, err
	}
	return fs.Thread(pid, tid)
}

// Opens returns the numbers of TCP connections dialled and accepted (RFC 4022: ActiveOpens,
// PassiveOpens) since the namespace was made.
func Opens() (active, passive uint64, err error) {
	t, err := thread()
	if err != nil {
		return 0, 0, fmt.Errorf("read TCP's counters: %w", err)
	}
	c, err := snmp(t)
	if err != nil {
		return 0, 0, err
	}
	return uint64(*c.ActiveOpens), uint64(*c.PassiveOpens), nil
}

func snmp(t procfs.Proc) (procfs.ProcSnmp, error) {
	c, err := t.Snmp()
	if err == nil && (c.ActiveOpens == nil || c.PassiveOpens == nil) {
		err = errors.New("/proc/net/snmp has no ActiveOpens and PassiveOpens")
	}
	if err != nil {
		return c, fmt.Errorf("read TCP's counters: %w", err)
	}
	return c, nil
}

// Received returns the number of UDP datagrams that the namespace's sockets received since it was
// made.
func Received() (uint64, error) {
	t, err := thread()
	if err != nil {
		return 0, fmt.Errorf("read UDP's counters: %w", err)
	}
	c, err := t.Snmp()
	if err != nil {
		return 0, fmt.Errorf("read UDP's counters: %w", err)
	}
	return received(t, c)
}

func received(t procfs.Proc, c procfs.ProcSnmp) (total uint64, err error) {
	if n := c.Udp.InDatagrams; n != nil {
		total += uint64(*n)
	}
	six, err := t.Snmp6()
	if err != nil {
		return 0, fmt.Errorf("read UDP's counters: %w", err)
	}
	if n := six.Udp6.InDatagrams; n != nil {
		total += uint64(*n)
	}
	return total, nil
}

// Arrivals returns the number of TCP connections accepted and UDP datagrams received since the
// namespace was made.
func Arrivals() (uint64, error) {
	t, err := thread()
	if err != nil {
		return 0, fmt.Errorf("read TCP's counters: %w", err)
	}
	c, err := snmp(t)
	if err != nil {
		return 0, err
	}
	datagrams, err := received(t, c)
	return uint64(*c.PassiveOpens) + datagrams, err
}

// Overflows returns how often a connection was dropped since the namespace was made because a queue
// of connections that wait to be accepted was full (ListenOverflows of nstat).
func Overflows() (uint64, error) {
	t, err := thread()
	if err != nil {
		return 0, fmt.Errorf("read TCP's counters: %w", err)
	}
	c, err := t.Netstat()
	if err == nil && c.ListenOverflows == nil {
		err = errors.New("/proc/net/netstat has no ListenOverflows")
	}
	if err != nil {
		return 0, fmt.Errorf("read TCP's counters: %w", err)
	}
	return uint64(*c.ListenOverflows), nil
}

// linux/inet_diag.h, linux/sock_diag.h: attributes for BPF socket storage, of a request and of an
// answer, outermost first
const (
	askStorages, askMap         = 2, 1
	storages, storage, inMap    = 20, 1, 3
	storageAttributes, fdLength = 0x3fff, 4
)

// AbortConnecting ends the TCP connections that wait for the answer to their SYN and whose value in
// a BPF map of socket storage pick accepts. It returns their number.
//
// It needs CAP_NET_ADMIN and CAP_BPF. Without CONFIG_INET_DIAG_DESTROY the error wraps EOPNOTSUPP.
func AbortConnecting(mapFD int, pick func(value []byte) bool) (n int, err error) {
	for _, family := range families {
		ids, err := connecting(family, mapFD, pick)
		if err == nil && len(ids) > 0 {
			err = destroy(family, ids)
		}
		if err != nil {
			return n, err
		}
		n += len(ids)
	}
	return n, nil
}

func connecting(family byte, mapFD int, pick func(value []byte) bool) (ids [][]byte, err error) {
	fd := binary.NativeEndian.AppendUint32(make([]byte, 0, fdLength), uint32(mapFD))
	ask := nl.NewRtAttr(askStorages|unix.NLA_F_NESTED, nil)
	ask.AddRtAttr(askMap, fd)
	err = request{family: family, protocol: unix.IPPROTO_TCP, states: 1 << synSent, more: ask}.dump(
		func(m []byte) {
			if value, ok := stored(m[messageSize:]); ok && pick(value) {
				ids = append(ids, bytes.Clone(m[idOffset:idOffset+idSize]))
			}
		})
	return ids, err
}

func stored(attributes []byte) (value []byte, ok bool) {
	for _, kind := range []uint16{storages, storage, inMap} {
		if attributes, ok = attribute(attributes, kind); !ok {
			return nil, false
		}
	}
	return attributes, true
}

func attribute(b []byte, kind uint16) ([]byte, bool) {
	all, _ := nl.ParseRouteAttr(b)
	for _, a := range all {
		if a.Attr.Type&storageAttributes == kind {
			return a.Value, true
		}
	}
	return nil, false
}
