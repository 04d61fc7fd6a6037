package load

import (
	"errors"
	"net/netip"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Stats has what one end of a load did.
type Stats struct {
	// Party lacks CPUs, RSS and TCP.Device, which the worker adds.
	sample.Party
	// Peer is the remote address of the connection that TCP.Packet describes; zero: unknown.
	Peer netip.Addr
	// Latency has the window's trips in ns; nil: the load times none.
	Latency *hdrhistogram.Histogram
	// Times has the workload's other times in ns, by name.
	Times  map[string]*hdrhistogram.Histogram
	Slices []SliceStats
	Flows  []Flow
}

// Flow has what one connection did in the window.
type Flow struct {
	Client    int   // the number that the client sent
	Sent      int64 // acknowledged payload bytes
	Received  int64 // payload bytes
	Trips     int64
	TotalRecv int64 // over the whole visit
	Resent    int64 // bytes sent again, over the whole visit
}

func (c *threadGroup) stats() (Stats, error) {
	var (
		s    Stats
		errs []error
	)
	n := c.mainThreads()
	var err error
	if s.Slices, err = together(c.threads, len(c.threads[0].when.Slices)); err != nil {
		errs = append(errs, err)
	}
	for _, t := range c.threads {
		if t.err != nil {
			errs = append(errs, t.err)
			continue
		}
		s.TotalSent += t.sent
		s.TotalRecv += t.recvd
		if t.twin == nil {
			s.Connections += t.connections()
		}
		s.Late = max(s.Late, seconds(t.late))
		if len(t.marks) < windowBounds {
			errs = append(errs, errors.New("the load ended before the window did"))
			continue
		}
		s.add(t, t.marks[0], t.marks[1], n)
		if c.crowd {
			s.Flows = append(s.Flows, t.flow(t.marks[0], t.marks[1]))
		}
	}
	s.TCP.Cwnd, s.TCP.MSS = sample.Mean(s.TCP.Cwnd, n), sample.Mean(s.TCP.MSS, n)
	return s, errors.Join(errs...)
}

func (s *Stats) add(t *thread, a, b mark, n int64) {
	width := b.at - a.at
	s.Sent += b.sent - a.sent
	s.Received += b.recvd - a.recvd
	s.Trips += b.trips - a.trips
	if width > 0 {
		s.BusiestCPU = max(s.BusiestCPU, float64(b.threadCPU-a.threadCPU)/float64(width))
	}
	if t.first {
		// Of several threads (see edge), the one that ended last read the highest.
		s.CPU = max(s.CPU, seconds(b.processCPU-a.processCPU))
		s.Involuntary = b.involuntary - a.involuntary
	}
	s.addMany(t)
	s.addTCP(t, a, b, n)
	if t.hist != nil {
		if s.Latency == nil {
			s.Latency = t.hist
		} else {
			s.Latency.Merge(t.hist)
		}
	}
	for name, h := range t.times {
		if s.Times == nil {
			s.Times = map[string]*hdrhistogram.Histogram{}
		}
		if s.Times[name] == nil {
			s.Times[name] = h
		} else {
			s.Times[name].Merge(h)
		}
	}
	for name, c := range t.counts {
		if s.Counts == nil {
			s.Counts = map[string]int64{}
		}
		s.Counts[name] += c
	}
}

func (s *Stats) count(name string, n int64) {
	if s.Counts == nil {
		s.Counts = map[string]int64{}
	}
	s.Counts[name] += n
}

// addTCP adds the counters of a thread's connection between the marks a and b, unless the thread is
// a twin. Means are over the load's n connections, without a parallel stream's.
func (s *Stats) addTCP(t *thread, a, b mark, n int64) {
	if t.twin != nil {
		return
	}
	s.TCP.Retransmits += int64(b.tcp.Total_retrans) - int64(a.tcp.Total_retrans)
	s.TCP.Resent += int64(tcpInfo(t.fd).Bytes_retrans)
	if t.beside() && t.serves {
		s.count(workload.CountBeside, b.recvd-a.recvd)
		s.count(workload.CountBesideNs, b.at-a.at)
	}
	if !t.main() {
		return
	}
	if width := seconds(b.at - a.at); t.bulk.Bytes > 0 {
		s.Window = max(s.Window, width) // up to the last connection's last byte
	} else {
		s.Window += width / float64(n)
	}
	const usec = 1000
	s.TCP.RTT += seconds(int64(b.tcp.Rtt)*usec) / float64(n)
	s.TCP.RTTVar += seconds(int64(b.tcp.Rttvar)*usec) / float64(n)
	s.TCP.RTO = max(s.TCP.RTO, seconds(int64(b.tcp.Rto)*usec))
	s.TCP.Cwnd += int64(b.tcp.Snd_cwnd) // stats divides the sums
	s.TCP.MSS += int64(b.tcp.Snd_mss)
	s.addPath(t.fd, b.tcp)
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }

// The sizes of headers, in bytes.
const (
	header4     = 20
	header6     = 40
	headerTCP   = 20
	timestamps  = 12
	tcpOptStamp = 1 // TCPI_OPT_TIMESTAMPS
)

func (s *Stats) addPath(fd int, tcp unix.TCPInfo) {
	if tcp.Pmtu == 0 || tcp.Snd_mss == 0 {
		return
	}
	sa, err := unix.Getpeername(fd)
	if err != nil {
		return
	}
	headers := int64(headerTCP)
	var peer netip.Addr
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		peer, headers = netip.AddrFrom4(sa.Addr), headers+header4
	case *unix.SockaddrInet6:
		peer, headers = netip.AddrFrom16(sa.Addr).Unmap(), headers+header6
	}
	if peer.Is4() {
		headers = headerTCP + header4
	}
	if tcp.Options&tcpOptStamp != 0 {
		headers += timestamps
	}
	if packet := int64(tcp.Snd_mss) + headers; s.TCP.Packet == 0 || packet < s.TCP.Packet {
		s.TCP.PMTU, s.TCP.Packet, s.TCP.Headers = int64(tcp.Pmtu), packet, headers
		s.Peer = peer
	}
}
