package load

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
)

// poller waits for events of many connections, or for an instant. It uses epoll with a timerfd,
// because epoll's own timeouts are in ms and have a slack.
type poller struct {
	ep, timer int
	armed     int64 // the timer's instant; 0: not set
	events    []unix.EpollEvent
}

const timerID = -1

func newPoller(connections int) (*poller, error) {
	const batch = 64
	p := &poller{ep: -1, timer: -1, events: make([]unix.EpollEvent, min(batch, connections+1))}
	var err error
	if p.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make epoll: %w", err)
	}
	p.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make timer: %w", err), p.close())
	}
	// Edge-triggered, so that the timer is reported once and need not be read.
	err = p.control(unix.EPOLL_CTL_ADD, p.timer, timerID, unix.EPOLLIN|unix.EPOLLET)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *poller) close() error {
	var errs []error
	for _, fd := range []int{p.timer, p.ep} {
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	return errors.Join(errs...)
}

func (p *poller) watch(fd, id int) error {
	return p.control(unix.EPOLL_CTL_ADD, fd, id, unix.EPOLLIN)
}

func (p *poller) change(fd, id int, what uint32) error {
	return p.control(unix.EPOLL_CTL_MOD, fd, id, what)
}

func (p *poller) forget(fd int) error { return p.control(unix.EPOLL_CTL_DEL, fd, 0, 0) }

func (p *poller) control(op, fd, id int, what uint32) error {
	err := unix.EpollCtl(p.ep, op, fd, &unix.EpollEvent{Events: what, Fd: int32(id)})
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// wait waits for events until the instant until (ns), and returns those of connections and of the
// timer (timerID), or none after a signal. They are valid until the next call. slept means that
// none was ready at first.
func (p *poller) wait(until int64) (ready []unix.EpollEvent, slept bool, e syscall.Errno) {
	if ready, e = p.poll(0); len(ready) > 0 || e != 0 || until <= clock.Now() {
		return ready, false, e
	}
	if p.armed != until {
		p.armed = until
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(until)}
		if _, _, e := syscall.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(p.timer),
			unix.TFD_TIMER_ABSTIME,
			uintptr(unsafe.Pointer(&spec)), 0, 0, 0); e != 0 {
			return nil, false, e
		}
	}
	ready, e = p.poll(-1)
	return ready, true, e
}

func (p *poller) poll(ms int) ([]unix.EpollEvent, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.ep),
		uintptr(unsafe.Pointer(&p.events[0])),
		uintptr(len(p.events)), uintptr(ms), 0, 0)
	switch {
	case e == syscall.EINTR:
		return nil, 0
	case e != 0:
		return nil, e
	}
	ready := p.events[:n]
	for _, ev := range ready {
		if ev.Fd == timerID {
			p.armed = 0
		}
	}
	return ready, 0
}
