package pathtest

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// socketsOf describes the TCP sockets in the network namespaces of those processes that are on this
// machine.
func socketsOf(all []*running) string {
	seen := map[string]bool{}
	var b strings.Builder
	for _, r := range all {
		space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", r.proc.PID))
		if err != nil || seen[space] { // it is on another machine, or has ended
			continue
		}
		seen[space] = true
		lines, err := describe(r.proc.PID)
		fmt.Fprintf(&b, "sockets where the %s is, process %d in %s (%v):\n\t%s\n", r.role,
			r.proc.PID,
			space, err, strings.Join(lines, "\n\t"))
	}
	return b.String()
}

// states has the names of TCP's states, by their numbers in /proc/net/tcp.
var states = []string{"", "established", "syn-sent", "syn-recv", "fin-wait-1", "fin-wait-2",
	"time-wait", "closed", "close-wait", "last-ack", "listen", "closing", "new-syn-recv"}

// describe returns a line for each TCP socket in the network namespace of a process: both
// addresses, the state, the bytes that wait to be acknowledged and to be read, and the inode, which
// is 0 for a connection that no process has accepted yet.
func describe(pid int) (out []string, err error) {
	p, err := procfs.NewFS("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return nil, err
	}
	four, err := p.NetTCP()  //nolint:staticcheck // netlink would need a thread in the namespace
	six, err6 := p.NetTCP6() //nolint:staticcheck // as above
	if errors.Is(err6, fs.ErrNotExist) {
		err6 = nil
	}
	at := func(ip net.IP, port uint64) string {
		return net.JoinHostPort(ip.String(), strconv.FormatUint(port, 10))
	}
	for _, l := range slices.Concat(four, six) {
		state := strconv.FormatUint(l.St, 10)
		if l.St < uint64(len(states)) {
			state = states[l.St]
		}
		out = append(out, fmt.Sprintf("%s → %s %s, unacknowledged %d, unread %d, inode %d",
			at(l.LocalAddr, l.LocalPort), at(l.RemAddr, l.RemPort), state, l.TxQueue, l.RxQueue,
			l.Inode))
	}
	return out, errors.Join(err, err6)
}
