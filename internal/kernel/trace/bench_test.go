package trace

import (
	"errors"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkTrip times round trips through a bridge between two threads of one CPU, so that no CPU
// has to wake up. An event costs recording minus untraced, divided by events/op; a bystander pays
// bystander minus untraced for as many tracepoints.
func BenchmarkTrip(b *testing.B) {
	for _, state := range []struct {
		name   string
		traced bool
		config Config
		until  int64
	}{
		{"untraced", false, Config{}, 0},
		{"silent", true, Config{}, 0},
		{"bystander", true, Config{Ports: []uint16{port + 1}, PIDs: []int{1 << 21}}, 1 << 62},
		{"recording", true, Config{}, 1 << 62},
		{"two", true, Config{Copies: 2}, 1 << 62},
		{"three", true, Config{Copies: 3}, 1 << 62},
	} {
		b.Run(state.name, func(b *testing.B) {
			e := bridged(b).connect(b, unix.SOCK_STREAM)
			if !state.traced {
				e.bench(b)
				return
			}
			state.config.Events = 1 << 20
			log, lost := record(b, tracer(b), state.config, func(r *Recording) {
				r.Between(0, state.until)
				e.bench(b)
			})
			b.ReportMetric(float64(len(log)+lost)/float64(b.N), "events/op")
		})
	}
}

func (e ends) bench(b *testing.B) {
	served := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		served <- pinned(func() error { return e.serve(b.N) })
	}()
	asked := make(chan error)
	b.ResetTimer()
	go func() {
		runtime.LockOSThread()
		asked <- pinned(func() error { return e.ask(b.N) })
	}()
	err := <-asked
	b.StopTimer()
	if err := errors.Join(err, <-served); err != nil {
		b.Fatal(err)
	}
}

// pinned runs f on the first CPU that the process may use.
func pinned(f func() error) error {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	return f()
}
