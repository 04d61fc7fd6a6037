// Package trace records where in the kernel a connection's packets are. BPF programs at tracepoints
// write one event for each step to a log. Each CPU has a log, whose memory toll maps.
//
// Nothing is pinned: programs, links and maps end with the process. If a kernel lacks a program's
// tracepoint, the recording lacks that kind of event. An event costs the path about 0.11 µs;
// packets of other connections pay about 0.06 µs at each tracepoint (BenchmarkTrip).
package trace

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
)

// Kind is the kind of an event.
type Kind uint8

// The kinds, named by tracepoint. Ptr is the packet (skb), or the socket where it says so.
const (
	Send    Kind = iota + 1 // tcp_sendmsg_locked; Ptr: socket, Seq: next to write
	Queue                   // net_dev_queue
	Xmit                    // net_dev_start_xmit
	Rx                      // netif_rx
	Receive                 // netif_receive_skb
	Softirq                 // softirq_entry of NET_RX; no Ptr
	Route                   // fib_table_lookup, fib6_table_lookup; no Ptr
	TCP                     // tcp_probe: TCP has the segment
	Ready                   // sk_data_ready; Ptr: socket, Seq: next expected
	Waking                  // sched_waking; Dev: thread
	IPI                     // ipi_send_cpu; Dev: CPU
	Switch                  // sched_switch; Dev: next thread, TID: the previous one
	Copy                    // skb_copy_datagram_iovec
	Read                    // sock_recv_length; Ptr: socket, Seq: copied up to, Len: result
	Sent                    // sock_send_length; Ptr: socket, Seq: next to write, Len: result
	HookIn                  // before the first function of a netfilter hook; Dev: hook number
	HookOut                 // after the last one
	NATIn                   // in a hook, before it translates addresses; Dev: hook number
	NATOut                  // after that
	kinds
)

// Hook reports whether events of this kind are written at netfilter's hooks.
func (k Kind) Hook() bool { return k >= HookIn && k <= NATOut }

// Event is one step, as the programs write it. Fields that its kind lacks are 0.
type Event struct {
	TS    int64  // CLOCK_MONOTONIC, ns
	Ptr   uint64 // address of skb or socket; the same one is used again later
	Seq   uint32 // TCP sequence number; of packets: of the first byte
	Dev   uint32 // interface index, thread or CPU, by Kind
	NetNS uint32 // inode number of the network namespace
	Len   int32  // payload bytes, or the call's result
	// TID is the thread that ran, PID its process; in an interrupt any.
	TID, PID uint32
	// Source and Dest are ports, in host order: of sockets own and peer's, of packets those that
	// the CPU saw first, before NAT.
	Source, Dest uint16
	Kind         Kind
	_            uint8
	CPU          uint16
}

// Config selects what is recorded: packets with a port in Ports, and threads of the processes in
// PIDs, which are PIDs of the machine's own namespace.
type Config struct {
	CPUs   []int // CPUs with a log; events on others are counted as lost
	Events int   // size of each CPU's log; 0: 1 Mi
	Ports  []uint16
	PIDs   []int
	Copies int // number of copies of each program; only the first one's log is read; 0: 1
	// Hooks lists the file descriptors of network namespaces whose netfilter hooks are recorded;
	// nil: none.
	Hooks []int
}

const defaultEvents = 1 << 20

// Tracer has the programs that this kernel can run.
type Tracer struct {
	spec    *ebpf.CollectionSpec
	missing []string
	last    *Recording
}

// Recording is an attached set of programs.
type Recording struct {
	config Config
	sets   []*set
	links  []link.Link
}

// set is one copy of all programs, with logs of its own.
type set struct {
	programs *ebpf.Collection
	state    *objectState
	events   []Event
	mapped   [][]byte
}

// traced lists the programs on tracepoints, in the order of kinds.
var traced = []string{"toll_send", "toll_queue", "toll_xmit", "toll_rx", "toll_receive",
	"toll_softirq", "toll_route", "toll_route6", "toll_tcp", "toll_ready", "toll_waking",
	"toll_ipi", "toll_switch", "toll_copy", "toll_read", "toll_sent"}

