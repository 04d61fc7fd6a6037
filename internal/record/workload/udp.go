package workload

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// UDP is datagrams from client to server. A flow begins with a greeting, which the server answers
// from a socket of the flow's own. It ends with a message that is repeated until it is answered.
const UDP = "udp"

// UDPOf returns the load's options, or the zero value for other kinds.
func UDPOf(l sample.Load) sample.UDPOptions { return options[sample.UDPOptions](l) }

func udpFill(l *sample.Load) {
	set(l, func(o *sample.UDPOptions) {
		o.Size, o.Batch = cmp.Or(o.Size, defaultDatagram), cmp.Or(o.Batch, 1)
	})
}

// Metrics of the loads over UDP. Shares are of the datagrams sent, or the round trips begun, in the
// window.
const (
	Packets      = "packets"        // arrived per second
	Loss         = "loss"           // did not arrive, or had no answer
	SocketLoss   = "loss_at_socket" // dropped by the receiving socket, whose queue was full
	Reordered    = "reordered"      // arrived after a later one
	Duplicates   = "duplicates"     // arrived again
	Offered      = "offered"        // bit/s sent
	CPUPerPacket = "cpu_per_packet" // of the whole machine
)

var udp = Workload{
	About: "Datagrams at the highest rate that loses at most 0.1 %, or at --bitrate. It shows the rate, the loss and what a packet costs: " +
		"media, telemetry, QUIC.",
	Name: UDP, Gist: "datagrams", UDP: true, Flags: udpFlags, fill: udpFill,
	time: udpTime, notSliced: because("toll searches for the highest rate, or keeps a given one"),
	Primary: Throughput, Noun: "throughput", Rate: Throughput, apart: "UDP throughput",
	words:   udpWords,
	figures: (*Figures).datagrams, work: received,
	doubts: udpDoubts, limit: udpLimit,
}

func udpWords(l sample.Load) string {
	o := UDPOf(l)
	words := []string{"udp, " + units.Plural(o.Size, "byte")}
	if l.Streams > 1 {
		words = append(words, units.Plural(l.Streams, "flow"))
	}
	if o.Rate > 0 {
		words = append(words, "at "+units.Rate(o.Rate))
	} else {
		words = append(words, "at the highest rate that loses at most 0.1 %")
	}
	if o.Batch > 1 {
		words = append(words, fmt.Sprintf("%d a call", o.Batch))
	}
	if o.GSO {
		words = append(words, "GSO")
	}
	return strings.Join(words, ", ")
}

// Bounds of a datagram's payload, in bytes: room for a control message, and IPv4's limit.
const (
	MinDatagram     = 64
	MaxDatagram     = 65507
	defaultDatagram = 1400 // fits an MTU of 1500, even in tunnels
	MaxBatch        = 256  // datagrams, or with GSO buffers, per system call
)

// bit/s
const (
	minBitrate = 1e3
	maxBitrate = 400e9
)

var udpFlags = []Flag{
	{Name: "streams", Help: "flows", Value: Whole{1, 1, maxStreams, func(l *sample.Load, n int) {
		l.Streams = n
	}}},
	{Name: "bitrate",
		Help: "rate of all flows together, such as 500mbit (default the highest that loses at most 0.1 %)",
		Value: Rate{minBitrate, maxBitrate, func(l *sample.Load, x float64) {
			set(l, func(o *sample.UDPOptions) { o.Rate = x })
		}}},
	{Name: "datagram", Help: "bytes of a datagram's payload",
		Value: Size{defaultDatagram, MinDatagram, MaxDatagram, func(l *sample.Load, n int64) {
			set(l, func(o *sample.UDPOptions) { o.Size = int(n) })
		}}},
	{Name: "batch", Help: "datagrams per system call (sendmmsg, recvmmsg)",
		Value: Whole{1, 1, MaxBatch, func(l *sample.Load, n int) {
			set(l, func(o *sample.UDPOptions) { o.Batch = n })
		}}},
	{Name: "gso", Help: "let the kernel cut and join datagrams (UDP_SEGMENT, UDP_GRO)",
		Value: Toggle{func(l *sample.Load, on bool) {
			set(l, func(o *sample.UDPOptions) { o.GSO = on })
		}}},
}

// A warm-up's parts, in seconds and round trips.
const (
	searchTime  = 0.65 // for a dozen steps and three to confirm the result
	searchTrips = 36
	pacedTime   = 0.05
)

func udpTime(l *sample.Load, w sample.Wire) {
	l.Warmup = searchTime + searchTrips*w.RoundTrip()
	if UDPOf(*l).Rate > 0 {
		l.Warmup = pacedTime + Settled*w.RoundTrip()
	}
}

// Counts of the loads over UDP, in the window.
const (
	CountDatagrams = "datagrams" // sent (client), or arrived, each once (server)
	// sent and not arrived (udp, server); requests without a timely reply (udp-rr, client)
	CountLost       = "lost"
	CountAnswered   = "answered"   // requests with a timely reply (udp-rr, client)
	CountReordered  = "reordered"  // RFC 4737
	CountDuplicates = "duplicates" // arrived again
	CountDropped    = "dropped"    // lost in the receiving socket's full queue
	CountMissed     = "missed"     // not sent because the client was late
	CountRate       = "rate"       // target in bit/s; 0: the highest possible
	CountBuffer     = "buffer"     // of the receive buffers, in bytes
	CountLate       = "late"       // late replies (udp-rr, client)
)

// tolerated is the largest share of loss that counts as lossless.
const tolerated = 0.001

// kept is the share of its rate that a client must send.
const kept = 0.98

func (f *Figures) datagrams(v sample.Visit, l sample.Load) {
	o := UDPOf(l)
	f.bytes(v, float64(v.Server.Received)/v.Server.Window)
	f.set(Offered, bitsPerByte*float64(v.Client.Sent)/v.Client.Window)
	if o.Size > 0 && v.Server.Received > 0 {
		packets := float64(v.Server.Received) / float64(o.Size) / v.Server.Window
		f.set(Packets, packets)
		if f.busy > 0 && v.Elapsed > 0 {
			f.set(CPUPerPacket, f.busy/v.Elapsed/packets)
		}
	}
	in, sent := v.Server.Counts, float64(v.Client.Counts[CountDatagrams])
	for name, count := range map[string]string{Loss: CountLost, SocketLoss: CountDropped,
		Reordered: CountReordered, Duplicates: CountDuplicates} {
		f.set(name, float64(in[count])/sent)
	}
}

// udpLimit returns the requested rate if nearly all of it arrived.
func udpLimit(s Seen) string {
	if rate := UDPOf(s.Load).Rate; rate > 0 && s.Median(Throughput) >= kept*rate {
		return "rate"
	}
	return ""
}

func udpDoubts(s Seen) (out []Doubt) {
	if len(s.Visits) == 0 {
		return nil
	}
	rate := UDPOf(s.Load).Rate
	var sent, missed, blocked float64
	for _, v := range s.Visits {
		sent += float64(v.Client.Counts[CountDatagrams])
		missed += float64(v.Client.Counts[CountMissed])
		blocked += float64(v.Client.Counts[CountBlocked])
	}
	if share := sent / (sent + missed); missed > 0 && rate > 0 && share < kept {
		x := doubt(Behind, share)
		if x.What = WhySlow; blocked > 0 {
			x.What = WhyFull
		}
		out = append(out, x)
	}
	if loss := s.Median(Loss); rate == 0 && loss > tolerated {
		out = append(out, doubt(Lossy, loss))
	}
	return out
}
