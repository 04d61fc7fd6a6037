package trace

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	kernel "github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// The processes of written logs, whose threads have the same numbers.
const (
	clientPID = 10
	serverPID = 20
	relayPID  = 30
	switchPID = 40
)

// written makes a log of one trip for each text, with an event each µs. Numbers advance by one
// with each trip.
func written(trips ...string) *record {
	r := &record{Slices: []Slice{{Slot: 3}}, Cell: Cell{Client: clientPID, Server: serverPID,
		Relays: []int{relayPID}, Copiers: []int{switchPID},
		Hops: []string{"veth", "bridge", "veth"},
		Devices: map[Device]sample.Link{
			{1, 1}: {Kind: "loopback", Name: "lo"},
			{2, 2}: {Kind: "veth", Name: "eth0", Where: "A"},
			{3, 2}: {Kind: "veth", Name: "veth2"}, {3, 3}: {Kind: "veth", Name: "veth3"},
			{5, 2}: {Kind: "tuntap", Name: "tap0", Where: "B"},
			{3, 9}: {Kind: "bridge", Name: "br0"}, {3, 7}: {Kind: "device", Name: "wire"},
			{4, 2}: {Kind: "veth", Name: "eth0", Where: "B"},
		}}}
	ts := int64(1000)
	bounds := []int64{ts}
	for i, text := range trips {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			ts += 1000
			e, err := parseEvent(fmt.Sprint(ts, " ", line))
			if err != nil {
				panic(err)
			}
			if e.Seq != 0 {
				e.Seq += uint32(i)
			}
			r.add(e)
		}
		ts += 1000
		bounds = append(bounds, ts)
	}
	r.Slices[0].Bounds = bounds
	return r
}

const loopback = `
0 tcp_sendmsg_locked ptr=100 seq=1000 pid=10
0 net_dev_queue ptr=1 seq=1000 len=1 dev=1 ns=1 pid=10
0 net_dev_start_xmit ptr=1 seq=1000 len=1 dev=1 ns=1 pid=10
0 netif_rx ptr=1 seq=1000 len=1 dev=1 ns=1 pid=10
0 softirq_entry
0 netif_receive_skb ptr=1 seq=1000 len=1 dev=1 ns=1 pid=10
0 tcp_probe ptr=1 seq=1000 len=1 dev=1 ns=1
0 sk_data_ready ptr=200 seq=1001 ns=1
0 sched_waking dev=20
0 ipi_send_cpu dev=1
1 sched_switch dev=20
1 skb_copy_datagram_iovec ptr=1 len=1 pid=20
1 sock_recv_length ptr=200 seq=1001 len=1 pid=20 tid=20
0 sock_send_length ptr=100 len=1 pid=10
1 tcp_sendmsg_locked ptr=200 seq=500 pid=20
1 net_dev_queue ptr=1 seq=500 len=1 dev=1 ns=1 pid=20
1 net_dev_start_xmit ptr=1 seq=500 len=1 dev=1 ns=1 pid=20
1 netif_rx ptr=1 seq=500 len=1 dev=1 ns=1
1 softirq_entry
1 netif_receive_skb ptr=1 seq=500 len=1 dev=1 ns=1
1 tcp_probe ptr=1 seq=500 len=1 dev=1 ns=1
1 sk_data_ready ptr=100 seq=501 ns=1
0 skb_copy_datagram_iovec ptr=1 len=1 pid=10
0 sock_recv_length ptr=100 seq=501 len=1 pid=10 tid=10
`