// CheckHooks returns nil if this kernel can attach programs to netfilter's hooks, else a
// *machine.UnsupportedError.
func CheckHooks() error {
	if err := features.HaveProgramType(ebpf.Netfilter); err != nil {
		return noHooks(err)
	}
	return nil
}

// Open returns a tracer with programs for the tracepoints of this kernel, or a
// *machine.UnsupportedError if this process may not trace. The kernel may still refuse the programs
// at Attach. The caller closes the Tracer.
func Open() (*Tracer, error) {
	has, err := needs()
	if err != nil {
		return nil, err
	}
	return open(has)
}

func open(has func(tracepoint string) bool) (*Tracer, error) {
	if err := checkLeast(has); err != nil {
		return nil, err
	}
	spec, err := loadObject()
	if err != nil {
		return nil, err
	}
	t := &Tracer{spec: spec}
	for _, program := range traced {
		if tracepoint := spec.Programs[program].AttachTo; !has(tracepoint) {
			delete(spec.Programs, program)
			t.missing = append(t.missing, tracepoint)
		}
	}
	return t, nil
}

// Missing names the tracepoints that this kernel lacks, in the order of kinds.
func (t *Tracer) Missing() []string { return t.missing }

// Attach loads and attaches the programs. It ends the previous recording. It takes about 0.1 s.
func (t *Tracer) Attach(c Config) (*Recording, error) {
	if err := t.Close(); err != nil {
		return nil, err
	}
	if c.Events == 0 {
		c.Events = defaultEvents
	}
	if len(c.Hooks) > 0 {
		if err := CheckHooks(); err != nil {
			return nil, err
		}
	}
	t.last = &Recording{config: c}
	if err := t.last.attach(t.spec); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t.last, nil
}

func (r *Recording) attach(spec *ebpf.CollectionSpec) error {
	for range max(1, r.config.Copies) {
		s, err := load(spec, r.config)
		if err != nil {
			return err
		}
		r.sets = append(r.sets, s)
		for _, name := range traced {
			p := s.programs.Programs[name]
			if p == nil {
				continue
			}
			l, err := link.AttachTracing(link.TracingOptions{Program: p})
			if err != nil {
				return explain(fmt.Errorf("attach %s: %w", name, err))
			}
			r.links = append(r.links, l)
		}
	}
	return r.hook()
}

func load(spec *ebpf.CollectionSpec, c Config) (s *set, err error) {
	spec = spec.Copy()
	spec.Maps["events"].MaxEntries = uint32(max(c.Events*len(c.CPUs), 1))
	if len(c.Hooks) == 0 {
		for _, name := range []string{"toll_hook_in", "toll_hook_out", "toll_nat_in", "toll_nat_out"} {
			delete(spec.Programs, name)
		}
	}
	s = &set{}
	if s.programs, err = ebpf.NewCollection(spec); err != nil {
		return nil, explain(err)
	}
	state, err := s.mapMemory(".bss")
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	events, err := s.mapMemory("events")
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.state = (*objectState)(unsafe.Pointer(&state[0]))
	s.events = unsafe.Slice((*Event)(unsafe.Pointer(&events[0])), c.Events*len(c.CPUs))
	for i, cpu := range c.CPUs {
		if cpu >= len(s.state.Slots) {
			return nil, errors.Join(fmt.Errorf("no log for CPU %d", cpu), s.close())
		}
		s.state.Slots[cpu].Room = uint32(c.Events)
		s.state.Slots[cpu].First = uint32(i * c.Events)
	}
	for _, p := range c.Ports {
		s.state.Ports[p/64] |= 1 << (p % 64)
	}
	for _, p := range c.PIDs {
		s.state.Pids[p/64] |= 1 << (p % 64)
	}
	return s, nil
}

func (s *set) mapMemory(name string) ([]byte, error) {
	m := s.programs.Maps[name]
	page := unix.Getpagesize()
	size := (int(m.ValueSize()*m.MaxEntries()) + page - 1) / page * page
	b, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the memory of BPF programs: %w", err)
	}
	s.mapped = append(s.mapped, b)
	return b, nil
}

func (s *set) close() error {
	s.programs.Close()
	var errs []error
	for _, b := range s.mapped {
		errs = append(errs, unix.Munmap(b))
	}
	return errors.Join(errs...)
}

