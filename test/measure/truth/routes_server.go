package truth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
)

// answerArg makes this process a server at an address, which answers as the next argument says.
const answerArg = "answer"

// answering is what a server does between a request and its reply.
type answering struct {
	Spin  time.Duration // by the clock
	Burn  time.Duration // of CPU time
	Sleep time.Duration
	Size  int  // of the reply's body, in bytes
	Alone bool // one request at a time
}

const requestEnd = "\r\n\r\n"

// answer answers the requests of HTTP at an address, with blocking calls on threads of their own.
// Once it listens it writes a byte.
func answer(how, at string) error {
	var a answering
	if err := json.Unmarshal([]byte(how), &a); err != nil {
		return err
	}
	l, err := net.Listen("tcp4", at)
	if err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString("."); err != nil {
		return err
	}
	reply := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", a.Size)
	reply = append(reply, bytes.Repeat([]byte{'x'}, a.Size)...)
	var one sync.Mutex
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		fd, err := blocking(c)
		if err != nil {
			return err
		}
		go a.serve(fd, reply, &one)
	}
}

func (a answering) serve(fd int, reply []byte, one *sync.Mutex) {
	runtime.LockOSThread()
	defer func() { _ = unix.Close(fd) }()
	a.talk(fd, reply, one)
}

// onFirstCPU calls f on the first CPU that this thread may use.
func onFirstCPU(f func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, first unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	for cpu := range len(all) * bits.UintSize {
		if all.IsSet(cpu) {
			first.Set(cpu)
			break
		}
	}
	if err := unix.SchedSetaffinity(0, &first); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.SchedSetaffinity(0, &all)) }()
	return f()
}

// talk answers the requests of a connection.
func (a answering) talk(fd int, reply []byte, one *sync.Mutex) {
	buffer := make([]byte, 1<<12)
	for n := 0; ; {
		got, err := unix.Read(fd, buffer[n:])
		if err != nil || got <= 0 {
			return
		}
		if n += got; !bytes.HasSuffix(buffer[:n], []byte(requestEnd)) {
			continue
		}
		n = 0
		if a.Alone {
			one.Lock()
		}
		a.work()
		err = writeAll(fd, reply)
		if a.Alone {
			one.Unlock()
		}
		if err != nil {
			return
		}
	}
}

func (a answering) work() {
	if a.Sleep > 0 {
		rest := unix.NsecToTimespec(a.Sleep.Nanoseconds())
		_ = unix.Nanosleep(&rest, nil)
	}
	for until := clock.Now() + a.Spin.Nanoseconds(); a.Spin > 0 && clock.Now() < until; {
	}
	for until := threadTime() + a.Burn; a.Burn > 0 && threadTime() < until; {
	}
}

// threadTime returns the CPU time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
