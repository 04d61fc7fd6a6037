// Package shortcut redirects a local client's connection to a published port on a loopback address
// straight to the container: eBPF programs at the root of cgroup v2 rewrite the destination at
// connect.
//
// The target is stored with docker-proxy's listening socket. This socket is closed before another
// container can get the address. If a client's SYN is still unanswered then, a program drops
// answers from another container (toll_answer). In doubt a connection is not redirected (decide).
//
// A Table belongs to the network namespace in which it was made. Call its methods there.
package shortcut

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bpf"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
)

// Table is the kernel's table of shortcuts. Unless pinned, it ends with the process.
type Table struct {
	maps  objectMaps
	links []link.Link // nil if another process loaded the programs
	// inode of the directory of its pins, or 0
	pinned uint64
}

// Entry is a shortcut.
type Entry struct {
	Dial   netip.AddrPort // a loopback address
	Target netip.AddrPort
	Taken  uint64
	// Server is the PID of a process in the container, for Add. While more than half of Target's
	// accept queue is full, clients are not redirected. 0: the queue is ignored.
	Server int
}

// State is the state of a table.
type State struct {
	On    bool
	Lease time.Duration // 0: it has stopped
	Netns uint64        // the cookie of the clients' namespace
}

// Reason is why connections to a published port were not redirected.
type Reason string

// enum reason in shortcut.bpf.c
var reasons = []Reason{"the client's socket is bound to an address",
	"the client's socket is bound to a device or marked",
	"nothing listens", "another program than docker-proxy listens",
	"other BPF programs are attached to the client's cgroup",
	"the client is the kernel", "the client's socket takes IPv6 only",
	"no memory for the client's socket", "switched off, or the lease ran out",
	"the server accepts too slowly: its queue is more than half full",
	"the container ended before it answered, and another one did"}

func (p *objectPrograms) attachments() map[ebpf.AttachType]*ebpf.Program {
	return map[ebpf.AttachType]*ebpf.Program{
		ebpf.AttachCGroupInet4Connect:     p.TollConnect4,
		ebpf.AttachCGroupInet6Connect:     p.TollConnect6,
		ebpf.AttachCgroupInet4GetPeername: p.TollGetpeer4,
		ebpf.AttachCgroupInet6GetPeername: p.TollGetpeer6,
		ebpf.AttachCgroupInet4GetSockname: p.TollGetsock4,
		ebpf.AttachCgroupInet6GetSockname: p.TollGetsock6,
		ebpf.AttachCGroupInetIngress:      p.TollAnswer,
	}
}

// Load attaches the programs for clients in the calling thread's network namespace. They have no
// effect until Renew. The caller closes the table. The error is a *machine.UnsupportedError if the
// kernel or the user lacks something.
func Load() (*Table, error) {
	root, cookie, err := check()
	if err != nil {
		return nil, err
	}
	var o objectObjects
	if err := loadObjectObjects(&o, nil); err != nil {
		return nil, bpf.Explain(err, needsKernel)
	}
	defer func() { _ = o.objectPrograms.Close() }() // the links keep the programs loaded
	t := &Table{maps: o.objectMaps}
	if err := t.maps.Control.Put(uint32(0), objectControl{Netns: cookie}); err != nil {
		return nil, errors.Join(fmt.Errorf("write BPF map: %w", err), t.Close())
	}
	for at, p := range o.attachments() {
		l, err := link.AttachRawLink(link.RawLinkOptions{
			Target: int(root.Fd()), Program: p, Attach: at})
		if err != nil {
			return nil, errors.Join(bpf.Explain(fmt.Errorf("attach to cgroup: %w", err), needsKernel),
				t.Close(), root.Close())
		}
		t.links = append(t.links, l)
	}
	return t, root.Close()
}

// Close releases the table. Unless the table is pinned, its shortcuts end, and connections that
// wait for a container's answer are aborted.
func (t *Table) Close() error {
	var errs []error
	if len(t.links) > 0 && t.pinned == 0 {
		errs = append(errs, t.Stop(), t.abortAll())
	}
	for _, l := range t.links {
		errs = append(errs, l.Close())
	}
	return errors.Join(append(errs, t.maps.Close())...)
}

// Renew switches the table on for the given time. The error is a *machine.UnsupportedError if this
// process has another clock than the programs.
func (t *Table) Renew(lease time.Duration) error {
	if err := bpf.CheckClock(); err != nil {
		return err
	}
	return t.control(func(c *objectControl, now uint64) {
		c.On, c.Until = 1, now+uint64(max(lease, 0))
	})
}

// Stop switches the table off. Redirected connections are not affected.
func (t *Table) Stop() error {
	return t.control(func(c *objectControl, _ uint64) { c.On, c.Until = 0, 0 })
}

func (t *Table) control(change func(c *objectControl, now uint64)) error {
	c, now, err := t.readControl()
	if err != nil {
		return err
	}
	change(&c, now)
	if err := t.maps.Control.Put(uint32(0), c); err != nil {
		return fmt.Errorf("write BPF map: %w", err)
	}
	return nil
}

