package sample

// Together combines several ends: sums, the longest times, and the means of windows and TCP values.
func Together(parties []Party) Party {
	var out Party
	n := len(parties)
	for _, p := range parties {
		out.Window += p.Window / float64(n)
		out.Sent += p.Sent
		out.Received += p.Received
		out.Trips += p.Trips
		out.TotalSent += p.TotalSent
		out.TotalRecv += p.TotalRecv
		out.Connections += p.Connections
		out.CPU += p.CPU
		out.BusiestCPU = max(out.BusiestCPU, p.BusiestCPU)
		out.Involuntary += p.Involuntary
		out.CPUs = p.CPUs
		out.RSS += p.RSS
		out.Late = max(out.Late, p.Late)
		for name, n := range p.Counts {
			if out.Counts == nil {
				out.Counts = map[string]int64{}
			}
			out.Counts[name] += n
		}
		out.TCP.Retransmits += p.TCP.Retransmits
		out.TCP.Resent += p.TCP.Resent
		out.TCP.RTT += p.TCP.RTT / float64(n)
		out.TCP.RTTVar += p.TCP.RTTVar / float64(n)
		out.TCP.RTO = max(out.TCP.RTO, p.TCP.RTO)
		out.TCP.Cwnd += p.TCP.Cwnd
		out.TCP.MSS += p.TCP.MSS
		// all from the smallest path
		if t := p.TCP; t.Packet > 0 && (out.TCP.Packet == 0 || t.Packet < out.TCP.Packet) {
			out.TCP.PMTU, out.TCP.Packet, out.TCP.Headers = t.PMTU, t.Packet, t.Headers
			out.TCP.Device, out.TCP.DeviceMTU = t.Device, t.DeviceMTU
		}
	}
	out.TCP.Cwnd, out.TCP.MSS = Mean(out.TCP.Cwnd, int64(n)), Mean(out.TCP.MSS, int64(n))
	return out
}

// Mean returns sum / n, rounded to the nearest; 0 if n is 0.
func Mean(sum, n int64) int64 { return (sum + n/2) / max(1, n) }

func (p Party) withoutWindow() Party {
	p.Window, p.CPU, p.BusiestCPU = 0, 0, 0
	p.Sent, p.Received, p.Trips = 0, 0, 0
	p.Involuntary, p.TCP.Retransmits = 0, 0
	return p
}

// WithoutWindow returns both ends without the figures of their windows, for a window other than the
// plan's.
func (e Ends) WithoutWindow() Ends {
	return Ends{e.Client.withoutWindow(), e.Server.withoutWindow()}
}
