package analysis

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Capacity is the most payload that a path can carry, limited by its slowest part of known rate.
type Capacity struct {
	Limit  string `json:"limit"`            // as in LimitedBy
	Device string `json:"device,omitempty"` // "" for the plan's wire
	Where  string `json:"where,omitempty"`
	Rate   uint64 `json:"rate_bit_per_s"` // of frames
	// Payload is the number of payload bytes in a full segment or datagram, and Frame the number of
	// bytes that these take of the rate. Goodput is the rate times Payload/Frame, in bit/s.
	Payload int     `json:"payload_bytes"`
	Frame   int     `json:"frame_bytes"`
	Goodput float64 `json:"goodput_bit_per_s"`
	// Share is the achieved share of the goodput, in the faster direction.
	Share float64 `json:"share"`
}

// Limits of a path other than its wire.
const (
	limitCard   = "card"
	limitShaper = "shaper"
)

const (
	// A path that carries at least this share of its goodput counts as full. TCP needs a while to
	// recover after a loss or a pause.
	full = 0.92
	// Above this multiple of a card's reported speed, that speed must be wrong.
	cardOver = 1.03
	// the most that a shaper lets through, burst included, relative to its rate
	shaperOver = 1.1
)

// The bytes of a frame in addition to its IP packet. On a medium: preamble and start 8, header 14,
// checksum 4, gap 12. The kernel's shapers count the header alone.
const (
	onMedium = 38
	inKernel = 14
)

// The bytes that a tunnel over IPv4 adds. VXLAN: inner Ethernet, VXLAN, UDP and outer IP headers.
// ESP with AES-GCM: header, vector, trailer and checksum.
const (
	vxlanAdds = 14 + 8 + 8 + 20
	espAdds   = 36
)

// The header bytes of a packet, without IP's, if the file lacks them: TCP with timestamps, UDP.
const (
	tcpHeader = 20 + 12
	udpHeader = 8
	ip4Header = 20
	ip6Header = 40
	usualMTU  = 1500
)

// paravirtual lists drivers that report a made-up speed, or whose rate the hypervisor limits
// independently of it.
var paravirtual = []string{"virtio_net", "vmxnet3", "hv_netvsc", "vif", "xen_netfront", "ena",
	"gve", "mana", "netvsc", "veth", "tun"}

// limits reports whether a card's reported speed can limit a path: the card is a device on a bus
// with a real driver, or joins only such cards.
func limits(c sample.Card, all []sample.Card) bool {
	if c.Speed == 0 || slices.Contains(paravirtual, c.Driver) {
		return false
	}
	if c.Device {
		return true
	}
	members := 0
	for _, m := range all {
		if m.Under == c.Name && m.Where == c.Where {
			if !m.Device || slices.Contains(paravirtual, m.Driver) {
				return false
			}
			members++
		}
	}
	return members > 0
}

// capacity returns the capacity of the cell's path, or nil if it is not known.
func (j *Run) capacity(s *Series) *Capacity {
	p, ok := j.File.Header.PathOf(s.Cell)
	if !ok || s.fastest() == 0 {
		return nil
	}
	payload, packet, fragments := s.packets(j.File.Header.Plan, p)
	var out *Capacity
	add := func(c Capacity, overhead int) {
		c.Payload, c.Frame = payload, packet+fragments*overhead
		if c.Frame <= 0 || payload <= 0 {
			return
		}
		c.Goodput = float64(c.Rate) * float64(c.Payload) / float64(c.Frame)
		if out == nil || c.Goodput < out.Goodput {
			out = &c
		}
	}
	if w := j.File.Header.Plan.Wire; w != nil && w.Rate > 0 &&
		slices.Contains(p.Hops, string(mode.HopWire)) {
		add(Capacity{Limit: string(mode.HopWire), Rate: w.Rate}, inKernel)
	} else {
		for _, l := range p.Links {
			if l.Rate > 0 && (l.Kind != "loopback" ||
				slices.Contains(p.Hops, string(mode.HopLoopback))) {
				add(Capacity{Limit: limitShaper, Device: l.Name, Where: l.Where, Rate: l.Rate},
					inKernel)
			}
		}
	}
	for _, c := range j.File.Header.CardsOf(p) {
		if limits(c, j.File.Header.Environment.Cards) {
			add(Capacity{Limit: limitCard, Device: c.Name, Where: c.Where, Rate: c.Speed}, onMedium)
		}
	}
	if out != nil {
		out.Share = s.fastest() / out.Goodput
	}
	return out
}

func (s *Series) fastest() float64 {
	of := func(metric string) float64 {
		if xs := Ordered(s.Values[metric]); len(xs) > 0 {
			return stats.Median(xs)
		}
		return 0
	}
	if one := max(of(workload.ThroughputOut), of(workload.ThroughputBack)); one > 0 {
		return one
	}
	return of(workload.Throughput)
}