func (t *Table) readControl() (c objectControl, now uint64, err error) {
	if err := t.maps.Control.Lookup(uint32(0), &c); err != nil {
		return c, 0, fmt.Errorf("read BPF map: %w", err)
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return c, 0, fmt.Errorf("read the clock: %w", err)
	}
	return c, uint64(ts.Nano()), nil
}

// State returns the table's state. The error is a *machine.UnsupportedError if this process has
// another clock than the programs.
func (t *Table) State() (State, error) {
	c, now, err := t.readControl()
	if err == nil {
		err = bpf.CheckClock()
	}
	s := State{On: c.On != 0, Netns: c.Netns}
	if c.Until > now {
		s.Lease = time.Duration(c.Until - now)
	}
	return s, err
}

// Entries lists the shortcuts.
func (t *Table) Entries() ([]Entry, error) {
	var out []Entry
	var k objectEndpoint
	var v objectShortcut
	all := t.maps.Shortcuts.Iterate()
	for all.Next(&k, &v) {
		out = append(out, Entry{Dial: k.addrPort(), Target: v.Target.addrPort(), Taken: v.Taken})
	}
	if err := all.Err(); err != nil {
		return nil, fmt.Errorf("read BPF map: %w", err)
	}
	return out, nil
}

// Left counts connections to published ports that were not redirected.
func (t *Table) Left() (map[Reason]uint64, error) {
	out := map[Reason]uint64{}
	for i, r := range reasons {
		var n uint64
		if err := t.maps.Left.Lookup(uint32(i), &n); err != nil {
			return nil, fmt.Errorf("read BPF map: %w", err)
		}
		if n > 0 {
			out[r] = n
		}
	}
	return out, nil
}

// Remove removes a shortcut: new connections use docker-proxy again.
func (t *Table) Remove(dial netip.AddrPort) error {
	if err := t.maps.Shortcuts.Delete(toEndpoint(dial)); err != nil &&
		!errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("write BPF map: %w", err)
	}
	return nil
}

// Abort ends redirected connections that wait for the container's answer, if keep returns false for
// their entry. The clients' connects fail with ECONNABORTED. Abort returns the number of these
// connections. The error wraps EOPNOTSUPP without CONFIG_INET_DIAG_DESTROY.
func (t *Table) Abort(keep func(Entry) bool) (n int, err error) {
	return sock.AbortConnecting(t.maps.Clients.FD(), func(value []byte) bool {
		var k objectTook
		if _, err := binary.Decode(value, binary.NativeEndian, &k); err != nil {
			return false
		}
		return !keep(Entry{Dial: k.Dialled.addrPort(), Target: k.Target.addrPort()})
	})
}

// abortAll aborts all waiting connections. It must be called before the programs are removed that
// drop answers from other containers.
func (t *Table) abortAll() error {
	if t.maps.Clients == nil {
		return nil
	}
	_, err := t.Abort(func(Entry) bool { return false })
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// Choose sets the ports that the user asked for. An empty list means all ports.
func (t *Table) Choose(ports []uint16) error {
	old, all, err := t.Chosen()
	if err != nil {
		return err
	}
	want := map[uint32]bool{0: len(ports) == 0}
	for _, p := range ports {
		want[uint32(p)] = true
	}
	for p := range want {
		if want[p] {
			if err := t.maps.Chosen.Put(p, uint8(1)); err != nil {
				return fmt.Errorf("write BPF map: %w", err)
			}
		}
	}
	if all {
		old = append(old, 0)
	}
	for _, p := range old {
		if !want[uint32(p)] {
			if err := t.maps.Chosen.Delete(uint32(p)); err != nil {
				return fmt.Errorf("write BPF map: %w", err)
			}
		}
	}
	return nil
}

// Chosen returns the ports that the user asked for. all means that they are all ports.
func (t *Table) Chosen() (ports []uint16, all bool, err error) {
	var k uint32
	var v uint8
	i := t.maps.Chosen.Iterate()
	for i.Next(&k, &v) {
		if k == 0 {
			all = true
			continue
		}
		ports = append(ports, uint16(k))
	}
	if err := i.Err(); err != nil {
		return nil, false, fmt.Errorf("read BPF map: %w", err)
	}
	return ports, all, nil
}

func toEndpoint(a netip.AddrPort) (e objectEndpoint) {
	b := a.Addr().As16()
	for i := range e.Addr {
		e.Addr[i] = binary.NativeEndian.Uint32(b[4*i:])
	}
	e.Port = binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, a.Port()))
	return e
}

func (e objectEndpoint) addrPort() netip.AddrPort {
	var b [16]byte
	for i, w := range e.Addr {
		binary.NativeEndian.PutUint32(b[4*i:], w)
	}
	port := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, e.Port))
	return netip.AddrPortFrom(netip.AddrFrom16(b).Unmap(), port)
}