func textOf(x *sample.Trace) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d of %d trips, %.0f events, %.0f ns\n", x.Followed, x.Trips, x.Events,
		x.MidMean*1e9)
	for _, s := range x.Segments {
		direction := "request"
		if s.Reply {
			direction = "reply  "
		}
		hop := strings.Join(strings.Fields(fmt.Sprint(s.Hop, " ", s.Device)), " ")
		if s.Where != "" {
			hop += " (" + s.Where + ")"
		}
		fmt.Fprintf(&out, "%s %7.0f ns %3.0f %% %4.1f events | %-22s | %-22s | %s → %s\n",
			direction, s.MidMean*1e9, 100*s.Share, s.Events, hop, s.Part, s.Steps[0], s.Steps[1])
	}
	for _, g := range x.Groups {
		fmt.Fprintf(&out, "group, %.0f %%, odd %v\n", 100*g.Share, g.Odd)
		for _, s := range g.Steps {
			fmt.Fprintln(&out, "  "+s)
		}
	}
	for _, kind := range []string{readerAwake, readerQueued, readerFalling, readerHere, readerIdle,
		readerBusy, readerPolling} {
		if share := x.Readers[kind]; share > 0 {
			fmt.Fprintf(&out, "%s: %.0f %%\n", kind, 100*share)
		}
	}
	for _, b := range x.Broken {
		fmt.Fprintf(&out, "lost %.0f %% after %s: want %s\n", 100*b.Share, b.After, b.Want)
	}
	return out.String()
}

const bridged = `
0 tcp_sendmsg_locked ptr=100 seq=70 pid=10
0 net_dev_queue ptr=1 seq=70 len=1 dev=2 ns=2 pid=10
0 net_dev_start_xmit ptr=1 seq=70 len=1 dev=2 ns=2
0 netif_rx ptr=1 seq=70 len=1 dev=2 ns=3
0 netif_receive_skb ptr=1 seq=70 len=1 dev=2 ns=3
0 fib_table_lookup
0 net_dev_queue ptr=1 seq=70 len=1 dev=3 ns=3
0 net_dev_start_xmit ptr=1 seq=70 len=1 dev=3 ns=3
0 netif_rx ptr=1 seq=70 len=1 dev=2 ns=4
0 netif_receive_skb ptr=1 seq=70 len=1 dev=2 ns=4
0 tcp_probe ptr=1 seq=70 len=1 dev=1 ns=4
0 sk_data_ready ptr=200 seq=71 ns=4
1 sock_recv_length ptr=200 seq=71 len=1 pid=20 tid=20
` + reply

const reply = `
1 tcp_sendmsg_locked ptr=200 seq=500 pid=20
1 net_dev_queue ptr=1 seq=500 len=1 dev=1 ns=1 pid=20
1 net_dev_start_xmit ptr=1 seq=500 len=1 dev=1 ns=1 pid=20
1 netif_rx ptr=1 seq=500 len=1 dev=1 ns=1
1 netif_receive_skb ptr=1 seq=500 len=1 dev=1 ns=1
1 tcp_probe ptr=1 seq=500 len=1 dev=1 ns=1
1 sk_data_ready ptr=100 seq=501 ns=1
0 sock_recv_length ptr=100 seq=501 len=1 pid=10 tid=10
`

// held is bridged by a switch in user space, which is a process in another namespace.
var held = edited(bridged, "0 fib_table_lookup\n0 net_dev_queue ptr=1", "1 sched_switch dev=41\n"+
	"1 net_dev_queue ptr=5", "dev=3 ns=3\n0 net_dev_start_xmit ptr=1", "dev=3 ns=3 pid=40 tid=41\n"+
	"1 net_dev_start_xmit ptr=5", "0 netif_rx ptr=1 seq=70 len=1 dev=2 ns=4\n0 netif_receive_skb "+
	"ptr=1", "1 netif_rx ptr=5 seq=70 len=1 dev=2 ns=4\n1 netif_receive_skb ptr=5",
	"0 tcp_probe ptr=1 seq=70", "1 tcp_probe ptr=5 seq=70", "0 sk_data_ready ptr=200",
	"1 sk_data_ready ptr=200")

