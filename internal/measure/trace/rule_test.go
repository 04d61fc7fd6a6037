package trace

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// The processes of written logs, whose threads have the same numbers.
const (
	clientPID = 10
	serverPID = 20
	relayPID  = 30
)

// written makes a log of one trip for each text, with an event each µs. Numbers advance by one with
// each trip.
func written(trips ...string) *record {
	r := &record{Slices: []Slice{{Slot: 3}}, Cell: Cell{Client: clientPID, Server: serverPID,
		Relays: []int{relayPID}, Hops: []string{"veth", "bridge", "veth"},
		Devices: map[Device]sample.Link{
			{1, 1}: {Kind: "loopback", Name: "lo"},
			{2, 2}: {Kind: "veth", Name: "eth0", Where: "A"},
			{3, 2}: {Kind: "veth", Name: "veth2"}, {3, 3}: {Kind: "veth", Name: "veth3"},
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
0 tcp_sendmsg_locked ptr=100 seq=4294967295 pid=10
0 net_dev_queue ptr=1 seq=4294967295 len=1 dev=1 ns=1 pid=10
0 net_dev_start_xmit ptr=1 seq=4294967295 len=1 dev=1 ns=1 pid=10
0 netif_rx ptr=1 seq=4294967295 len=1 dev=1 ns=1 pid=10
0 softirq_entry
0 netif_receive_skb ptr=1 seq=4294967295 len=1 dev=1 ns=1 pid=10
0 tcp_probe ptr=1 seq=4294967295 len=1 dev=1 ns=1
0 sk_data_ready ptr=200 seq=1 ns=1
0 sched_waking dev=20
0 ipi_send_cpu dev=1
1 sched_switch dev=20
1 skb_copy_datagram_iovec ptr=1 len=1 pid=20
1 sock_recv_length ptr=200 seq=1 len=1 pid=20 tid=20
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

func TestSegmentsSumToTheTrip(t *testing.T) {
	x := written(loopback, loopback, loopback).follow()
	if x.Followed != 3 || x.MidMean != 25e-6 {
		t.Fatal(textOf(x))
	}
	sum := 0.0
	for _, s := range x.Segments {
		sum += s.MidMean
	}
	if math.Abs(sum-x.MidMean) > 1e-15 {
		t.Errorf("%g s in segments, %g s in trips", sum, x.MidMean)
	}
}
