package writes

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const patience = time.Minute

func opened(t *testing.T, ports ...uint16) *Recorder {
	t.Helper()
	return openedOf(t, Of{Local: ports})
}

func openedOf(t *testing.T, of Of) *Recorder {
	t.Helper()
	r, err := Open(of)
	if u := (*machine.UnsupportedError)(nil); errors.As(err, &u) {
		pathtest.SkipOrFail(t, "%s", u)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// pair returns both ends of a connection.
func pair(t *testing.T, at string) (server, client *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Skip(err) // no IPv6
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		s.Close()
	})
	return s.(*net.TCPConn), c.(*net.TCPConn)
}

func TestRecorder(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		other, otherClient := pair(t, at)
		server, client := pair(t, at)
		local := uint16(server.LocalAddr().(*net.TCPAddr).Port)
		remote := uint16(client.LocalAddr().(*net.TCPAddr).Port)
		r := opened(t, local)
		send := func(from, to net.Conn, n int) {
			t.Helper()
			if _, err := from.Write(make([]byte, n)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(to, make([]byte, n)); err != nil {
				t.Fatal(err)
			}
		}
		before := clock.Now()
		send(other, otherClient, 3) // at another port
		send(client, server, 5)     // in the other direction
		send(server, client, 7)
		if err := server.SetNoDelay(false); err != nil {
			t.Fatal(err)
		}
		send(server, client, 11)
		after := clock.Now()
		var all []Event
		testwait.Until(t, patience, "both writes and segments are recorded", func() bool {
			if err := r.Read(func(e *Event) { all = append(all, *e) }); err != nil {
				t.Fatal(err)
			}
			return len(all) >= 4
		})
		if len(all) != 4 {
			t.Fatalf("%s: %+v", at, all)
		}
		for i, want := range []Event{{Kind: Write, Len: 7}, {Kind: Send, Len: 7},
			{Kind: Write, Len: 11, Nagle: true}, {Kind: Send, Len: 11, Nagle: true}} {
			e := all[i]
			if e.Kind != want.Kind || e.Len != want.Len || e.Nagle != want.Nagle ||
				e.Local != local || e.Remote != remote ||
				netip.AddrPortFrom(e.LocalAddr, local).String() != server.LocalAddr().String() ||
				netip.AddrPortFrom(e.RemoteAddr, remote).String() != client.LocalAddr().String() ||
				e.NetNS == 0 || e.Window == 0 ||
				e.At < before || e.At > after || i > 0 && e.At < all[i-1].At ||
				(e.Kind == Write) != (e.Thread != 0) {
				t.Errorf("%s: event %d: %+v, want %+v", at, i, e, want)
			}
		}
		if all[0].Seq != all[1].Seq || all[2].Seq != all[3].Seq || all[2].Seq-all[0].Seq != 7 {
			t.Errorf("%s: sequence numbers of %+v", at, all)
		}
		if err := r.Pause(); err != nil {
			t.Fatal(err)
		}
		send(server, client, 13)
		if err := r.Resume(); err != nil {
			t.Fatal(err)
		}
		send(server, client, 17)
		all = nil
		testwait.Until(t, patience, "the write after the pause is recorded", func() bool {
			if err := r.Read(func(e *Event) { all = append(all, *e) }); err != nil {
				t.Fatal(err)
			}
			return len(all) >= 2
		})
		if len(all) != 2 || all[0].Len != 17 {
			t.Errorf("%s: after a pause %+v", at, all)
		}
		if n, err := r.Lost(); n != 0 || err != nil {
			t.Errorf("lost %d, %v", n, err)
		}
	}
}

// TestMore tells writes whose bytes may wait for more from others.
func TestMore(t *testing.T) {
	server, _ := pair(t, "127.0.0.1:0")
	r := opened(t, uint16(server.LocalAddr().(*net.TCPAddr).Port))
	raw, err := server.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	write := func(n, flags, cork int) {
		t.Helper()
		control := raw.Control(func(fd uintptr) {
			err = errors.Join(unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, cork),
				unix.Send(int(fd), make([]byte, n), flags))
		})
		if err := errors.Join(err, control); err != nil {
			t.Fatal(err)
		}
	}
	write(5, 0, 0)
	write(6, unix.MSG_MORE, 0)
	write(7, 0, 1)
	write(8, 0, 0)
	var all []Event
	testwait.Until(t, patience, "the writes are recorded", func() bool {
		if err := r.Read(func(e *Event) {
			if e.Kind == Write {
				all = append(all, *e)
			}
		}); err != nil {
			t.Fatal(err)
		}
		return len(all) >= 4
	})
	for i, e := range all {
		if want := e.Len == 6 || e.Len == 7; int(e.Len) != 5+i || e.More != want {
			t.Errorf("write %d: %+v", i, e)
		}
	}
}