// tapped is relayed by a program that holds the server's tap device, both ways.
const tapped = `
0 tcp_sendmsg_locked ptr=100 seq=1000 pid=10
0 net_dev_queue ptr=1 seq=1000 len=1 dev=1 ns=1 pid=10
0 net_dev_start_xmit ptr=1 seq=1000 len=1 dev=1 ns=1 pid=10
0 netif_rx ptr=1 seq=1000 len=1 dev=1 ns=1 pid=10
0 netif_receive_skb ptr=1 seq=1000 len=1 dev=1 ns=1 pid=10
0 tcp_probe ptr=1 seq=1000 len=1 dev=1 ns=1
0 sk_data_ready ptr=150 seq=1001 ns=1
0 sched_waking dev=30
1 sched_switch dev=30
1 netif_receive_skb ptr=2 seq=7000 len=1 dev=2 ns=5 pid=30 tid=30
1 tcp_probe ptr=2 seq=7000 len=1 dev=2 ns=5 pid=30 tid=30
1 sk_data_ready ptr=200 seq=7001 ns=5 pid=30 tid=30
1 sock_recv_length ptr=200 seq=7001 len=1 pid=20 tid=20
1 tcp_sendmsg_locked ptr=200 seq=500 pid=20
1 net_dev_queue ptr=3 seq=500 len=1 dev=2 ns=5 pid=20
1 net_dev_start_xmit ptr=3 seq=500 len=1 dev=2 ns=5 pid=20
1 sched_waking dev=30 pid=20
1 sched_switch dev=30 tid=20
1 tcp_sendmsg_locked ptr=150 seq=800 pid=30 tid=30
1 net_dev_queue ptr=4 seq=800 len=1 dev=1 ns=1 pid=30 tid=30
1 net_dev_start_xmit ptr=4 seq=800 len=1 dev=1 ns=1 pid=30 tid=30
1 netif_rx ptr=4 seq=800 len=1 dev=1 ns=1
1 netif_receive_skb ptr=4 seq=800 len=1 dev=1 ns=1
1 tcp_probe ptr=4 seq=800 len=1 dev=1 ns=1
1 sk_data_ready ptr=100 seq=801 ns=1
0 sock_recv_length ptr=100 seq=801 len=1 pid=10 tid=10
`

// partsOf names the parts of a direction in order, with their hops.
func partsOf(x *sample.Trace, reply bool) (out []string) {
	for _, s := range x.Segments {
		if s.Reply == reply {
			out = append(out, strings.TrimSpace(s.Hop+" "+string(s.Part)))
		}
	}
	return out
}

func TestUserSpaceCarriesPackets(t *testing.T) {
	for name, c := range map[string]struct {
		log            string
		request, reply []string
	}{
		"switch": {held, []string{"call", "TCP/IP out", "veth qdisc", "veth driver",
			"veth hand-over", "ovs wake-up", "ovs bridge", "veth qdisc", "veth driver",
			"veth hand-over", "IP in", "TCP in", "wake-up"}, nil},
		"tap": {tapped, []string{"call", "TCP/IP out", "loopback qdisc", "loopback driver",
			"loopback hand-over", "proxy IP in", "proxy TCP in", "proxy wake-up", "proxy relay",
			"IP in", "TCP in", "wake-up"},
			[]string{"program", "TCP/IP out", "tuntap qdisc", "proxy wake-up", "proxy relay",
				"proxy TCP/IP out", "loopback qdisc", "loopback driver", "loopback hand-over",
				"IP in", "TCP in", "wake-up", "return"}},
		"a tap's holder is awake": {edited(tapped, "1 sched_waking dev=30 pid=20\n", "",
			"1 sched_switch dev=30 tid=20\n", "", "1 sched_switch dev=30\n", ""), nil,
			[]string{"program", "TCP/IP out", "tuntap qdisc", "proxy relay", "proxy TCP/IP out",
				"loopback qdisc", "loopback driver", "loopback hand-over", "IP in", "TCP in",
				"wake-up", "return"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := written(c.log, c.log).follow()
			if x.Followed != 2 {
				t.Fatal(textOf(x))
			}
			if got := partsOf(x, false); c.request != nil && !slices.Equal(got, c.request) {
				t.Errorf("request %q", got)
			}
			if got := partsOf(x, true); c.reply != nil && !slices.Equal(got, c.reply) {
				t.Errorf("reply %q", got)
			}
		})
	}
	for name, log := range map[string]string{
		"another packet's copy": strings.Replace(held, "1 net_dev_queue ptr=5 seq=70",
			"1 net_dev_queue ptr=5 seq=71", 1),
		"another process's copy": edited(held, "pid=40 tid=41", "pid=44 tid=41"),
		"a packet that a relay is interrupted by": edited(tapped, "dev=2 ns=5 pid=30 tid=30",
			"dev=3 ns=3 pid=30 tid=30"),
	} {
		if x := written(log).follow(); x.Followed != 0 {
			t.Error(name, textOf(x))
		}
	}
}

