package bench

import (
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/test/measure/peer"
)

const (
	clientCPU = 0
	serverCPU = 1
)

const (
	toll      = "toll"
	iperf3    = peer.IPerf3
	qperf     = peer.QPerf
	sockperf  = peer.SockPerf
	netperf   = peer.NetPerf
	netserver = peer.NetServer
	taskset   = peer.TaskSet
)

const (
	bulk  = "bulk"
	rr    = "rr"
	udp   = "udp"
	crr   = "crr"
	start = "start"
)

type cell struct {
	tool    string
	load    string
	size    int // of request and response (rr, crr), a write (bulk) or a datagram (udp)
	batch   int // datagrams that toll sends at once (udp); 0: each at its own time
	sameCPU bool
	like    string
	anew    bool // a second time, for the noise floor
}

func (c cell) String() string {
	words := []string{c.tool, c.what()}
	if c.load != start {
		words = append(words, c.where())
	}
	if c.anew {
		words = append(words, "again")
	}
	return strings.Join(words, " ")
}

func (c cell) what() string {
	if c.load == bulk || c.load == start {
		return c.load
	}
	text := fmt.Sprintf("%s %d B", c.load, c.size)
	if c.batch > 0 {
		text += fmt.Sprintf(" in bursts of %d", c.batch)
	}
	return text
}

func (c cell) where() string {
	client, server := c.cpus()
	if client == server {
		return fmt.Sprintf("CPU %d only", client)
	}
	return fmt.Sprintf("CPU %d to %d", client, server)
}

func (c cell) cpus() (client, server int) {
	if c.sameCPU {
		return serverCPU, serverCPU
	}
	return clientCPU, serverCPU
}

// Sizes of messages: qperf's smallest, sockperf's smallest, netperf's usual one, and what fits into
// the usual MTU.
const (
	qperfSize    = 1
	sockperfSize = 14
	netperfSize  = 1
	datagram     = 1400
)

// bitrate is the rate of udp, in bit/s. The peer loses few datagrams at this rate.
const bitrate = 500_000_000

// The peer sends this many datagrams at once, every millisecond.
const burst = bitrate / 1000 / (8 * datagram)

// Phases of the peers, which toll follows. iperf3 leaves out its first second, including slow
// start, sockperf its first 400 ms and its last 50 ms. qperf has no warm-up.
const (
	iperf3Omit   = time.Second
	sockperfSkip = 400 * time.Millisecond
	sockperfTail = 50 * time.Millisecond
)

func (c cell) phases(window time.Duration) (warmup, measured time.Duration) {
	peer := c.like
	if peer == "" {
		peer = c.tool
	}
	switch peer {
	case iperf3:
		return iperf3Omit, window
	case sockperf:
		return sockperfSkip, window - sockperfSkip - sockperfTail
	}
	return 0, window
}

type pair struct{ own, again, peer cell }

func makePair(peer, load string, size int, sameCPU bool) pair {
	own := cell{tool: toll, load: load, size: size, sameCPU: sameCPU, like: peer}
	p := pair{own: own, again: own, peer: cell{
		tool: peer, load: load, size: size, sameCPU: sameCPU}}
	p.again.anew = true
	return p
}

// Datagrams are sent at the peer's times.
func (p pair) inBursts() pair {
	p.own.batch, p.again.batch, p.peer.batch = burst, burst, burst
	return p
}

// comparable reports whether toll must be as good as the peer. Datagrams that are sent one by one
// wake both ends more often than the peer's bursts.
func (p pair) comparable() bool { return p.own.load != udp || p.own.batch > 0 }

var pairs = []pair{
	makePair(iperf3, bulk, workload.DefaultWrite, false),
	makePair(qperf, rr, qperfSize, false),
	makePair(sockperf, rr, sockperfSize, false),
	makePair(qperf, rr, qperfSize, true),
	makePair(sockperf, rr, sockperfSize, true),
	makePair(iperf3, udp, datagram, false).inBursts(),
	makePair(iperf3, udp, datagram, false),
	makePair(netperf, crr, netperfSize, false),
	makePair(netperf, crr, netperfSize, true),
}

var startCell = cell{tool: toll, load: start}

func groupsFor(missing []missing) [][]cell {
	gone := map[string]bool{}
	for _, m := range missing {
		gone[m.program] = true
	}
	var out [][]cell
	for _, p := range pairs {
		group := []cell{p.own, p.again}
		if !gone[p.peer.tool] && !gone[peerOf[p.peer.kind()].program] && !gone[taskset] {
			group = append(group, p.peer)
		}
		out = append(out, group)
	}
	return append(out, []cell{startCell})
}

type missing struct{ program, pkg string }

func (m missing) text() string {
	return fmt.Sprintf("%s is missing, its rows are skipped: apt-get install %s", m.program, m.pkg)
}

func peers() (versions []string, out []missing) {
	for _, p := range []missing{{taskset, "util-linux"}, {iperf3, iperf3}, {qperf, qperf},
		{sockperf, sockperf},
		{netperf, "netperf, which Debian has from 13 (trixie) on"}, {netserver, netperf}} {
		if _, err := exec.LookPath(p.program); err != nil {
			out = append(out, p)
			continue
		}
		if p.program == netserver {
			continue
		}
		flag := "--version"
		if p.program == netperf {
			flag = "-V"
		}
		text, err := exec.Command(p.program, flag).Output()
		first, _, _ := strings.Cut(string(text), "\n")
		first, _, _ = strings.Cut(first, " (")
		if err == nil && p.program != taskset {
			versions = append(versions, strings.ReplaceAll(first, ", version", ""))
		}
	}
	return versions, out
}
