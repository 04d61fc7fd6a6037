package truth

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
)

// burnArg makes this process burn CPU time for the share given by the next argument.
const burnArg = "burn"

// Inner burns CPU time until it is killed or its parent exits, or relays, or answers requests. ours
// is false for other args.
func Inner(args []string) (ours bool, err error) {
	if len(args) > 1 && args[0] == relayArg {
		return true, relay(args[1], args[2:])
	}
	if len(args) == 3 && args[0] == answerArg {
		return true, answer(args[1], args[2])
	}
	if len(args) > 1 && args[0] == programArg {
		return true, program(args[1:])
	}
	if len(args) > 1 && args[0] == besideArg {
		return true, onFirstCPU(func() error { return program(args[1:]) })
	}
	if len(args) != 2 || args[0] != burnArg {
		return false, nil
	}
	share, err := strconv.ParseFloat(args[1], 64)
	if err == nil {
		burn(share)
	}
	return true, err
}

const (
	// Each burner works three quarters of the time, so that the load average is about 3 if they get
	// the CPU.
	burners   = 4
	burnShare = 0.75
	niceness  = 10
)

// The memory that burn uses exceeds the caches.
func burn(share float64) {
	const (
		size = 8 << 20 // bytes
		line = 64
		mean = 150 * time.Millisecond
	)
	pause := time.Duration(float64(mean) * (1 - share) / share)
	memory := make([]byte, size)
	random := func(mean time.Duration) time.Duration {
		return time.Duration(rand.ExpFloat64() * float64(mean))
	}
	parent := os.Getppid()
	for at := 0; os.Getppid() == parent; {
		for until := time.Now().Add(random(mean)); time.Now().Before(until); {
			for range size / line {
				at = (at + 97*line) % size
				memory[at]++
			}
		}
		time.Sleep(random(pause))
	}
}

type work struct {
	processes int
	share     float64 // of the time that each process works
	nice      int
	cpus      []int // to which they are pinned; empty: any
}

var ordinary = work{processes: burners, share: burnShare, nice: niceness}

const halfBusy = "a half-busy CPU"

func startHalfBusy(cpus ...int) (stop func(), err error) {
	const half = 0.5
	return startWork(work{processes: 1, share: half, cpus: cpus})
}

func startWork(w work) (stop func(), err error) {
	var all []*exec.Cmd
	stop = func() {
		for _, c := range all {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	for range w.processes {
		c := exec.Command("/proc/self/exe", burnArg, strconv.FormatFloat(w.share, 'g', -1, 64))
		c.Args[0] = os.Args[0]
		if err := c.Start(); err != nil {
			return nil, fmt.Errorf("start work: %w", err)
		}
		all = append(all, c)
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, c.Process.Pid, w.nice); err != nil {
			return nil, fmt.Errorf("nice work: %w", err)
		}
		if len(w.cpus) > 0 {
			if err := machine.SetAffinity(c.Process.Pid, w.cpus); err != nil {
				return nil, err
			}
		}
	}
	return stop, nil
}
