package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// burnArg makes this process work beside a run, as a compiler does.
const burnArg = "burn"

const (
	// burners work three quarters of the time each, which makes a load average of
	// about 3 where they get the CPU.
	burners  = 4
	niceness = 10
)

// burn works in bursts, over more memory than the caches hold, until it is killed
// or whoever started it has gone.
func burn() {
	const (
		size  = 8 << 20 // bytes
		line  = 64      // of a cache
		mean  = 150 * time.Millisecond
		pause = mean / 3
	)
	memory := make([]byte, size)
	random := func(mean time.Duration) time.Duration { return time.Duration(rand.ExpFloat64() * float64(mean)) }
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

// startBurners starts the work; stop ends it.
func startBurners() (stop func(), err error) {
	var all []*exec.Cmd
	stop = func() {
		for _, c := range all {
			_ = c.Process.Kill()
			_ = c.Wait() // by the kill
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	for range burners {
		c := exec.Command("/proc/self/exe", burnArg)
		c.Args[0] = os.Args[0]
		if err := c.Start(); err != nil {
			return nil, fmt.Errorf("start work: %w", err)
		}
		all = append(all, c)
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, c.Process.Pid, niceness); err != nil {
			return nil, fmt.Errorf("nice work: %w", err)
		}
	}
	return stop, nil
}