// edited replaces texts in a log. An old text that is not there panics.
func edited(log string, oldnew ...string) string {
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(log, oldnew[i]) {
			panic(oldnew[i])
		}
		log = strings.ReplaceAll(log, oldnew[i], oldnew[i+1])
	}
	return log
}

// movedFrom moves the steps of the request from a line until the reader wakes to another CPU.
func movedFrom(line string) string {
	before, after, _ := strings.Cut(loopback, line)
	request, rest, _ := strings.Cut(after, "\n1 sched_switch")
	lines := strings.Split(strings.Replace(line, "0 ", "1 ", 1)+request, "\n0 ")
	return before + strings.Join(lines, "\n1 ") + "\n1 sched_switch" + rest
}

func TestTripIsFollowed(t *testing.T) {
	awake := edited(loopback, "0 sched_waking dev=20\n", "", "0 ipi_send_cpu dev=1\n", "",
		"1 sched_switch dev=20\n", "")
	for name, x := range map[string]struct{ log, reader string }{
		"as usual":        {loopback, readerIdle},
		"reader is awake": {awake, readerAwake},
		"reader had no CPU": {edited(awake, "1 skb_copy",
			"1 sched_switch dev=20\n1 skb_copy"), readerQueued},
		"reader falls asleep": {edited(loopback, "1 sched_switch dev=20\n", ""), readerFalling},
		"reader's CPU is busy": {edited(loopback, "1 sched_switch dev=20",
			"1 sched_switch dev=20 tid=7"), readerBusy},
		"reader's CPU polls": {edited(loopback, "0 ipi_send_cpu dev=1\n", ""), readerPolling},
		"RPS":                {movedFrom("0 netif_receive_skb"), readerHere},
		"socket was in use":  {movedFrom("0 tcp_probe"), readerHere},
		"packet was copied": {edited(loopback, "0 netif_receive_skb ptr=1",
			"0 netif_receive_skb ptr=7", "0 tcp_probe ptr=1", "0 tcp_probe ptr=7"), readerIdle},
		"another thread reads": {edited(loopback, "pid=20 tid=20", "pid=20 tid=21"), readerIdle},
		"a packet at its old address": {edited(loopback, "0 net_dev_start_xmit ptr=1",
			"0 net_dev_queue ptr=1 seq=9 len=1\n0 net_dev_start_xmit ptr=1"), readerIdle},
		"an acknowledgement": {edited(loopback, "0 net_dev_start_xmit ptr=1",
			"0 net_dev_queue ptr=1 seq=1000\n0 net_dev_start_xmit ptr=1"), readerIdle},
		"a failed read": {edited(loopback, "1 sched_switch",
			"1 sock_recv_length ptr=200 len=-11 pid=20 tid=20\n1 sched_switch"), readerIdle},
	} {
		t.Run(name, func(t *testing.T) {
			got := written(x.log, x.log).follow()
			if got.Followed != 2 || got.Readers[x.reader] != 0.5 && x.reader != readerAwake {
				t.Error(textOf(got))
			}
			if x.reader == readerAwake && got.Readers[x.reader] != 1 {
				t.Error(got.Readers)
			}
		})
	}
}

// A relay whose threads are off their CPUs waits for one, woken or not.
func TestRelayWaits(t *testing.T) {
	queued := edited(tapped, "0 sched_waking dev=30\n", "")
	runs := edited(queued, "0 sk_data_ready ptr=150",
		"1 sched_switch dev=30 tid=7\n0 sk_data_ready ptr=150")
	for name, c := range map[string]struct {
		log  string
		want float64 // µs until the relay has a CPU
	}{"woken": {tapped, 2}, "without a CPU": {queued, 1}, "awake": {runs, 0}} {
		x := written(c.log, c.log).follow()
		i := slices.IndexFunc(x.Segments, func(s sample.Segment) bool {
			return s.Part == sample.PartWake && s.Hop == "proxy" && !s.Reply
		})
		took := 0.0
		if i >= 0 {
			took = x.Segments[i].MidMean * 1e6
		}
		if x.Followed != 2 || math.Abs(took-c.want) > 1e-9 {
			t.Errorf("%s: %g µs\n%s", name, took, textOf(x))
		}
	}
}

