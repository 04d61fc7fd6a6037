package load

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

func TestBothWays(t *testing.T) {
	for _, c := range []struct {
		name string
		spec sample.Load
		via  func(*testing.T) func(netip.AddrPort) netip.AddrPort
	}{
		{"one", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bidir: true}}, nil},
		{"three", sample.Load{Kind: "bulk", Streams: 3, Options: sample.BulkOptions{Bidir: true}},
			nil},
		{"many", sample.Load{Kind: "bulk", Streams: workload.ManyThreads,
			Options: sample.BulkOptions{Write: 4096, Bidir: true}}, nil},
		{"odd-writes", sample.Load{Kind: "bulk",
			Options: sample.BulkOptions{Write: 7, Bidir: true}}, nil},
		{"zerocopy", sample.Load{Kind: "bulk",
			Options: sample.BulkOptions{Bidir: true, Send: workload.SendZerocopy}}, nil},
		{"relayed", sample.Load{Kind: "bulk", Streams: 2,
			Options: sample.BulkOptions{Write: 4096, Bidir: true}},
			func(t *testing.T) func(netip.AddrPort) netip.AddrPort {
				return func(a netip.AddrPort) netip.AddrPort {
					return delayed(t, a, time.Millisecond)
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(u testing.TB) {
				via := direct
				if c.via != nil {
					via = c.via(t)
				}
				from, long := warmup, 3*window
				if threads(c.spec) > workload.ManyThreads { // each must have its turn
					from, long = 10*warmup, 10*window
				}
				client, server := between(u, c.spec, windows(from, long), via)
				if client.TotalSent != server.TotalRecv || server.TotalSent != client.TotalRecv {
					u.Errorf("client %+v\nserver %+v", client, server)
				}
				n := max(1, c.spec.Streams)
				for _, s := range []Stats{client, server} {
					if s.Received <= 0 || s.Sent <= 0 || s.Connections != n || s.Window <= 0 ||
						s.CPU <= 0 {
						u.Errorf("stats %+v", s)
					}
				}
			})
		})
	}
}

func TestBytes(t *testing.T) {
	const n = 3<<20 + 17
	for _, c := range []struct {
		name string
		spec sample.Load
	}{
		{"one", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bytes: n}}},
		{"less-than-a-write", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bytes: 1}}},
		{"three", sample.Load{Kind: "bulk", Streams: 3, Options: sample.BulkOptions{Bytes: n}}},
		{"reverse", sample.Load{Kind: "bulk",
			Options: sample.BulkOptions{Bytes: n, Reverse: true}}},
		{"both-ways", sample.Load{Kind: "bulk", Streams: 2,
			Options: sample.BulkOptions{Bytes: n, Bidir: true}}},
		{"zerocopy", sample.Load{Kind: "bulk",
			Options: sample.BulkOptions{Bytes: n, Send: workload.SendZerocopy}}},
		{"sendfile", sample.Load{Kind: "bulk",
			Options: sample.BulkOptions{Write: 1000, Bytes: n, Send: workload.SendFile}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, server := between(t, c.spec, windows(0, time.Minute), direct)
			want := workload.BulkOf(c.spec).Bytes * int64(max(1, c.spec.Streams))
			up, down := want, int64(0)
			switch {
			case workload.BulkOf(c.spec).Bidir:
				down = want
			case workload.BulkOf(c.spec).Reverse:
				up, down = 0, want
			}
			if client.TotalSent != up || server.TotalRecv != up || server.TotalSent != down ||
				client.TotalRecv != down {
				t.Errorf("client %+v\nserver %+v", client, server)
			}
			if client.Received != down || server.Received != up || client.Sent != up {
				t.Errorf("in the window: client %+v\nserver %+v", client, server)
			}
		})
	}
}

func TestBytesTakeTheirWay(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const delay = 20 * time.Millisecond
		_, server := between(u, sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bytes: 1000}},
			windows(0, time.Minute),
			func(a netip.AddrPort) netip.AddrPort { return delayed(u, a, delay) })
		if took := server.Window; took < delay.Seconds() || took > 20*delay.Seconds() {
			u.Errorf("1000 bytes over %s took %g s", delay, took)
		}
	})
}

func TestBytesThatDoNotCome(t *testing.T) {
	addr := testnet.TCP(t)
	srv, err := Listen(addr, options(sample.Load{
		Kind: "bulk", Options: sample.BulkOptions{Bytes: 1000}}))
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	fd, err := connect(addr, false)
	if err != nil {
		t.Fatal(err)
	}
	send(fd, make([]byte, 10))
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	if _, err := srv.Run(windows(0, time.Minute)(clock.Now())); err == nil {
		t.Error("10 bytes passed for 1000")
	}
}

func TestSenders(t *testing.T) {
	for _, send := range []string{workload.SendZerocopy, workload.SendFile} {
		for _, reverse := range []bool{false, true} {
			name := send
			if reverse {
				name += "-reverse"
			}
			t.Run(name, func(t *testing.T) {
				inTime(t, func(u testing.TB) {
					client, server := between(u, sample.Load{
						Kind: "bulk", Streams: 2, Options: sample.BulkOptions{
							Send: send, Reverse: reverse}}, windows(warmup, 5*window), direct)
					from, to := client, server
					if reverse {
						from, to = server, client
					}
					if to.TotalRecv == 0 || to.TotalRecv != from.TotalSent {
						u.Errorf("sent %d bytes, %d arrived", from.TotalSent, to.TotalRecv)
					}
					if send != workload.SendZerocopy {
						return
					}
					sends, copied := from.Counts[workload.CountZerocopy],
						from.Counts[workload.CountZerocopyCopied]
					if sends <= 0 || copied != sends {
						u.Errorf("%d of %d sends were copied", copied, sends)
					}
					if at := from.Sent / workload.DefaultWrite; sends < at/4 {
						u.Errorf("%d sends reported, at least %d were made", sends, at)
					}
				})
			})
		}
	}
	if err := CanSend("pigeon"); err == nil {
		t.Error("pigeons were taken")
	}
}