// natAt maps the hooks that translate addresses to the priority at which they do (the kernel's
// NF_IP_PRI_NAT_DST and NF_IP_PRI_NAT_SRC, which IPv6 shares).
var natAt = map[link.NetfilterInetHook]int32{
	unix.NF_INET_PRE_ROUTING: -100, unix.NF_INET_LOCAL_OUT: -100,
	unix.NF_INET_LOCAL_IN: 100, unix.NF_INET_POST_ROUTING: 100,
}

// hook attaches the programs around every netfilter hook, and around its NAT.
func (r *Recording) hook() error {
	for _, fd := range r.config.Hooks {
		if err := netns.VisitFile(fd, r.hookHere); err != nil {
			return err
		}
	}
	return nil
}

func (r *Recording) hookHere() error {
	const first, last = -1 << 31, 1<<31 - 1 // the kernel refuses these two priorities
	for _, s := range r.sets {
		p := s.programs.Programs
		for hook := range link.NetfilterInetHook(unix.NF_INET_NUMHOOKS) {
			for _, family := range []link.NetfilterProtocolFamily{unix.NFPROTO_IPV4,
				unix.NFPROTO_IPV6} {
				o := link.NetfilterOptions{ProtocolFamily: family, Hook: hook}
				err := errors.Join(r.hookAt(o, p["toll_hook_in"], first+1, 1),
					r.hookAt(o, p["toll_hook_out"], last-1, -1))
				if nat, ok := natAt[hook]; ok {
					err = errors.Join(err, r.hookAt(o, p["toll_nat_in"], nat-1, -1),
						r.hookAt(o, p["toll_nat_out"], nat+1, 1))
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// hookAt attaches a program at a priority or, if that is taken, at the next free one in the
// direction of step.
func (r *Recording) hookAt(o link.NetfilterOptions, p *ebpf.Program, priority, step int32) error {
	const tries = 16
	var err error
	for i := range int32(tries) {
		o.Program, o.Priority = p, priority+i*step
		var l link.Link
		l, err = link.AttachNetfilter(o)
		if err == nil {
			r.links = append(r.links, l)
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			break
		}
	}
	return noHooks(err)
}

// Between limits the recording to events from and until an instant of CLOCK_MONOTONIC, in ns.
// Nothing is recorded before the first call.
func (r *Recording) Between(from, until int64) {
	for _, s := range r.sets {
		atomic.StoreInt64(&s.state.Until, 0)
		atomic.StoreInt64(&s.state.From, from)
		atomic.StoreInt64(&s.state.Until, until)
	}
}

// Recorded reports whether there is an event so far.
func (r *Recording) Recorded() bool {
	for i := range r.sets[0].state.Slots {
		if atomic.LoadUint32(&r.sets[0].state.Slots[i].N) > 0 {
			return true
		}
	}
	return false
}

// Stop detaches the programs.
func (r *Recording) Stop() error {
	var errs []error
	for _, l := range r.links {
		errs = append(errs, l.Close())
	}
	r.links = nil
	return errors.Join(errs...)
}

// Log returns the events of each of Config.CPUs, in order of time. They are not copied, and valid
// until the tracer's next Attach or Close. lost counts events that did not fit into a log, and
// those on CPUs without one. Log must be called after Stop.
func (r *Recording) Log() (byCPU [][]Event, lost int) { return r.sets[0].log(r.config) }

func (s *set) log(c Config) (byCPU [][]Event, lost int) {
	for _, slot := range s.state.Slots {
		lost += max(int(slot.N)-int(slot.Room), 0)
	}
	for _, cpu := range c.CPUs {
		slot := s.state.Slots[cpu]
		log := s.events[slot.First:][:min(slot.N, slot.Room)]
		byTime := func(a, b Event) int { return int(a.TS - b.TS) }
		if !slices.IsSortedFunc(log, byTime) { // an interrupt may write its event first
			slices.SortStableFunc(log, byTime)
		}
		byCPU = append(byCPU, log)
	}
	return byCPU, lost
}

// Close unloads the programs and unmaps the log.
func (t *Tracer) Close() error {
	r := t.last
	if r == nil {
		return nil
	}
	t.last = nil
	errs := []error{r.Stop()}
	for _, s := range r.sets {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