func TestTripIsLost(t *testing.T) {
	for name, x := range map[string]struct{ log, after, want string }{
		"nothing is written": {edited(loopback, "pid=10", "pid=11"),
			"clock_gettime", "tcp_sendmsg_locked"},
		"another connection's packet": {edited(loopback, "0 net_dev_queue ptr=1 seq=1000",
			"0 net_dev_queue ptr=1 seq=9"), "tcp_sendmsg_locked", "net_dev_queue"},
		"the packet is elsewhere": {edited(loopback, "0 net_dev_start_xmit", "2 net_dev_start_xmit"),
			"net_dev_queue lo", "net_dev_start_xmit"},
		"another packet at its address": {edited(loopback, "0 netif_receive_skb ptr=1 seq=1000",
			"0 netif_receive_skb ptr=1 seq=9"), "netif_rx lo", "netif_receive_skb"},
		"another namespace's socket": {edited(loopback, "ptr=200 seq=1001 ns=1", "ptr=200 seq=1001 ns=2"),
			"tcp_probe", "sk_data_ready"},
		"another connection's socket": {edited(loopback, "ptr=200 seq=1001 ns=1",
			"ptr=200 seq=1001 ns=1 from=7"), "tcp_probe", "sk_data_ready"},
		"another socket is read": {edited(loopback, "1 sock_recv_length ptr=200",
			"1 sock_recv_length ptr=201"), "sk_data_ready", "sock_recv_length"},
		"an earlier byte is read": {edited(loopback, "1 sock_recv_length ptr=200 seq=1001",
			"1 sock_recv_length ptr=200 seq=900"), "sk_data_ready", "sock_recv_length"},
		"the client reads its request": {edited(loopback, "len=1 pid=20 tid=20",
			"len=1 pid=10 tid=10"), "sk_data_ready", "another process's sock_recv_length"},
	} {
		t.Run(name, func(t *testing.T) {
			got := written(loopback, x.log, loopback).follow()
			if got.Followed != 2 || len(got.Broken) != 1 {
				t.Fatal(textOf(got))
			}
			if b := got.Broken[0]; b.After != x.after || b.Want != x.want || b.Share < 0.3 {
				t.Errorf("%+v", b)
			}
		})
	}
}

func TestNumbersAdvance(t *testing.T) {
	r := written(loopback, loopback, loopback, loopback)
	for _, l := range r.Log.CPUs {
		for i := range l { // the third trip has the numbers of the first
			if e := &l[i]; e.Seq != 0 && e.TS > r.Slices[0].Bounds[2] &&
				e.TS < r.Slices[0].Bounds[3] {
				e.Seq -= 2
			}
		}
	}
	x := r.follow()
	if x.Followed != 3 || len(x.Broken) != 1 || x.Broken[0].Want != "a later byte" {
		t.Error(textOf(x))
	}
}

func TestOddSteps(t *testing.T) {
	x := written(bridged).follow()
	if x.Followed != 1 || x.Groups[0].Steps[x.Groups[0].Odd[0]] != "fib_table_lookup" {
		t.Fatal(textOf(x))
	}
	if s := segment(x, sample.PartBridge, false); s == nil || s.Device != "br0" {
		t.Error(textOf(x))
	}
	nat := written(bridged)
	nat.Cell.Hops = append(nat.Cell.Hops, "DNAT")
	if x := nat.follow(); len(x.Groups[0].Odd) > 0 {
		t.Error(textOf(x))
	}
	// NAT of bridged frames may lead through the bridge's own queue.
	nat = written(edited(bridged, "0 fib_table_lookup\n", `0 fib_table_lookup
0 net_dev_queue ptr=1 seq=70 len=1 dev=9 ns=3
0 net_dev_start_xmit ptr=1 seq=70 len=1 dev=9 ns=3
`), bridged)
	if x := nat.follow(); x.Followed != 2 || segment(x, sample.PartForward, false) != nil {
		t.Error(textOf(x))
	}
	routed := written(edited(bridged, "0 fib_table_lookup\n", ""))
	delete(routed.Cell.Devices, Device{3, 9})
	if x := routed.follow(); segment(x, sample.PartForward, false) == nil ||
		len(x.Groups[0].Odd) != 1 || x.Groups[0].Steps[x.Groups[0].Odd[0]] != "net_dev_queue veth3" {
		t.Error(textOf(x))
	}
	strange := written(edited(bridged, "0 fib_table_lookup\n", "",
		"len=1 dev=3 ns=3", "len=1 dev=8 ns=3"))
	x = strange.follow()
	if s := segment(x, sample.PartQdisc, false); x.Followed != 1 || len(x.Groups[0].Odd) != 2 ||
		!slices.ContainsFunc(x.Segments, func(s sample.Segment) bool {
			return s.Hop == unknown && s.Device == "interface 8 of namespace 3"
		}) {
		t.Error(s, textOf(x))
	}
}

