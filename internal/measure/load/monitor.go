package load

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
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