// packets returns the payload bytes of a full TCP segment of the client's connection, or of a UDP
// datagram, and the total size and number of the IP packets that carry it.
func (s *Series) packets(plan sample.Plan, p sample.Path) (payload, packet, n int) {
	tunnel := 0
	if slices.Contains(p.Hops, string(mode.HopVXLAN)) {
		tunnel += vxlanAdds
	}
	if slices.Contains(p.Hops, string(mode.HopESP)) {
		tunnel += espAdds
	}
	mtu := usualMTU
	if plan.Wire != nil && plan.Wire.MTU > 0 {
		mtu = plan.Wire.MTU
	}
	mtu -= tunnel
	ip := ip4Header
	if p.To.Six() {
		ip = ip6Header
	}
	if size := workload.UDPOf(s.Load).Size; workload.Of(s.Load).UDP && size > 0 {
		room := max(1, mtu-ip)
		n = max(1, (size+udpHeader+room-1)/room)
		return size, size + udpHeader + n*(ip+tunnel), n
	}
	headers := ip + tcpHeader
	payload = mtu - headers
	for _, v := range s.Visits {
		if t := v.Client.TCP; t.Segment() > 0 {
			payload = int(t.Segment())
			if t.Headers > 0 {
				headers = int(t.Headers)
			}
		}
	}
	return payload, payload + headers + tunnel, 1
}

func (c *Capacity) reached() bool {
	if c == nil || c.Share < full {
		return false
	}
	if c.Limit == limitCard {
		return c.Share <= cardOver
	}
	return c.Share*c.Goodput <= shaperOver*float64(c.Rate)
}

// brief returns the limit with its rate, "10 Gbit/s card", or only "wire" for a wire, whose rate is
// the plan's.
func (c *Capacity) brief() string {
	if c.Limit == string(mode.HopWire) {
		return c.Limit
	}
	return units.Rate(float64(c.Rate)) + " " + c.Limit
}

// Words names the limit in full: "the 10 Gbit/s card eth0 of node b".
func (c *Capacity) Words() string {
	text := "the " + c.brief()
	switch {
	case c.Device == "":
	case c.Limit == limitShaper:
		text += fmt.Sprintf(" (%s of %s)", c.Device, c.Where)
	default:
		text += fmt.Sprintf(" %s of %s", c.Device, c.Where)
	}
	return text
}

// Sum shows the computation of the goodput: "10 Gbit/s × 1448 of 1538 bytes = 9.41 Gbit/s".
func (c *Capacity) Sum() string {
	return fmt.Sprintf("%s × %d of %d bytes = %s", units.Rate(float64(c.Rate)), c.Payload, c.Frame,
		threeDigits(c.Goodput))
}

func threeDigits(bits float64) string {
	const giga, mega = 1e9, 1e6
	switch {
	case bits >= giga:
		return fmt.Sprintf("%.3g Gbit/s", bits/giga)
	case bits >= mega:
		return fmt.Sprintf("%.3g Mbit/s", bits/mega)
	}
	return fmt.Sprintf("%.3g kbit/s", bits/1000)
}

func (j *Run) fullWarnings(i int) []Warning {
	b, ok := j.BaselineOf(i)
	if !ok || b == i {
		return nil
	}
	base := j.capacity(j.Series[b])
	if !base.reached() || len(j.Series[i].Visits) == 0 {
		return nil
	}
	name := Label(j.Series[b].Cell)
	mine := j.capacity(j.Series[i])
	switch {
	case mine.reached():
		return []Warning{warn(Finding{Code: Full, What: name, Limit: mine})}
	case j.Against(i, b, Primary(j.Series[i].Load), name).Verdict == stats.Worse:
		return []Warning{warn(Finding{Code: Capped, What: name, Limit: base})}
	}
	return nil
}

func (j *Run) cardWarnings() (out []Warning) {
	all := j.File.Header.Environment.Cards
	for _, c := range all {
		if !limits(c, all) {
			continue
		}
		if c.Duplex == sample.HalfDuplex {
			out = append(out, warn(Finding{Code: HalfDuplex, What: c.Name, Why: c.Where}))
		}
		if c.Speed < c.MaxSpeed {
			f := Finding{Code: SlowLink, What: c.Name, Why: c.Where, Values: map[string]float64{
				SlowLink: float64(c.Speed), CardMost: float64(c.MaxSpeed)}}
			if p := c.PartnerSpeed; p > 0 && p < c.MaxSpeed {
				f.Values[CardPartner] = float64(p)
			}
			out = append(out, warn(f))
		}
	}
	return out
}
