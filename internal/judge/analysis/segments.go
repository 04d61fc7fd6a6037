package analysis

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Segments holds what TCP sends at once at one end of a path, from its kernel in the last visit.
type Segments struct {
	End     string `json:"end"`           // client or server
	Payload int    `json:"payload_bytes"` // of a full segment
	// Packet is the size of the largest IP packet that the path carries, as far as that end's
	// kernel has found out.
	Packet int `json:"packet_bytes"`
	// Device sends the segments. MTU is its MTU in bytes; 0: not known.
	Device string `json:"device,omitempty"`
	MTU    int    `json:"mtu,omitempty"`
}

const (
	// Above this path MTU, the segment size does not show it: TCP sends at most half of the other
	// end's window at once.
	large = 16384
	// The largest IP packet is smaller than the loopback device's MTU.
	mostIP = 65535
)

func (s *Series) segments() []Segments {
	if len(s.Visits) == 0 {
		return nil
	}
	return SegmentsOf(*s.Visits[len(s.Visits)-1])
}

// SegmentsOf returns the known segments of both ends.
func SegmentsOf(v sample.Visit) (out []Segments) {
	for _, e := range []struct {
		end string
		tcp sample.TCPInfo
	}{{"client", v.Client.TCP}, {"server", v.Server.TCP}} {
		t := e.tcp
		if t.PMTU == 0 || t.Packet == 0 {
			continue
		}
		packet := t.PMTU
		if packet <= large {
			packet = min(packet, t.Packet)
		}
		out = append(out, Segments{End: e.end, Payload: int(t.Segment()), Packet: int(packet),
			Device: t.Device, MTU: int(t.DeviceMTU)})
	}
	return out
}

// Narrow reports whether the path carries smaller packets than the end's device. It returns false
// for loopback, whose connections may be redirected to a container.
func (s Segments) Narrow() bool { return s.MTU > 0 && s.MTU < mostIP && s.Packet < s.MTU }

func (j *Run) narrowWarning(s *Series) (w Warning, ok bool) {
	// Small windows make small segments.
	if strings.Contains(string(s.Cell.Tune), string(mode.Rmem)+"=") {
		return w, false
	}
	all := s.segments()
	i := slices.IndexFunc(all, Segments.Narrow)
	if i < 0 {
		return w, false
	}
	at := all[i]
	f := Finding{Code: PathMTU, What: at.End, On: at.Device, Values: map[string]float64{
		SegmentPayload: float64(at.Payload), SegmentPacket: float64(at.Packet),
		PathMTU: float64(at.MTU)}}
	p, _ := j.File.Header.PathOf(s.Cell)
	other := slices.IndexFunc(all, func(o Segments) bool {
		return o.End != at.End && o.MTU == at.Packet
	})
	if other >= 0 && !slices.Contains(p.Hops, string(mode.HopProxy)) {
		f.Why, f.Values[OtherMTU] = all[other].Device, float64(all[other].MTU)
	}
	return warn(f), true
}
