// Package dial makes connections between network namespaces, thousands at once, and finds out where
// and why packets were lost. Stand-ins answer in place of listening sockets.
package dial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// Call is a connection to make, or a datagram to send.
type Call struct {
	From   *netns.NS
	Source netip.Addr // zero: the kernel chooses
	Proto  string     // "tcp" or "udp"
	To     netip.AddrPort
}

// Net is a set of network namespaces with stand-ins.
type Net struct {
	spaces []*netns.NS
	server *server
	most   int // attempts open at once
	ready  map[*netns.NS]bool

	stamping int  // the socket of startStamping; 0 before the first Explain
	port     int  // of the last explained attempt
	dropped  *int // what the last call of scanner.dropped counted; nil: there was none
}

// Open opens stand-ins for sockets. Their Space is an index into spaces. It does not fail if some
// cannot be opened: see Failed. The caller closes the Net before the spaces.
func Open(spaces []*netns.NS, sockets []replica.Socket) (*Net, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil, fmt.Errorf("read the limit of open files: %w", err)
	}
	// A connection through two proxies has six sockets.
	const sides = 6
	most := min(max((int(min(limit.Cur, 1<<20))-len(sockets)-64)/sides, 16), 4096)
	s, err := serve(spaces, sockets, most*(sides-1))
	if err != nil {
		return nil, fmt.Errorf("open stand-ins: %w", err)
	}
	return &Net{spaces: spaces, server: s, most: most,
		ready: map[*netns.NS]bool{}, port: firstPort}, nil
}

// Failed returns why sockets have no stand-in, by their index.
func (n *Net) Failed() map[int]error { return n.server.failed }

// Close closes the stand-ins.
func (n *Net) Close() error {
	n.server.close()
	if n.stamping <= 0 {
		return nil
	}
	err := unix.Close(n.stamping)
	n.stamping = 0
	return err
}

const (
	firstWait = 50 * time.Millisecond // what is late is made again
	scanWait  = 200 * time.Millisecond
	wait      = 500 * time.Millisecond
	together  = 64

	retransmit = "100" // ms between the kernel's three requests for a neighbour
)

// Dial makes each call the given number of times. For each call it returns every different outcome
// once, the most frequent first. If a busy machine may have caused an outcome, Dial makes the call
// again with fewer others at the same time, and returns only the new outcomes.
func (n *Net) Dial(ctx context.Context, calls []Call, times int) ([][]replica.Outcome, error) {
	return n.dial(ctx, calls, nil, times)
}

// DialQuickly is like Dial, but makes no call again. It returns the indexes of the calls for which
// that is to be done, by DialCalmly or Explain.
func (n *Net) DialQuickly(ctx context.Context, calls []Call, times int) (out [][]replica.Outcome,
	again []int, err error) {
	out, err = n.pass(ctx, calls, nil, times, manner{most: n.most, wait: firstWait})
	return out, doubtful(out), err
}

// DialCalmly makes calls that DialQuickly made.
func (n *Net) DialCalmly(ctx context.Context, calls []Call, times int) ([][]replica.Outcome,
	error) {
	return n.pass(ctx, calls, nil, times, n.calm())
}

// Exchange is like Dial for TCP, but each call exchanges long data in both directions, from exactly
// the given client port, and ends when both sides have ended the connection. Calls with the same
// port must have different destinations.
func (n *Net) Exchange(ctx context.Context, calls []Call, ports []uint16, times int) (
	[][]replica.Outcome, error) {
	out := make([][]replica.Outcome, len(calls))
	for range times {
		got, err := n.dial(ctx, calls, ports, 1)
		if err != nil {
			return nil, err
		}
		for i := range got {
			out[i] = append(out[i], got[i]...)
		}
	}
	for i := range out {
		out[i] = distinct(out[i])
	}
	return out, nil
}

func (n *Net) dial(ctx context.Context, calls []Call, ports []uint16, times int) (
	[][]replica.Outcome, error) {
	out, err := n.pass(ctx, calls, ports, times, manner{most: n.most, wait: firstWait})
	if err != nil {
		return nil, err
	}
	which := doubtful(out)
	again, err := n.pass(ctx, pick(calls, which), pick(ports, which), times, n.calm())
	for k, i := range which {
		if err == nil {
			out[i] = again[k]
		}
	}
	return out, err
}