func reported(level, kind int32, ee unix.SockExtendedErr) []byte {
	b := make([]byte, unix.CmsgSpace(16))
	if unix.SizeofPtr == 8 {
		binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(16)))
	} else {
		binary.NativeEndian.PutUint32(b, uint32(unix.CmsgLen(16)))
	}
	at := unix.CmsgLen(0)
	binary.NativeEndian.PutUint32(b[at-8:], uint32(level))
	binary.NativeEndian.PutUint32(b[at-4:], uint32(kind))
	binary.NativeEndian.PutUint32(b[at:], ee.Errno)
	b[at+4], b[at+5], b[at+6] = ee.Origin, ee.Type, ee.Code
	binary.NativeEndian.PutUint32(b[at+8:], ee.Info)
	binary.NativeEndian.PutUint32(b[at+12:], ee.Data)
	return b
}

func TestCompleted(t *testing.T) {
	zero := unix.SockExtendedErr{Origin: unix.SO_EE_ORIGIN_ZEROCOPY, Info: 5, Data: 7}
	copied := zero
	copied.Code = unix.SO_EE_CODE_ZEROCOPY_COPIED
	wrapped := zero
	wrapped.Info, wrapped.Data = 1<<32-1, 1
	icmp := zero
	icmp.Origin = unix.SO_EE_ORIGIN_ICMP
	for _, tt := range []struct {
		name   string
		b      []byte
		sends  int
		copied bool
	}{
		{"v4", reported(unix.SOL_IP, unix.IP_RECVERR, zero), 3, false},
		{"v6-copied", reported(unix.SOL_IPV6, unix.IPV6_RECVERR, copied), 3, true},
		{"wrapped", reported(unix.SOL_IP, unix.IP_RECVERR, wrapped), 3, false},
		{"another-origin", reported(unix.SOL_IP, unix.IP_RECVERR, icmp), 0, false},
		{"another-kind", reported(unix.SOL_SOCKET, unix.SO_TIMESTAMP, zero), 0, false},
		{"second", append(reported(unix.SOL_SOCKET, unix.SO_TIMESTAMP, zero),
			reported(unix.SOL_IP, unix.IP_RECVERR, copied)...), 3, true},
		{"cut", reported(unix.SOL_IP, unix.IP_RECVERR, zero)[:20], 0, false},
		{"empty", nil, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if n, c := completed(tt.b); n != tt.sends || c != tt.copied {
				t.Errorf("%d sends, copied %v; want %d, %v", n, c, tt.sends, tt.copied)
			}
		})
	}
}

func FuzzCompleted(f *testing.F) {
	zero := unix.SockExtendedErr{Origin: unix.SO_EE_ORIGIN_ZEROCOPY, Info: 5, Data: 7}
	f.Add(reported(unix.SOL_IP, unix.IP_RECVERR, zero))
	f.Add(reported(unix.SOL_IPV6, unix.IPV6_RECVERR, zero)[:17])
	f.Fuzz(func(t *testing.T, b []byte) {
		n, copied := completed(b)
		if n < 0 || n > 1<<32 || (copied && n == 0) {
			t.Errorf("%d sends, copied %v", n, copied)
		}
	})
}

func TestTail(t *testing.T) {
	text := append([]byte("payload before the end"), binary.BigEndian.AppendUint64(nil, endMark)...)
	for step := 1; step <= len(text); step++ {
		var last tail
		for at := 0; at < len(text); at += step {
			end := min(at+step, len(text))
			if got := last.after(text[at:end]) == endMark; got != (end == len(text)) {
				t.Errorf("pieces of %d: at %d of %d the end is %v", step, end, len(text), got)
			}
		}
	}
}

func TestThreads(t *testing.T) {
	for _, tt := range []struct {
		spec sample.Load
		want int
	}{
		{sample.Load{}, 1}, {sample.Load{Streams: 5}, 5},
		{sample.Load{Streams: 5, Options: sample.BulkOptions{Bidir: true}}, 10},
		{sample.Load{Options: sample.RROptions{Beside: true}}, 2},
		{sample.Load{Streams: 3, Options: sample.RROptions{Beside: true}}, 4},
	} {
		if got := threads(tt.spec); got != tt.want {
			t.Errorf("%+v: %d threads, want %d", tt.spec, got, tt.want)
		}
	}
}

func TestOptionsThatDoNotGoTogether(t *testing.T) {
	for _, o := range []Options{
		{Load: sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bidir: true, Reverse: true}}},
		{Load: sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bytes: -1}}},
		{Load: sample.Load{Kind: "rr", Options: sample.RROptions{Rate: -1}}},
		{Load: sample.Load{Kind: "bulk", Options: sample.BulkOptions{Send: "pigeon"}}},
		{Load: sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bytes: 10}}, Crowd: true},
		{Load: sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bidir: true}}, Crowd: true},
		{Load: sample.Load{Kind: "rr", Options: sample.RROptions{Rate: 10}}, Crowd: true},
		{Load: sample.Load{Kind: "rr", Options: sample.RROptions{Beside: true}}, Crowd: true},
	} {
		if s, err := Listen(testnet.TCP(t), o); err == nil {
			t.Errorf("%+v was taken", o)
			_ = s.Close()
		}
	}
}