// TestRuns compares the runs of a thread that writes with what the kernel says of it.
func TestRuns(t *testing.T) {
	server, client := pair(t, "127.0.0.1:0")
	opened(t, 1) // or else the test is skipped
	r, err := Open(Of{Runs: true,
		Dialled: []uint16{uint16(server.LocalAddr().(*net.TCPAddr).Port)}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	write := func() {
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(server, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	sleep := func() {
		if err := unix.Nanosleep(&unix.Timespec{Nsec: int64(time.Millisecond)}, nil); err != nil &&
			!errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
	tid := uint32(unix.Gettid())
	_, waited := sched(t)
	write() // the thread is known from now on
	sleep()
	ran, _ := sched(t)
	for range 20 {
		for until := time.Now().Add(2 * time.Millisecond); time.Now().Before(until); {
		}
		sleep()
		write()
	}
	sleep()
	end := clock.Now() // reading what was recorded may take runs, too
	ran2, waited2 := sched(t)
	ran = ran2 - ran
	var runs []Event
	writes := 0
	if err := r.Read(func(e *Event) {
		switch {
		case e.Kind == Ran && e.Thread == tid:
			if e.At <= end {
				runs = append(runs, *e)
			}
		case e.Kind == Write && e.Thread == tid && e.Len == 1 &&
			e.Local == uint16(client.LocalAddr().(*net.TCPAddr).Port):
			writes++
		case e.Kind == Send:
			t.Errorf("a segment of a dialled socket: %+v", e)
		}
	}); err != nil {
		t.Fatal(err)
	}
	var sum int64
	for i, e := range runs {
		sum += e.At - e.Since
		if e.Since > e.At || i > 0 && (e.Since < runs[i-1].At || e.Waited < runs[i-1].Waited) {
			t.Errorf("run %d of %d: %+v", i, len(runs), e)
		}
	}
	if writes != 21 || len(runs) < 20 || math.Abs(float64(sum-ran)) > 0.1*float64(ran) {
		t.Errorf("%d writes, %d runs of %d ns, the kernel says %d", writes, len(runs), sum, ran)
	}
	if n := len(runs); n == 0 || runs[0].Waited < waited || runs[n-1].Waited > waited2 {
		t.Errorf("%d runs waited otherwise than %d to %d ns", n, waited, waited2)
	}
}

// sched returns for how long this thread has run and waited for a CPU, ns.
func sched(t *testing.T) (ran, waited int64) {
	t.Helper()
	b, err := os.ReadFile("/proc/thread-self/schedstat")
	if err == nil {
		_, err = fmt.Sscan(string(b), &ran, &waited)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ran, waited
}

// TestReads records what a client does at its socket, beside its server.
func TestReads(t *testing.T) {
	server, client := pair(t, "127.0.0.1:0")
	at := uint16(server.LocalAddr().(*net.TCPAddr).Port)
	from := uint16(client.LocalAddr().(*net.TCPAddr).Port)
	r := openedOf(t, Of{Local: []uint16{at}, Dialled: []uint16{at}, Reads: true})
	for _, x := range []struct {
		from, to *net.TCPConn
		n        int
	}{{client, server, 5}, {server, client, 7}} {
		if _, err := x.from.Write(make([]byte, x.n)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(x.to, make([]byte, x.n)); err != nil {
			t.Fatal(err)
		}
	}
	var all []Event
	testwait.Until(t, patience, "both writes, a segment and a read are recorded", func() bool {
		if err := r.Read(func(e *Event) { all = append(all, *e) }); err != nil {
			t.Fatal(err)
		}
		return len(all) >= 4
	})
	for i, want := range []Event{{Kind: Write, Local: from, Remote: at, Len: 5},
		{Kind: Write, Local: at, Remote: from, Len: 7},
		{Kind: Send, Local: at, Remote: from, Len: 7},
		{Kind: Read, Local: from, Remote: at, Len: 7}} {
		e := all[i]
		if len(all) != 4 || e.Kind != want.Kind || e.Local != want.Local || e.Remote != want.Remote ||
			e.Len != want.Len || want.Kind == Read && e.Seq != all[1].Seq {
			t.Errorf("%+v of %d, want %+v", e, len(all), want)
		}
	}
}

// TestSendfile records bytes that the server's program does not have.
func TestSendfile(t *testing.T) {
	const size = 100_000
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	server, client := pair(t, "127.0.0.1:0")
	r := opened(t, uint16(server.LocalAddr().(*net.TCPAddr).Port))
	sent := make(chan error, 1)
	go func() {
		n, err := server.ReadFrom(file)
		if err == nil && n != size {
			err = io.ErrShortWrite
		}
		sent <- err
	}()
	if _, err := io.ReadFull(client, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	var first, end uint32 // of the sequence numbers
	writes, sends := 0, 0
	testwait.Until(t, patience, "all bytes are recorded", func() bool {
		if err := r.Read(func(e *Event) {
			switch {
			case e.Kind == Send:
				sends += int(e.Len)
			case writes == 0:
				first, end, writes = e.Seq, e.Seq+e.Len, 1
			case int32(e.Seq-end) > 0:
				t.Errorf("bytes %d to %d of a file are not written", end-first, e.Seq-first)
			default:
				end, writes = max(end, e.Seq+e.Len), writes+1
			}
		}); err != nil {
			t.Fatal(err)
		}
		return writes > 0 && end-first >= size && sends >= size
	})
	t.Logf("%d writes", writes)
}

func TestChoose(t *testing.T) {
	all := []string{"net_dev_queue", "sched_switch"}
	older := []string{locked, "do_tcp_sendpages", "tcp_recvmsg", "udp_recvmsg", "udpv6_recvmsg"}
	for name, c := range map[string]struct {
		tracepoints, functions []string
		of                     Of
		want                   []string
		reads, atFunctions     bool
		refused                bool
	}{
		"6.18": {tracepoints: append([]string{locked, length}, all...), functions: older[:1],
			of: Of{Runs: true, Reads: true}, reads: true,
			want: []string{"toll_ran", "toll_read", "toll_sent", "toll_write"}},
		"6.18 over UDP": {tracepoints: append([]string{locked, length}, all...),
			functions: older, of: Of{UDP: true, Reads: true}, reads: true,
			want: []string{"toll_read", "toll_sent"}},
		"6.12": {tracepoints: append([]string{length}, all...), functions: older[:1],
			of: Of{Reads: true}, reads: true, atFunctions: true,
			want: []string{"toll_read", "toll_sendmsg", "toll_sent"}},
		"6.1": {tracepoints: all, functions: older,
			of: Of{Runs: true, Reads: true}, reads: true, atFunctions: true,
			want: []string{"toll_ran", "toll_recvmsg", "toll_sendmsg", "toll_sendpage",
				"toll_sent"}},
		"6.1 over UDP": {tracepoints: all, functions: older, of: Of{UDP: true, Reads: true},
			reads: true, atFunctions: true,
			want: []string{"toll_recv4", "toll_recv6", "toll_sent"}},
		"6.1 over UDP, without reads": {tracepoints: all, functions: older, of: Of{UDP: true},
			want: []string{"toll_sent"}},
		"no functions": {tracepoints: all, of: Of{Reads: true}, refused: true},
	} {
		spec, err := loadObject()
		if err != nil {
			t.Fatal(err)
		}
		in := func(list []string) func(string) bool {
			return func(name string) bool { return slices.Contains(list, name) }
		}
		of := c.of
		atFunctions, err := choose(spec, &of, in(c.tracepoints), in(c.functions))
		var u *machine.UnsupportedError
		if c.refused {
			if !errors.As(err, &u) {
				t.Errorf("%s: error %v", name, err)
			}
			continue
		}
		got := slices.Sorted(maps.Keys(spec.Programs))
		if err != nil || !slices.Equal(got, c.want) || of.Reads != c.reads ||
			atFunctions != c.atFunctions {
			t.Errorf("%s: %v, reads %t, at functions %t, error %v", name, got, of.Reads,
				atFunctions, err)
		}
	}
}
