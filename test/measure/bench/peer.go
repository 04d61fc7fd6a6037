package bench

import (
	"context"
	"fmt"

	"github.com/bridgetoll/bridgetoll/test/measure/peer"
)

type peerTool struct {
	peer.Tool
	program string // if different from the client's
	figure  func(*visit) *float64
}

var peerOf = map[string]peerTool{
	iperf3:             {Tool: peer.Bulk, figure: func(v *visit) *float64 { return &v.bits }},
	iperf3 + " " + udp: {Tool: peer.UDP, figure: func(v *visit) *float64 { return &v.bits }},
	netperf: {Tool: peer.Connections, program: netserver, figure: func(v *visit) *float64 {
		return &v.perSecond
	}},
	qperf: {Tool: peer.Trips, figure: func(v *visit) *float64 { return &v.oneWay }},
	sockperf: {Tool: peer.SockTrips, figure: func(v *visit) *float64 {
		return &v.oneWay
	}},
}

func (c cell) kind() string {
	if c.load == udp {
		return c.tool + " " + udp
	}
	return c.tool
}

func (b *bench) visitPeer(ctx context.Context, c cell) (v visit, err error) {
	p, ok := peerOf[c.kind()]
	if !ok {
		return v, fmt.Errorf("unknown tool %q", c.tool)
	}
	before, err := b.loopback()
	if err != nil {
		return v, err
	}
	clientCPU, serverCPU := c.cpus()
	at, addr := peer.Namespace{NS: b.ns}, b.nextAddr()
	*p.figure(&v), err = p.Visit(ctx, peer.Ends{
		Server: at, Client: at, ServerCPUs: []int{serverCPU}, ClientCPUs: []int{clientCPU}},
		peer.Ask{Listen: addr, Dial: addr, Size: c.size, Omit: iperf3Omit, Window: b.window,
			Bitrate: bitrate},
		func(client, server *peer.Process) (err error) {
			v.seen, err = b.watch(ctx, c, before, client.PID, server.PID, client.Done)
			return err
		})
	return v, err
}
