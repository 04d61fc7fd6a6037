package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"
)

// peer is how one of the other tools is run.
type peer struct {
	program        string // of the server; "" is the tool's own
	server, client func(addr netip.AddrPort, c cell, window time.Duration) []string
	parse          func(out []byte, v *visit) error
}

// kind is what tells peers apart: the tool, and for udp what it does.
func (c cell) kind() string {
	if c.load == udp {
		return c.tool + " " + udp
	}
	return c.tool
}

var peerOf = map[string]peer{
	iperf3: {
		server: func(a netip.AddrPort, _ cell, _ time.Duration) []string {
			return []string{"-s", "-1", "-i", "0", "-B", a.Addr().String(), "-p", port(a)}
		},
		client: func(a netip.AddrPort, c cell, window time.Duration) []string {
			return []string{"-c", a.Addr().String(), "-p", port(a), "-l", strconv.Itoa(c.size),
				"-t", seconds(window), "-O", seconds(iperf3Omit), "-i", "0", "-J"}
		},
		parse: func(out []byte, v *visit) (err error) { v.bits, err = parseIperf3(out); return err },
	},
	iperf3 + " " + udp: {
		server: func(a netip.AddrPort, _ cell, _ time.Duration) []string {
			return []string{"-s", "-1", "-i", "0", "-B", a.Addr().String(), "-p", port(a)}
		},
		client: func(a netip.AddrPort, c cell, window time.Duration) []string {
			return []string{"-c", a.Addr().String(), "-p", port(a), "-u", "-b", strconv.Itoa(bitrate), "-l", strconv.Itoa(c.size),
				"-t", seconds(window), "-O", seconds(iperf3Omit), "-i", "0", "-J"}
		},
		parse: func(out []byte, v *visit) (err error) { v.bits, err = parseIperf3(out); return err },
	},
	netperf: {
		program: netserver,
		server: func(a netip.AddrPort, _ cell, _ time.Duration) []string {
			return []string{"-D", "-4", "-L", a.Addr().String(), "-p", port(a)}
		},
		client: func(a netip.AddrPort, c cell, window time.Duration) []string {
			size := strconv.Itoa(c.size)
			return []string{"-H", a.Addr().String(), "-p", port(a), "-t", "TCP_CRR", "-l", seconds(window), "-P", "0", "--", "-r", size + "," + size}
		},
		parse: func(out []byte, v *visit) (err error) { v.perSecond, err = parseNetperf(out); return err },
	},
	qperf: {
		server: func(a netip.AddrPort, _ cell, _ time.Duration) []string {
			return []string{"--listen_port", port(a)}
		},
		client: func(a netip.AddrPort, c cell, window time.Duration) []string {
			const digits = "6"
			return []string{"--listen_port", port(a), "--time", seconds(window), "--msg_size", strconv.Itoa(c.size),
				"--unify_units", "--precision", digits, a.Addr().String(), "tcp_lat"}
		},
		parse: func(out []byte, v *visit) (err error) { v.oneWay, err = parseQperf(out); return err },
	},
	sockperf: {
		server: func(a netip.AddrPort, _ cell, _ time.Duration) []string {
			return []string{"server", "--tcp", "-i", a.Addr().String(), "-p", port(a)}
		},
		client: func(a netip.AddrPort, c cell, window time.Duration) []string {
			return []string{"ping-pong", "--tcp", "-i", a.Addr().String(), "-p", port(a),
				"-t", seconds(window), "-m", strconv.Itoa(c.size)}
		},
		parse: func(out []byte, v *visit) (err error) { v.oneWay, err = parseSockperf(out); return err },
	},
}

func port(a netip.AddrPort) string        { return strconv.Itoa(int(a.Port())) }
func seconds(window time.Duration) string { return strconv.Itoa(int(window / time.Second)) }

// visitPeer visits a cell of another tool: a new server and a new client each
// time, as toll has.
func (b *bench) visitPeer(ctx context.Context, c cell) (v visit, err error) {
	p, ok := peerOf[c.kind()]
	if !ok {
		return v, fmt.Errorf("unknown tool %q", c.tool)
	}
	addr := b.nextAddr()
	clientCPU, serverCPU := c.cpus()
	args := pinned(serverCPU, cmp.Or(p.program, c.tool), p.server(addr, c, b.window)...)
	server, err := spawn(ctx, b.ns, args[0], args[1:]...)
	defer func() { err = errors.Join(err, server.kill()) }()
	if err != nil {
		return v, err
	}
	if err := b.listening(ctx, addr.Port(), server); err != nil {
		return v, err
	}
	before, err := b.loopback()
	if err != nil {
		return v, err
	}
	args = pinned(clientCPU, c.tool, p.client(addr, c, b.window)...)
	client, err := spawn(ctx, b.ns, args[0], args[1:]...)
	defer func() { err = errors.Join(err, client.kill()) }()
	if err != nil {
		return v, err
	}
	if v.seen, err = b.watch(ctx, c, before, client, server); err != nil {
		return v, err
	}
	if err := client.wait(ctx); err != nil {
		return v, err
	}
	err = p.parse(client.stdout.Bytes(), &v)
	return v, err
}
