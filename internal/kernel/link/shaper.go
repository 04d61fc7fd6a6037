package link

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// rateAttrs has an attribute with 32 bits at an offset, and one with 64 bits, in B/s
// (linux/pkt_sched.h); 0: none.
var rateAttrs = map[string]struct {
	old, offset, new uint16
}{
	"tbf":       {1, 8, 4},  // struct tc_ratespec
	"netem":     {6, 0, 8},  // TCA_NETEM_RATE, TCA_NETEM_RATE64
	"cake":      {0, 0, 2},  // TCA_CAKE_BASE_RATE64
	"htb class": {1, 20, 7}, // ceil
}

const (
	htbDefault   = 8 // minor number of the default class in struct tc_htb_glob
	unlimited32  = 1<<32 - 1
	tcMajor      = 0xffff0000
	mostParents  = 16
	bitsInAByte  = 8
	maxRateBytes = sample.MaxSpeed / bitsInAByte
)

func shaped(kind string, options []byte) (rate uint64) {
	at, ok := rateAttrs[kind]
	if !ok {
		return 0
	}
	attrs, err := nl.ParseRouteAttr(options)
	if err != nil {
		return 0
	}
	var wide uint64
	for _, a := range attrs {
		switch kind := a.Attr.Type &^ unix.NLA_F_NESTED; {
		case kind == at.new && len(a.Value) == 8:
			wide = binary.NativeEndian.Uint64(a.Value)
		case kind == at.old && len(a.Value) >= int(at.offset)+4:
			rate = uint64(binary.NativeEndian.Uint32(a.Value[at.offset:]))
		}
	}
	if wide > 0 {
		rate = wide
	}
	if rate == unlimited32 && wide == 0 || rate > maxRateBytes {
		return 0
	}
	return rate
}

// rateOf returns the rate that a device's queueing disciplines allow, in bit/s including link
// headers. For htb it is the rate of the default class. 0 means that the rate is unlimited or
// differs by packet.
func rateOf(index int) (bits uint64, err error) {
	all, err := tcDump(unix.RTM_GETQDISC, index, 0)
	if err != nil {
		return 0, err
	}
	return bitsInAByte * shaping{all, func() ([]tcMessage, error) {
		return tcDump(unix.RTM_GETTCLASS, index, 0)
	}}.below(netlink.HANDLE_ROOT, 0), nil
}

type shaping struct {
	all     []tcMessage
	classes func() ([]tcMessage, error)
}

func (s shaping) below(parent uint32, depth int) uint64 {
	const deepest = 8
	if depth > deepest {
		return 0
	}
	var at *tcMessage
	for i, m := range s.all {
		if m.Parent == parent && m.kind() != "ingress" && m.kind() != "clsact" {
			at = &s.all[i]
		}
	}
	if at == nil {
		return 0
	}
	switch at.kind() {
	case "tbf", "netem":
		return least(shaped(at.kind(), at.attrs[nl.TCA_OPTIONS]), s.below(at.Handle|1, depth+1))
	case "cake":
		return shaped(at.kind(), at.attrs[nl.TCA_OPTIONS])
	case "htb":
		class, rate := s.byDefault(*at)
		if class == 0 {
			return 0
		}
		return least(rate, s.below(class, depth+1))
	}
	return 0
}

// byDefault returns the class of packets that match no filter, and the lowest ceil of the class and
// its parents. Class 0 is not shaped.
func (s shaping) byDefault(htb tcMessage) (class uint32, rate uint64) {
	attrs, err := nl.ParseRouteAttr(htb.attrs[nl.TCA_OPTIONS])
	if err != nil {
		return 0, 0
	}
	for _, a := range attrs {
		if a.Attr.Type == tcaHTBInit && len(a.Value) >= htbDefault+4 {
			class = htb.Handle&tcMajor | binary.NativeEndian.Uint32(a.Value[htbDefault:])&^tcMajor
		}
	}
	all, err := s.classes()
	if err != nil || class&^tcMajor == 0 {
		return 0, 0
	}
	found := false
	for at, left := class, mostParents; left > 0; left-- {
		var here *tcMessage
		for i, m := range all {
			if m.Handle == at {
				here = &all[i]
			}
		}
		if here == nil {
			break
		}
		found = true
		rate = least(rate, shaped("htb class", here.attrs[nl.TCA_OPTIONS]))
		at = here.Parent
	}
	if !found {
		return 0, 0
	}
	return class, rate
}

func least(a, b uint64) uint64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Shape limits and delays what a device sends.
type Shape struct {
	Rate  uint64 // bit/s; 0 is unlimited
	Delay time.Duration
}

const (
	queueTime = time.Millisecond
	timerLate = 100 * time.Microsecond
	// Packets of 64 KiB pass whole, unless they last longer than slowTime.
	queueSize  = 256 << 10
	bucketSize = 128 << 10
	slowTime   = 10 * time.Millisecond
	// packets of the device's MTU in the queue
	fewest   = 10
	ethernet = 18 // header, with a VLAN tag
	// packets in flight
	delayQueue = 100_000
)

// SetShape sets netem for the delay and, behind it, tbf for the rate. With the zero Shape it
// changes nothing. The error wraps ENOENT if the kernel lacks netem or tbf.
func SetShape(name string, s Shape) error {
	if s == (Shape{}) {
		return nil
	}
	l, err := byName(name)
	if err != nil {
		return err
	}
	at := netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_ROOT,
		Handle: netlink.MakeHandle(1, 0)}
	if s.Delay > 0 {
		q := netlink.NewNetem(at, netlink.NetemQdiscAttrs{
			Latency: uint32(s.Delay.Microseconds()), Limit: delayQueue})
		if err := netlink.QdiscAdd(q); err != nil {
			return fmt.Errorf("delay %s by netem: %w", name, err)
		}
		at.Parent, at.Handle = netlink.MakeHandle(1, 1), netlink.MakeHandle(2, 0)
	}
	if s.Rate > 0 {
		const bits = 8
		bytes := float64(s.Rate) / bits
		frame := float64(l.Attrs().MTU + ethernet)
		in := func(t time.Duration, size, least float64) uint32 {
			slow := min(size, bytes*slowTime.Seconds())
			return uint32(min(max(bytes*t.Seconds(), slow, least), math.MaxUint32/2))
		}
		bucket := in(timerLate, bucketSize, frame)
		q := &netlink.Tbf{QdiscAttrs: at, Rate: uint64(bytes),
			Limit:  in(queueTime, queueSize, fewest*frame) + bucket,
			Buffer: netlink.Xmittime(uint64(bytes), bucket)}
		if err := netlink.QdiscAdd(q); err != nil {
			return fmt.Errorf("limit the rate of %s by tbf: %w", name, err)
		}
	}
	return nil
}

// ClearShape removes the shape.
func ClearShape(name string) error {
	return change(name, "clear the shape of "+name, func(l netlink.Link) error {
		return netlink.QdiscDel(&netlink.GenericQdisc{QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_ROOT}})
	})
}
