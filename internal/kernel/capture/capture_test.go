package capture

import (
	"bytes"
	"io"
	"iter"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/bpf"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const patience = time.Minute

// exchange sends words from a client to a server on the namespace's loopback device.
func exchange(t *testing.T, at string, words ...string) (server, client netip.AddrPort) {
	t.Helper()
	return exchangeAll(t, at, slices.Values(words))
}

func exchangeAll(t *testing.T, at string, words iter.Seq[string]) (server, client netip.AddrPort) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for w := range words {
		if _, err := io.WriteString(c, w); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(s, make([]byte, len(w))); err != nil {
			t.Fatal(err)
		}
	}
	return l.Addr().(*net.TCPAddr).AddrPort(), c.LocalAddr().(*net.TCPAddr).AddrPort()
}

// inside runs f in a namespace of its own. Listening and dialling stay on its thread as long as
// they do not block.
func inside(t *testing.T, f func()) {
	netnstest.Do(t, func() error {
		if err := link.Up("lo"); err != nil {
			return err
		}
		f()
		return nil
	})
}

// A ring is half full once half of its blocks wait for the reader, and no longer when they are
// read.
func TestHalf(t *testing.T) {
	inside(t, func() {
		r, err := Open(Small.Times(4), 7001)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		exchange(t, "127.0.0.1:7001", "hello")
		if r.Half() {
			t.Error("a few packets are half of the ring")
		}
		testwait.Until(t, patience, "half of the ring", func() bool {
			exchange(t, "127.0.0.1:7001", strings.Repeat("x", 100_000))
			return r.Half()
		})
		if r.Read(func(*Packet) {}); r.Half() {
			t.Error("the ring that was read is half full")
		}
	})
}

