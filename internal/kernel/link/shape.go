package link

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Shape slows down what a device sends.
type Shape struct {
	Rate  uint64        // bit/s; 0 is unlimited
	Delay time.Duration // 0 is none
}

const (
	// shapeQueue is the longest queue in time at the shape's rate, as of a
	// switch with a shallow buffer, and shapeQueueMin its least in bytes.
	shapeQueue    = time.Millisecond
	shapeQueueMin = 256 << 10
	// burstMin lets the largest packets that TCP hands over pass whole, as a
	// card with segmentation offload takes them.
	burstMin = 128 << 10
	// burstTime is what the kernel's timer may be late.
	burstTime = 100 * time.Microsecond
	// delayQueue is how many packets may be under way.
	delayQueue = 100_000
)

// SetShape gives the device the queueing disciplines for s: netem for the
// delay and, behind it, tbf for the rate. The zero value changes nothing. A
// kernel without one of them answers ENOENT.
func SetShape(name string, s Shape) error {
	if s == (Shape{}) {
		return nil
	}
	l, err := byName(name)
	if err != nil {
		return err
	}
	at := netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)}
	if s.Delay > 0 {
		q := netlink.NewNetem(at, netlink.NetemQdiscAttrs{Latency: uint32(s.Delay.Microseconds()), Limit: delayQueue})
		if err := netlink.QdiscAdd(q); err != nil {
			return fmt.Errorf("delay %s by netem: %w", name, err)
		}
		at.Parent, at.Handle = netlink.MakeHandle(1, 1), netlink.MakeHandle(2, 0)
	}
	if s.Rate > 0 {
		const bits = 8
		bytes := float64(s.Rate) / bits
		in := func(t time.Duration, least float64) uint32 {
			return uint32(min(max(bytes*t.Seconds(), least), math.MaxUint32))
		}
		burst := in(burstTime, burstMin)
		q := &netlink.Tbf{QdiscAttrs: at, Rate: uint64(bytes), Limit: in(shapeQueue, shapeQueueMin) + burst,
			Buffer: netlink.Xmittime(uint64(bytes), burst)}
		if err := netlink.QdiscAdd(q); err != nil {
			return fmt.Errorf("limit the rate of %s by tbf: %w", name, err)
		}
	}
	return nil
}

// ClearShape takes the shape off again.
func ClearShape(name string) error {
	l, err := byName(name)
	if err != nil {
		return err
	}
	err = netlink.QdiscDel(&netlink.GenericQdisc{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_ROOT}})
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("clear the shape of %s: %w", name, err)
	}
	return nil
}