// Only the first and the last slice have trips that can be followed.
func TestSlices(t *testing.T) {
	rare := edited(loopback, "0 tcp_probe", "0 netif_receive_skb ptr=1 seq=1000 len=1 dev=1 "+
		"ns=1\n0 tcp_probe")
	r := written(loopback, rare, rare, loopback, loopback, loopback)
	b := r.Slices[0].Bounds
	r.Slices = []Slice{{Slot: 1, Bounds: b[:4]}, {Slot: 5, Bounds: []int64{b[3] + 1, b[3] + 2}},
		{Slot: 6}, {Slot: 7, Bounds: b[1:2]}, {Slot: 9, Bounds: b[3:]}}
	x := r.follow()
	if x.Trips != 7 || x.Followed != 5 || !slices.Equal(x.Slots, []int{1, 9}) {
		t.Fatal(x.Slots, textOf(x))
	}
	if !slices.Equal(x.Totals, []float64{26e-6, 25e-6}) {
		t.Error(x.Totals)
	}
	for _, s := range x.Segments {
		switch {
		case s.Part == sample.PartHandover && !s.Reply:
			if !slices.Equal(s.MidMeans, []float64{5e-6, 4e-6}) || s.Share != 1 || s.P99 != 3e-6 {
				t.Errorf("%+v", s)
			}
		case s.Part == sample.PartIn && !s.Reply && !slices.Equal(s.MidMeans,
			[]float64{2e-6, 2e-6}), s.Part == sample.PartIn && s.Reply && s.MidMeans != nil:
			t.Errorf("%+v", s)
		}
	}
}

func TestNothing(t *testing.T) {
	for _, all := range [][]Slice{nil, {{}}, {{Bounds: []int64{5}}}, {{Bounds: []int64{5, 4, 9}}}} {
		if x := Follow(Log{Lost: 3}, Cell{}, all); x.Followed != 0 || x.Lost != 3 {
			t.Error(textOf(x))
		}
	}
}

// More events than a trip can have cost only that trip.
func TestFlood(t *testing.T) {
	r := written(loopback, loopback)
	end := r.Slices[0].Bounds[2]
	for range 3 {
		for i := range maxEvents {
			r.Log.CPUs[0] = append(r.Log.CPUs[0], kernel.Event{TS: end + int64(i),
				Kind: kernel.Receive, Ptr: 1, Seq: 1, Len: 1})
		}
		r.Log.CPUs[0] = append(r.Log.CPUs[0], kernel.Event{TS: end + maxEvents - 1})
		end += maxEvents
		r.Slices[0].Bounds = append(r.Slices[0].Bounds, end)
	}
	x := r.follow()
	if x.Trips != 5 || x.Followed != 2 || x.Broken[0].Want != "fewer events" {
		t.Error(textOf(x))
	}
}

