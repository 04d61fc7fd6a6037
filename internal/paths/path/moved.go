package path

import "math"

// Moved is a load's report of what a client moved in a whole visit, including the warm-up.
type Moved struct {
	Forward     int64 // payload that arrived, client to server
	Backward    int64 // payload that arrived, server to client
	Trips       int64 // request/response pairs
	Resent      int64 // by TCP, or lost; a hop may have counted them
	Connections int
	// Brief means that each connection ended with its trip, before the counters were read. Failed
	// is the number of connections that failed; Connections does not include them.
	Brief  bool
	Failed int

	// The fields below bound the number of packets. SentForward and SentBackward are the bytes that
	// the ends gave to their sockets, if these are more than arrived.
	SentForward, SentBackward int64
	Shape
	Segment int     // smallest payload of a full packet; 0: leastSegment
	Seconds float64 // between the readings of the counters

	eachAcked bool // each packet may be acknowledged separately, as by TCP stacks in user space
}

// Shape describes how a load sends its bytes, which bounds the number of packets.
type Shape struct {
	// Request and Reply are the mean sizes in bytes of messages, each of which may be a packet; 0:
	// a byte stream, written Write bytes at a time.
	Request, Reply, Write int
	Beside                bool // a byte stream runs at the same time as the requests
	Datagrams             bool // without acknowledgements
}

func (m Moved) plus(o Moved) Moved {
	segment := m.Segment
	if segment == 0 || o.Segment != 0 && o.Segment < segment {
		segment = o.Segment
	}
	return Moved{Forward: m.Forward + o.Forward, Backward: m.Backward + o.Backward,
		Trips: m.Trips + o.Trips, Resent: m.Resent + o.Resent,
		Connections: m.Connections + o.Connections,
		Brief:       m.Brief || o.Brief,
		Failed:      m.Failed + o.Failed,
		SentForward: m.SentForward + o.SentForward, SentBackward: m.SentBackward + o.SentBackward,
		Shape: o.Shape, Segment: segment, Seconds: max(m.Seconds, o.Seconds)}
}

// A hop must have counted every payload byte that arrived, and for every trip a packet in each
// direction. The load also bounds the number of packets, and thereby the bytes, from above.
const (
	slackShare = 0.02 // for example unseen retransmissions of a proxy
	tapShare   = 0.25 // a TCP in user space does not report what it resends

	// Ethernet 14, IPv6 40, TCP 60, and a tunnel's: Ethernet, IPv6, UDP and VXLAN 70, ESP 44
	headers = 228
	// payload of a full TCP packet if it is unknown (RFC 9293, 3.7.1)
	leastSegment = 536
	// number of packets that one segment's bytes may take, at the end of a congestion window, of a
	// write, or of a proxy's pipe
	splits = 2
	// Packets without payload: handshake and end in each direction, and acknowledgements, which
	// Linux sends at once when a connection begins (TCP_MAX_QUICKACKS) and later by timer
	// (TCP_DELACK_MIN).
	shake   = 8
	quick   = 16
	delayed = 0.040 // s

	quietBytes   = 8 << 10 // ARP, neighbour discovery
	quietPackets = 64
	eachBytes    = 512 // for each connection beyond the first
	eachPacket   = 8
	extraProbes  = 2 // seen twice (SYN sent again)
	probesEach   = 4 // of a failed connection
)

// flow is the expected traffic in one direction, or in both if the hop counts them as one.
type flow struct {
	arrived, trips int64
	messages       int64   // that arrived; 0 for a stream
	tries          float64 // messages, including those sent again
	sent           float64 // including bytes sent again
	data, bare     float64 // packets with payload, and without
}

func (f flow) plus(o flow) flow {
	return flow{f.arrived + o.arrived, f.trips + o.trips, f.messages + o.messages, f.tries + o.tries,
		f.sent + o.sent, f.data + o.data, f.bare + o.bare}
}

func (f flow) packets(slack float64) float64 { return (f.data+f.bare)*(1+slack) + quietPackets }

func (f flow) bytes(packets uint64, slack float64) float64 {
	return f.sent*(1+slack) + headers*float64(packets) + quietBytes
}

type direction struct {
	arrived int64
	sent    int64
	message int // bytes; 0: a stream
}

func (m Moved) directions() (there, back direction) {
	return direction{m.Forward, max(m.Forward, m.SentForward) + m.Resent, m.Request},
		direction{m.Backward, max(m.Backward, m.SentBackward) + m.Resent, m.Reply}
}

func (m Moved) forward() flow {
	there, back := m.directions()
	return m.flow(there, back)
}

func (m Moved) backward() flow {
	there, back := m.directions()
	return m.flow(back, there)
}

func (m Moved) flow(w, other direction) flow {
	f := flow{arrived: w.arrived, trips: m.Trips, sent: float64(w.sent), data: m.data(w),
		bare: m.bare(other)}
	if w.message > 0 {
		f.messages, f.tries = w.arrived/int64(w.message), float64(w.sent)/float64(w.message)
	}
	return f
}

func (m Moved) data(w direction) float64 {
	if w.message == 0 {
		return m.cut(w.sent)
	}
	trips := float64(w.sent) / float64(w.message)
	beside := 0.0
	if m.Beside { // the number of requests is known; the rest is the stream
		trips = min(trips, float64(m.Trips)+float64(m.Connections))
		beside = m.cut(w.sent - int64(trips)*int64(w.message))
	}
	return math.Ceil(trips)*math.Ceil(float64(w.message)/m.segment()) + beside
}

// cut returns the largest number of packets for bytes of a stream. With TCP_NODELAY each write is
// at least one packet.
func (m Moved) cut(bytes int64) float64 {
	each := m.segment()
	if m.Write > 0 {
		each = min(each, float64(m.Write))
	}
	return splits * math.Ceil(float64(max(0, bytes))/each)
}

func (m Moved) segment() float64 {
	if m.Segment > 0 {
		return float64(m.Segment)
	}
	return leastSegment
}

// bare returns the largest number of packets without payload: those that open and close
// connections, and acknowledgements. A message is acknowledged with its answer, unless it has none
// or is long: then each full packet may be acknowledged at once.
func (m Moved) bare(other direction) float64 {
	connections := float64(m.Connections)
	out := connections * (shake + quick)
	if !m.Brief {
		out += connections * (1 + quick) * m.Seconds / delayed
	}
	out += float64(m.Failed) * shake
	switch {
	case m.Datagrams:
		return out
	case m.Trips == 0 || m.Beside || m.eachAcked || other.message > leastSegment:
		out += m.data(other)
	}
	return out
}
