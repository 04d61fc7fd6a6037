// Package trace records where in the kernel a connection's packets are: BPF programs on
// tracepoints write one event for each step into a log for each CPU, which is read by mapping it.
//
// Nothing is pinned: programs, links and maps end with the process. Every program is optional: a
// kernel without its tracepoint lacks that kind of event. An event costs the path about 0.15 µs, and
// packets of others about 0.1 µs for each tracepoint that they pass while programs are attached.
package trace

import (
	"errors"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// Kind is the kind of an event.
type Kind uint8

// The kinds, named by tracepoint. Ptr is the packet (skb), or the socket where it says so.
const (
	Send    Kind = iota + 1 // tcp_sendmsg_locked; Ptr: socket, Seq: next to write
	Queue                   // net_dev_queue
	Xmit                    // net_dev_start_xmit
	Rx                      // netif_rx_entry
	Receive                 // netif_receive_skb, or its entry
	Softirq                 // softirq_entry of NET_RX; no Ptr
	Route                   // fib_table_lookup; no Ptr
	TCP                     // tcp_probe: TCP has the segment
	Ready                   // sk_data_ready; Ptr: socket, Seq: next expected
	Waking                  // sched_waking; Dev: thread
	IPI                     // ipi_send_cpu; Dev: CPU
	Switch                  // sched_switch; Dev: next thread
	Copy                    // skb_copy_datagram_iovec
	Read                    // sock_recv_length; Ptr: socket, Seq: copied up to, Len: result
	Sent                    // sock_send_length; Ptr: socket, Seq: next to write, Len: result
	HookIn                  // before the first function of a netfilter hook; Dev: hook number
	HookOut                 // after the last one
	kinds
)

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
	// Source and Dest are ports, in host order; of sockets: own and peer's.
	Source, Dest uint16
	Kind         Kind
	_            uint8
	CPU          uint16
}

// Config says what is recorded. Packets are followed if a port is among Ports, threads if their
// process is among PIDs.
type Config struct {
	CPUs   []int // that have a log; events on others are counted as lost
	Events int   // size of each CPU's log; 0: 1 Mi
	Ports  []uint16
	PIDs   []int
	Twice  bool // every program twice; the second one's log is discarded
	// Hooks lists the network namespaces whose hooks get programs, as open files; nil: none.
	Hooks []int
}

// Tracer has the loaded programs.
type Tracer struct{}

// Recording is an attached set of programs.
type Recording struct{}

// Check returns nil if this process may trace here, else a *path.UnsupportedError.
func Check() error { return &path.UnsupportedError{Missing: "tracing"} }

// Open loads the programs.
func Open() (*Tracer, error) { return nil, errors.ErrUnsupported }

// Missing names the tracepoints that this kernel lacks, in the order of kinds.
func (t *Tracer) Missing() []string { return nil }

// Attach begins to record. One recording at a time.
func (t *Tracer) Attach(c Config) (*Recording, error) { return nil, errors.ErrUnsupported }

// Between limits the recording to events from and until an instant of CLOCK_MONOTONIC, in ns.
// Nothing is recorded before the first call.
func (r *Recording) Between(from, until int64) {}

// Stop detaches the programs.
func (r *Recording) Stop() error { return nil }

// Log returns each CPU's events in their order, without a copy: they are valid until the tracer's
// next Attach or Close. lost counts events without room, and those on CPUs without a log.
func (r *Recording) Log() (byCPU [][]Event, lost int) { return nil, 0 }

// Close unloads the programs.
func (t *Tracer) Close() error { return nil }