// FuzzFollow makes events of bytes, six for each, and trips of equal length.
func FuzzFollow(f *testing.F) {
	f.Add([]byte("some events"), uint16(3), false)
	for _, log := range []string{loopback, bridged} {
		r := written(log, log)
		var b []byte
		for _, l := range r.Log.CPUs {
			for _, e := range l {
				b = append(b, byte(e.Kind), byte(e.CPU), byte(e.Ptr), byte(e.Seq), byte(e.Dev),
					byte(e.PID/10)<<4|byte(e.NetNS))
			}
		}
		f.Add(b, uint16(1000), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, length uint16, udp bool) {
		r := written(loopback)
		r.Cell.UDP = udp
		ts := int64(1000)
		for ; len(b) >= 6; b = b[6:] {
			e := kernel.Event{TS: ts, Kind: kernel.Kind(b[0] % 20), CPU: uint16(b[1] % 4),
				Ptr: uint64(b[2] % 16), Seq: uint32(b[3]) - 3, Dev: uint32(b[4] % 16),
				NetNS: uint32(b[5] % 16), PID: uint32(b[5]>>4) * 10, Len: int32(b[3]%4) - 1}
			e.TID = e.PID
			r.add(e)
			ts += int64(b[1] >> 2)
		}
		bounds := []int64{1000}
		for at := int64(1000); at < ts && len(bounds) < 1000; {
			at += int64(length)
			bounds = append(bounds, at)
		}
		r.Slices = []Slice{{Slot: 1, Bounds: bounds}, {Slot: 2, Bounds: bounds[len(bounds)/2:]}}
		x := r.follow()
		sum := 0.0
		for _, s := range x.Segments {
			sum += s.MidMean
			if n := len(s.MidMeans); n != len(x.Slots) && n > 0 || s.Share <= 0 || s.Share > 1 ||
				s.Part == "" || s.P99 < 0 {
				t.Errorf("%+v", s)
			}
		}
		if math.Abs(sum-x.MidMean) > 1e-12 || x.Followed > x.Trips || len(x.Segments) > maxGaps ||
			len(x.Totals) != len(x.Slots) || (x.Followed > 0) != (len(x.Slots) > 0) {
			t.Error(textOf(x))
		}
		for _, g := range x.Groups {
			if len(g.Steps) > maxSteps+1 {
				t.Errorf("%d steps", len(g.Steps))
			}
		}
	})
}

// A packet of others that interrupts the client is not what it writes.
func TestInterruptedWriter(t *testing.T) {
	r := written("0 netif_receive_skb ptr=50 len=1 dev=2 ns=3 pid=10\n0 fib_table_lookup pid=10\n" +
		"0 net_dev_queue ptr=50 len=1 dev=3 ns=3 pid=10" + loopback)
	r.Cell.UDP = true
	r = r.changed(func(e *kernel.Event) { e.Seq = 0 })
	r = r.without(func(e kernel.Event) bool { return e.Kind == kernel.Send || e.Kind == kernel.TCP })
	x := r.follow()
	if x.Followed != 1 || x.Groups[0].Steps[0] != "net_dev_queue lo" {
		t.Error(textOf(x))
	}
}

// A hook's NAT is a segment of its own, and the hook has the time before and after it. A hook that
// does not end divides nothing.
func TestNATWithinItsHook(t *testing.T) {
	const before = "0 net_dev_queue ptr=1 seq=1000"
	hooked := func(steps string) map[sample.Part]float64 {
		out := map[sample.Part]float64{}
		log := strings.Replace(loopback, before, steps+before, 1)
		x := written(log, log).follow()
		for _, s := range x.Segments {
			if !s.Reply {
				out[s.Part] += s.MidMean / 1e-6
			}
		}
		return out
	}
	at := func(name string) string { return "0 " + name + " ptr=1 dev=3 ns=1\n" }
	const output, out = sample.PartHook + "OUTPUT", sample.PartOut
	x := hooked(at("hook") + at("NAT-in") + "0 fib_table_lookup\n" + at("end-of-NAT-in") + at("end-of-hook"))
	if math.Abs(x[sample.PartNAT]-2) > 1e-9 || math.Abs(x[output]-2) > 1e-9 ||
		math.Abs(x[out]-2) > 1e-9 {
		t.Errorf("NAT in a hook: %v", x)
	}
	if x = hooked(at("hook") + at("end-of-hook")); x[sample.PartNAT] != 0 || x[output] != 1 {
		t.Errorf("a hook without NAT: %v", x)
	}
	if x = hooked(at("hook") + at("NAT-in")); x[sample.PartNAT] != 0 || x[output] != 0 || x[out] != 3 {
		t.Errorf("a hook that does not end: %v", x)
	}
}
