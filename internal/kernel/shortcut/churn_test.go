package shortcut

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// Entries are never removed, as if the keeper had died, while two containers take turns at one
// address.
func TestAddressIsReused(t *testing.T) {
	m := newMachine(t)
	cycles := 100
	if n, err := strconv.Atoi(os.Getenv("BRIDGETOLL_TEST_CHURN")); err == nil {
		cycles = n
	}
	target := netip.AddrPortFrom(boxAddr4.Addr(), 81)
	ports := []string{"127.0.0.1:7081", "127.0.0.1:7082"}
	// Without a pause the refused clients would leave the only CPU of a small machine to no process
	// that they wait for.
	const pause = 500 * time.Microsecond
	stop := make(chan struct{})
	var all sync.WaitGroup
	var right, byProxy, none atomic.Int64
	for i := range 4 {
		want := fmt.Sprintf("container%d for 172.31.9.1", i%2)
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				switch got := m.askApart(ports[i%2]); {
				case got == want:
					right.Add(1)
				case got == "proxy":
					byProxy.Add(1)
				case strings.HasPrefix(got, "container"):
					t.Errorf("%s: %s answered", ports[i%2], got)
					return
				default:
					none.Add(1)
					time.Sleep(pause)
				}
			}
		})
	}
	for i := range cycles {
		l := serve(t, m.box, fmt.Sprintf("172.31.9.2:%d", target.Port()),
			fmt.Sprintf("container%d", i%2))
		p := m.proxy(t, ports[i%2])
		m.add(t, ports[i%2], target, p)
		n := right.Load()
		if !testwait.Met(time.Minute, func() bool { return right.Load() > n }) {
			t.Errorf("cycle %d: nobody took the shortcut", i)
		}
		m.proxies[p.PID]()
		l.Close()
		if t.Failed() {
			break
		}
	}
	close(stop)
	all.Wait()
	t.Logf("%d cycles: %d connections reached the right container, %d docker-proxy, %d nobody",
		cycles, right.Load(), byProxy.Load(), none.Load())
}

// askApart does not block its thread, on which clients would wait for each other.
func (m *testMachine) askApart(at string) string {
	var fd int
	if err := m.host.Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		return err
	}); err != nil {
		return err.Error()
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	to := netip.MustParseAddrPort(at)
	err := unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())})
	if err != nil {
		return err.Error()
	}
	c, err := net.FileConn(f)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	return answer(c)
}