// Nothing is captured between Arm or Pause and Resume.
func TestPause(t *testing.T) {
	inside(t, func() {
		r, err := Open(Small, 7001)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for i, steps := range [][]func() error{nil, {r.Arm}, {r.Pause}, {r.Arm, r.Pause, r.Arm}} {
			for _, step := range steps {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
			if len(steps) > 0 {
				exchange(t, "127.0.0.1:7001", "missed")
			}
			if err := r.Resume(); err != nil {
				t.Fatal(err)
			}
			var got []byte
			testwait.Until(t, patience, "an exchange was captured", func() bool {
				exchange(t, "127.0.0.1:7001", "seen") // the ring may lose it if it takes long
				r.Read(func(p *Packet) {
					if p.Out {
						got = append(got, p.Payload...)
					}
				})
				return strings.Contains(string(got), "seen")
			})
			if strings.Contains(string(got), "missed") {
				t.Errorf("%d: captured %q", i, got)
			}
		}
	})
}

func TestRing(t *testing.T) {
	for _, at := range []string{"127.0.0.1:7001", "[::1]:7001"} {
		inside(t, func() {
			r, err := Open(Small, 7001)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			before := time.Now()
			exchange(t, strings.Replace(at, "7001", "7002", 1), "not captured")
			large := strings.Repeat("x", 100_000)
			server, client := exchange(t, at, "hello", large)
			after := time.Now()
			var sent, received []byte
			var last int64
			stamped := true
			ends := map[bool]uint32{} // by direction
			testwait.Until(t, patience, "all packets have come", func() bool {
				if lost, err := r.Lost(); lost != 0 || err != nil {
					t.Fatalf("lost %d, %v", lost, err)
				}
				r.Read(func(p *Packet) {
					if p.Src.Port() == 7002 || p.Dst.Port() == 7002 {
						t.Errorf("captured %v to %v", p.Src, p.Dst)
					}
					if p.At < before.UnixNano() || p.At > after.UnixNano() || p.At < last {
						t.Errorf("a packet at %v, not from %v to %v", time.Unix(0, p.At), before,
							after)
					}
					last = p.At
					if p.Src != client || p.Dst != server {
						return
					}
					stamped = stamped && p.TSVal != 0
					to := &received
					if p.Out {
						to = &sent
					}
					// A busy machine sends segments again, also several as one.
					next, ok := ends[p.Out]
					again := int(int32(next - p.Seq)) // bytes that came before
					if !ok {
						again = 0
					}
					if again < 0 || ok && again >= p.Size {
						return
					}
					*to = append(*to, p.Payload[again:]...)
					if ends[p.Out] = p.Seq + uint32(p.Size); p.Flags&SYN != 0 {
						ends[p.Out]++
					}
				})
				return len(sent) == len(large)+5 && len(received) == len(sent)
			})
			if want := "hello" + large; string(sent) != want || string(received) != want {
				t.Errorf("sent %d bytes, received %d", len(sent), len(received))
			}
			if !stamped {
				t.Error("a packet has no timestamp")
			}
		})
	}
}

func TestRingPauses(t *testing.T) {
	inside(t, func() {
		r, err := Open(Small)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Pause(); err != nil {
			t.Fatal(err)
		}
		exchange(t, "127.0.0.1:7001", "not captured")
		if err := r.Resume(); err != nil {
			t.Fatal(err)
		}
		exchange(t, "127.0.0.1:7002", "captured")
		var got []byte
		testwait.Until(t, patience, "the packet has come", func() bool {
			r.Read(func(p *Packet) {
				if got = append(got, p.Payload...); p.Src.Port() == 7001 || p.Dst.Port() == 7001 {
					t.Errorf("captured %v to %v", p.Src, p.Dst)
				}
			})
			return bytes.Contains(got, []byte("captured"))
		})
	})
}

func TestRingSaysWhatItLost(t *testing.T) {
	inside(t, func() {
		r, err := Open(Small)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		exchange(t, "127.0.0.1:0", slices.Repeat([]string{strings.Repeat("x", 64<<10)}, 64)...)
		lost := 0
		testwait.Until(t, patience, "the loss is counted", func() bool {
			n, err := r.Lost()
			if err != nil {
				t.Fatal(err)
			}
			lost += n
			return lost > 0
		})
	})
}

// A large ring holds what comes within a second at 50,000 packets/s while nobody reads it.
func TestLargeRingBridgesASecond(t *testing.T) {
	const packets, size = 50_000, 300 // a token's
	inside(t, func() {
		at := testnet.TCP(t)
		r, err := Open(Large, at.Port())
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		// Each word is seen twice, as it leaves and as it comes, and so is its acknowledgement.
		word, words, begun := strings.Repeat("x", size), 0, time.Now()
		exchangeAll(t, at.String(), func(yield func(string) bool) {
			for words < packets/4 && time.Since(begun) < time.Second && yield(word) {
				words++
			}
		})
		got := 0
		testwait.Until(t, patience, "the last packet has come", func() bool {
			r.Read(func(p *Packet) {
				if p.Size > 0 {
					got++
				}
			})
			return got >= 2*words
		})
		if lost, err := r.Lost(); err != nil || lost > 0 {
			t.Errorf("%d of %d packets were lost, %v", lost, got, err)
		}
	})
}

func TestRingIsNotDumped(t *testing.T) {
	inside(t, func() {
		r, err := Open(Small)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		maps, err := os.ReadFile("/proc/self/smaps")
		if err != nil {
			t.Fatal(err)
		}
		_, mine, ok := bytes.Cut(maps, []byte("socket:["))
		_, flags, ok2 := bytes.Cut(mine, []byte("VmFlags:"))
		line, _, _ := bytes.Cut(flags, []byte("\n"))
		if !ok || !ok2 || !bytes.Contains(line, []byte(" dd")) {
			t.Errorf("flags of the ring's memory: %q", line)
		}
	})
}

// segment4 returns an IPv4 packet with a TCP header.
func segment4(fragment byte, protocol byte, src, dst byte) []byte {
	b := make([]byte, 40)
	b[0], b[3], b[7], b[9], b[21], b[23], b[32] = 0x45, 40, fragment, protocol, src, dst, 0x50
	return b
}

func segment6(next byte, src, dst byte) []byte {
	b := make([]byte, 60)
	b[0], b[5], b[6], b[41], b[43], b[52] = 0x60, 20, next, src, dst, 0x50
	return b
}

// opening sets the SYN flag in a packet whose TCP header is at an offset.
func opening(b []byte, at int) []byte {
	b[at+13] |= SYN
	return b
}

func TestFilter(t *testing.T) {
	for name, tt := range map[string]struct {
		packet []byte
		ports  []uint16
		passes bool
		opens  bool
		udp    bool
	}{
		"from the port":        {segment4(0, 6, 80, 1), []uint16{80, 90}, true, false, false},
		"to the port":          {segment4(0, 6, 1, 90), []uint16{80, 90}, true, false, false},
		"of none of them":      {segment4(0, 6, 1, 2), []uint16{80, 90}, false, false, false},
		"all ports":            {segment4(0, 6, 1, 2), nil, true, false, false},
		"UDP":                  {segment4(0, 17, 80, 80), nil, false, false, false},
		"a fragment":           {segment4(1, 6, 80, 80), []uint16{80}, false, false, false},
		"IPv6 from":            {segment6(6, 80, 1), []uint16{80, 90}, true, false, false},
		"IPv6 to":              {segment6(6, 1, 90), []uint16{80, 90}, true, false, false},
		"IPv6, neither":        {segment6(6, 1, 2), []uint16{80, 90}, false, false, false},
		"IPv6, UDP":            {segment6(17, 80, 80), []uint16{80}, false, false, false},
		"neither":              {make([]byte, 60), nil, false, false, false},
		"SYN":                  {opening(segment4(0, 6, 1, 2), 20), nil, true, true, false},
		"SYN to the port":      {opening(segment4(0, 6, 1, 90), 20), []uint16{80, 90}, true, true, false},
		"SYN elsewhere":        {opening(segment4(0, 6, 1, 2), 20), []uint16{80, 90}, false, true, false},
		"no SYN":               {segment4(0, 6, 1, 90), []uint16{80, 90}, false, true, false},
		"IPv6, SYN":            {opening(segment6(6, 1, 90), 40), []uint16{80, 90}, true, true, false},
		"IPv6, no SYN":         {segment6(6, 1, 90), nil, false, true, false},
		"UDP to the port":      {segment4(0, 17, 1, 53), []uint16{53}, true, false, true},
		"UDP, neither":         {segment4(0, 17, 1, 2), []uint16{53}, false, false, true},
		"TCP instead of UDP":   {segment4(0, 6, 1, 53), []uint16{53}, false, false, true},
		"IPv6, UDP from":       {segment6(17, 53, 1), []uint16{53}, true, false, true},
		"a later UDP fragment": {segment4(1, 17, 53, 53), []uint16{53}, false, false, true},
	} {
		program, err := filter(Size{packet: snap, opens: tt.opens, udp: tt.udp}, tt.ports)
		if err != nil {
			t.Fatal(err)
		}
		raw := make([]bpf.RawInstruction, len(program))
		for i, x := range program {
			raw[i] = bpf.RawInstruction{Op: x.Code, Jt: x.Jt, Jf: x.Jf, K: x.K}
		}
		code, _ := bpf.Disassemble(raw)
		vm, err := bpf.NewVM(code)
		if err != nil {
			t.Fatal(err)
		}
		n, err := vm.Run(tt.packet)
		if err != nil || n > 0 != tt.passes {
			t.Errorf("%s: %d bytes pass, %v", name, n, err)
		}
	}
	if _, err := filter(Large, make([]uint16, mostPorts+1)); err == nil {
		t.Error("too many ports")
	}
	if _, err := filter(Opens, make([]uint16, mostPorts)); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(segment4(0, 6, 80, 1))
	f.Add(segment6(6, 80, 1))
	f.Add(segment4(0, 17, 53, 1))
	f.Add(segment6(17, 53, 1))
	f.Add(append([]byte{0x4f}, bytes.Repeat([]byte{0xff}, 100)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Packet
		if !p.parse(b, len(b)) {
			return
		}
		least, whole := 40, p.Size == len(p.Payload)
		if p.UDP { // its first fragment tells the size of all
			least, whole = 28, p.Size >= len(p.Payload)
		}
		if len(p.Payload) > len(b)-least || !whole {
			t.Errorf("%d bytes of payload in %d", len(p.Payload), len(b))
		}
	})
}
