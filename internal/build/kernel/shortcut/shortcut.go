// Package shortcut leads a local client's connection to a published port on a loopback
// address straight to the container: eBPF programs at the root of cgroup v2 rewrite the
// destination when a client connects, so that no docker-proxy relays its bytes.
//
// It never leads to another server than docker-proxy would. What a shortcut leads to is
// kept in docker-proxy's own listening socket (Table.Add), which the programs look up as
// the kernel would look it up for the client. The socket ends with docker-proxy, which
// ends before the container's address may be another's; and who listens there next has
// no such mark, whatever is still in the maps. A client whose SYN was not answered before
// that gets no answer from anybody else: a program drops it (shortcut.bpf.c, toll_answer).
//
// In any doubt a connection stays as it is: another network namespace, a bound socket,
// another listener, filters of other programs at the client's cgroup, a lease that
// nobody renewed (shortcut.bpf.c, decide).
//
// Be aware: a Table belongs to the network namespace in which it was made, and its
// methods are to be called there.
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

	"github.com/bridgetoll/bridgetoll/internal/build/kernel/sock"
)

// Table is what shortcuts there are, in the kernel. Without pins it ends with the
// process.
type Table struct {
	maps  objectMaps
	links []link.Link // of one that this process loaded
	// pinned is the inode of the directory of its pins; 0: it has none.
	pinned uint64
}

// Entry is a shortcut.
type Entry struct {
	Dial   netip.AddrPort // what clients dial: a loopback address
	Target netip.AddrPort // the container's
	Taken  uint64         // connections that took it
	// Server is a process in the container, for Add: while more than half of the accept queue at
	// Target is taken, clients stay with docker-proxy. 0: its queue is not looked at.
	Server int
}

// State is how a table is.
type State struct {
	On    bool          // not switched off
	Lease time.Duration // how long it still works if nobody renews it; 0: it does not
	Netns uint64        // the cookie of the namespace whose clients are meant
}

// Reason says why connections to a published port were left alone.
type Reason string

// Reasons, in the order of enum reason in shortcut.bpf.c.
var reasons = []Reason{"the client's socket is bound to an address", "the client's socket is bound to a device or marked",
	"nothing listens", "another program than docker-proxy listens", "other BPF programs watch the client's cgroup",
	"the client is the kernel", "the client's socket takes IPv6 only", "no memory for the client's socket", "switched off, or the lease ran out",
	"the server accepts too slowly: its queue is more than half full", "the container ended before it answered, and another one did"}

// attachments are the programs and where they are attached.
func (p *objectPrograms) attachments() map[ebpf.AttachType]*ebpf.Program {
	return map[ebpf.AttachType]*ebpf.Program{
		ebpf.AttachCGroupInet4Connect: p.TollConnect4, ebpf.AttachCGroupInet6Connect: p.TollConnect6,
		ebpf.AttachCgroupInet4GetPeername: p.TollGetpeer4, ebpf.AttachCgroupInet6GetPeername: p.TollGetpeer6,
		ebpf.AttachCgroupInet4GetSockname: p.TollGetsock4, ebpf.AttachCgroupInet6GetSockname: p.TollGetsock6,
		ebpf.AttachCGroupInetIngress: p.TollAnswer,
	}
}

// Load loads the programs and attaches them, for clients in the calling thread's network
// namespace. They do nothing until Renew. The caller closes the table. What the kernel or
// the user lacks is a path.UnsupportedError.
func Load() (*Table, error) {
	root, cookie, err := check()
	if err != nil {
		return nil, err
	}
	var o objectObjects
	if err := loadObjectObjects(&o, nil); err != nil {
		return nil, explain(err)
	}
	defer func() { _ = o.objectPrograms.Close() }() // the links keep them
	t := &Table{maps: o.objectMaps}
	if err := t.maps.Control.Put(uint32(0), objectControl{Netns: cookie}); err != nil {
		return nil, errors.Join(fmt.Errorf("write BPF map: %w", err), t.Close())
	}
	for at, p := range o.attachments() {
		l, err := link.AttachRawLink(link.RawLinkOptions{Target: int(root.Fd()), Program: p, Attach: at})
		if err != nil {
			return nil, errors.Join(explain(fmt.Errorf("attach to cgroup: %w", err)), t.Close(), root.Close())
		}
		t.links = append(t.links, l)
	}
	return t, root.Close()
}

// Close lets go of the table, which ends with that if it is not pinned; then connections
// that still wait for a container's answer are aborted, as Abort does.
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

// Renew switches the table on until so long from now.
func (t *Table) Renew(lease time.Duration) error {
	return t.control(func(c *objectControl, now uint64) { c.On, c.Until = 1, now+uint64(max(lease, 0)) })
}

// Stop switches it off; connections that took a shortcut stay as they are.
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
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil { // bpf_ktime_get_ns
		return c, 0, fmt.Errorf("read the clock: %w", err)
	}
	return c, uint64(ts.Nano()), nil
}

// State reads how the table is.
func (t *Table) State() (State, error) {
	c, now, err := t.readControl()
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

// Left counts the connections to published ports that were left alone.
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

// Remove takes a shortcut away: new connections go by docker-proxy again.
func (t *Table) Remove(dial netip.AddrPort) error {
	if err := t.maps.Shortcuts.Delete(toEndpoint(dial)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("write BPF map: %w", err)
	}
	return nil
}

// Abort ends the connections that took a shortcut, wait for the container's answer and do
// not lead to an entry that is kept: their connects fail with ECONNABORTED. It returns their
// number. Until then the programs drop what others answer.
//
// The error wraps EOPNOTSUPP if the kernel has no CONFIG_INET_DIAG_DESTROY.
func (t *Table) Abort(keep func(Entry) bool) (n int, err error) {
	return sock.AbortConnecting(t.maps.Clients.FD(), func(value []byte) bool {
		var k objectTook
		if _, err := binary.Decode(value, binary.NativeEndian, &k); err != nil {
			return false
		}
		return !keep(Entry{Dial: k.Dialled.addrPort(), Target: k.Target.addrPort()})
	})
}

// abortAll ends all that wait, before the programs that guard them go.
func (t *Table) abortAll() error {
	if t.maps.Clients == nil { // it is closed already
		return nil
	}
	_, err := t.Abort(func(Entry) bool { return false })
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// Choose notes the ports that the user asked for, in place of earlier ones; none: all.
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

// Chosen are the ports that the user asked for, or all.
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

// toEndpoint is an address as the programs have it: IPv6 or mapped, in the order of the wire.
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
