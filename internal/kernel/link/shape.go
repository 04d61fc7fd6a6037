package link

import (
	"fmt"
	"math"
	"time"

	"github.com/vishvananda/netlink"
)

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
