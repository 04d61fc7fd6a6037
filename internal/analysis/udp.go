package analysis

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// Names of the metrics of the loads over UDP. Shares are of the datagrams that
// were sent in the window, or of the round trips that were begun.
const (
	Packets      = "packets"        // that arrived, a second
	Loss         = "loss"           // share that did not arrive, or had no answer
	SocketLoss   = "loss_at_socket" // share that the receiving socket dropped, its queue being full
	Reordered    = "reordered"      // share that arrived after one that was sent later
	Duplicates   = "duplicates"     // share that arrived again
	Offered      = "offered"        // bit/s that were sent
	CPUPerPacket = "cpu_per_packet" // CPU time of the whole machine
)

// tolerated is the share of loss up to which a rate counts as one without.
const tolerated = 0.001

// kept is the share of its rate that a client must have sent.
const kept = 0.98

// addDatagrams adds a visit of udp.
func (s *series) addDatagrams(v sample.Visit, l sample.Load, busy float64) {
	s.addBulk(v, float64(v.Server.Received)/v.Server.Window, busy)
	s.set(Offered, v.Round, bitsPerByte*float64(v.Client.Sent)/v.Client.Window)
	if l.Size > 0 && v.Server.Received > 0 {
		packets := float64(v.Server.Received) / float64(l.Size) / v.Server.Window
		s.set(Packets, v.Round, packets)
		if busy > 0 && v.Elapsed > 0 {
			s.set(CPUPerPacket, v.Round, busy/v.Elapsed/packets)
		}
	}
	in, sent := v.Server.Counts, float64(v.Client.Counts["datagrams"])
	for name, count := range map[string]string{Loss: "lost", SocketLoss: "dropped", Reordered: "reordered", Duplicates: "duplicates"} {
		s.set(name, v.Round, float64(in[count])/sent)
	}
}

// addUDPTrips adds a visit of udp-rr.
func (s *series) addUDPTrips(v sample.Visit, l sample.Load, busy float64) {
	s.addRoundTrips(v, l, busy)
	lost := float64(v.Client.Counts["lost"])
	s.set(Loss, v.Round, lost/(lost+float64(v.Client.Trips)))
}

// fullRate is what limits a flow that got its whole rate through.
const fullRate = "rate"

// atRate reports whether the cell's load has a rate and nearly all of it came
// through.
func (j *judged) atRate(s *series) bool {
	rate := j.file.Header.Plan.LoadOf(s.cell.Load).Rate
	m, ok := s.metric(Throughput)
	return ok && s.cell.Load == "udp" && rate > 0 && m.Median >= kept*rate
}

// udpWarnings are the doubts about a cell of a load over UDP.
func (j *judged) udpWarnings(s *series) []Warning {
	var out []Warning
	if s.cell.Load != "udp" || len(s.visits) == 0 {
		return nil
	}
	rate := j.file.Header.Plan.LoadOf(s.cell.Load).Rate
	var sent, missed, blocked float64
	for _, v := range s.visits {
		sent += float64(v.Client.Counts["datagrams"])
		missed += float64(v.Client.Counts["missed"])
		blocked += float64(v.Client.Counts["blocked"])
	}
	if share := sent / (sent + missed); missed > 0 && rate > 0 && share < kept {
		why := "it was too slow, or kept off its CPU"
		if blocked > 0 {
			why = "its send buffer was full: what it sends into was not fast enough"
		}
		out = append(out, Warning{"behind", fmt.Sprintf("the client sent only %.1f %% of its rate: %s", 100*share, why)})
	}
	if loss := stats.Summarize(ordered(s.values[Loss])); rate == 0 && loss.N > 0 && loss.Median > tolerated {
		out = append(out, Warning{"lossy", fmt.Sprintf("at the rate that the search found %.2g %% were lost: a longer window, or a --bitrate below, tells what it can bear", 100*loss.Median)})
	}
	return out
}