// calm is how calls are made again.
func (n *Net) calm() manner { return manner{most: n.most / 2, wait: wait} }

// pick returns the elements with the given indexes; of none, none.
func pick[T any](all []T, which []int) (out []T) {
	for _, i := range which {
		if all != nil {
			out = append(out, all[i])
		}
	}
	return out
}

// prepare changes four settings of the namespaces. The kernel reports sooner that a neighbour does
// not exist, answers for others (proxy ARP and NDP) at once, and keeps no connections that have
// ended, so that their ports can be used again. And it sends ARP requests from an address of the
// device: if a filter dropped requests from the client's address, the call would fail for lack of a
// neighbour, which would hide that the filter drops the client's packets.
func (n *Net) prepare(calls []Call) error {
	from := slices.Clone(n.spaces)
	for _, c := range calls {
		from = append(from, c.From)
	}
	for _, ns := range from {
		if n.ready[ns] {
			continue
		}
		n.ready[ns] = true
		err := ns.Do(func() error {
			var err error
			set := func(file, value string) {
				err = cmp.Or(err, os.WriteFile("/proc/sys/net/"+file, []byte(value), 0))
			}
			for _, family := range []string{"ipv4", "ipv6"} {
				devices, _ := os.ReadDir("/proc/sys/net/" + family + "/neigh") // none without IPv6
				for _, d := range devices {
					set(family+"/neigh/"+d.Name()+"/retrans_time_ms", retransmit)
					set(family+"/neigh/"+d.Name()+"/proxy_delay", "0")
				}
			}
			set("ipv4/conf/all/arp_announce", "2")
			set("ipv4/tcp_max_tw_buckets", "0")
			return err
		})
		if errors.Is(err, unix.EROFS) {
			return fmt.Errorf("a container manager has mounted /proc/sys read-only: %w", err)
		}
		if err != nil {
			return fmt.Errorf("change how neighbours are requested: %w", err)
		}
	}
	return nil
}

// Forget lets the next calls change the settings again, in case something else has changed them.
func (n *Net) Forget() { clear(n.ready) }

// doubtful returns the indexes of the calls of whose outcomes a busy machine may have caused one.
// Even an unreachable neighbour may only be late.
func doubtful(all [][]replica.Outcome) (out []int) {
	for i, outcomes := range all {
		if slices.ContainsFunc(outcomes, replica.Outcome.Doubtful) {
			out = append(out, i)
		}
	}
	return out
}

// pass makes each call the given number of times. ports has the client's port of each, for long
// exchanges; nil: the kernel chooses.
func (n *Net) pass(ctx context.Context, calls []Call, ports []uint16, times int, m manner) (
	[][]replica.Outcome, error) {
	if err := n.prepare(calls); err != nil || len(calls) == 0 {
		return nil, err
	}
	attempts := make([]*attempt, 0, len(calls)*times)
	for i, c := range calls {
		for range times {
			a := &attempt{Call: c}
			if ports != nil {
				a.port, a.long = ports[i], true
			}
			attempts = append(attempts, a)
		}
	}
	m.together = together
	if err := n.attempt(ctx, attempts, m); err != nil {
		return nil, err
	}
	out := make([][]replica.Outcome, len(calls))
	for i := range calls {
		var all []replica.Outcome
		for _, a := range attempts[i*times : (i+1)*times] {
			all = append(all, a.out)
		}
		out[i] = distinct(all)
	}
	return out, nil
}

func distinct(all []replica.Outcome) (out []replica.Outcome) {
	var count []int
	for _, o := range all {
		at := slices.IndexFunc(out, func(p replica.Outcome) bool { return reflect.DeepEqual(o, p) })
		if at < 0 {
			at, out, count = len(out), append(out, o), append(count, 0)
		}
		for count[at]++; at > 0 && count[at] > count[at-1]; at-- {
			count[at], count[at-1] = count[at-1], count[at]
			out[at], out[at-1] = out[at-1], out[at]
		}
	}
	return out
}

var errStopped = errors.New("stand-ins are closed")
