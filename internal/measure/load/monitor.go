package load

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
)

// A thread that blocks in a raw system call keeps the Go runtime's monitor thread awake, which then
// sets a timer every 10 ms. With many processes waiting for their slices, an idle CPU mostly has a
// timer within its next tick, so it does not stop the tick. On a virtual machine it then wakes a
// fifth faster than under the same load alone.
const monitorSlack = time.Second

// quietMonitor sets the timer slack of the monitor thread to monitorSlack. It returns an error
// without CAP_SYS_NICE.
func quietMonitor() error {
	tid, err := monitor()
	if err != nil {
		return err
	}
	return setSlack(tid, monitorSlack)
}

// monitor returns the ID of the monitor thread, which the runtime starts before all others.
func monitor() (tid int, err error) {
	self, err := procfs.Self()
	if err != nil {
		return 0, err
	}
	threads, err := procfs.AllThreads(self.PID)
	if err != nil {
		return 0, err
	}
	if len(threads) < 2 { // the process's first thread, and the monitor
		return 0, fmt.Errorf("no monitor among threads %v", threads)
	}
	sort.Sort(threads)
	return threads[1].PID, nil
}

func setSlack(tid int, d time.Duration) error {
	return os.WriteFile("/proc/"+strconv.Itoa(tid)+"/timerslack_ns",
		strconv.AppendInt(nil, d.Nanoseconds(), 10), 0)
}

// watch takes all threads' marks at the window's bounds, even while they are blocked. A thread
// without a connection gets none and fails.
func (c *threadGroup) watch(when Schedule) {
	if !c.threads[0].watched {
		return
	}
	for _, bound := range []int64{when.From, when.To} {
		clock.SleepUntil(bound)
		for _, t := range c.threads {
			tid := int(t.tid.Load())
			if tid == 0 {
				continue
			}
			t.mark(mark{at: clock.Now(), sent: t.shown.sent.Load(), recvd: t.shown.recvd.Load(),
				trips:     t.shown.trips.Load(),
				threadCPU: clock.CPU(threadClock(tid))})
		}
	}
}

// threadClock returns the ID of another thread's CPU-time clock, like pthread_getcpuclockid.
func threadClock(tid int) int32 {
	const perThreadSched = 6
	return int32(^tid<<3 | perThreadSched)
}

func (t *thread) flow(a, b mark) Flow {
	return Flow{
		Client:    t.client,
		Sent:      int64(b.tcp.Bytes_acked) - int64(a.tcp.Bytes_acked),
		Received:  b.recvd - a.recvd,
		Trips:     b.trips - a.trips,
		TotalRecv: t.recvd,
		Resent:    int64(tcpInfo(t.fd).Bytes_retrans),
	}
}
