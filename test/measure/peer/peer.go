// Package peer runs the tools that engineers use instead of toll's loops, and parses their output.
// A program that imports it calls Inner before anything else.
package peer

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	IPerf3   = "iperf3"
	QPerf    = "qperf"
	SockPerf = "sockperf"
	NetPerf  = "netperf"
	// NetServer belongs to netperf.
	NetServer = "netserver"
	// TaskSet pins the tools.
	TaskSet = "taskset"
)

// Ask is what a tool is to measure.
type Ask struct {
	Listen  netip.AddrPort // of the server
	Dial    netip.AddrPort // by the client
	Second  uint16         // a further port, for a tool that opens two (qperf, netperf); 0: any
	Size    int            // of request and response, a write or a datagram
	Omit    time.Duration  // not counted before Window, if the tool can (iperf3)
	Window  time.Duration  // in whole seconds, as the tools require
	Bitrate int            // of datagrams, bit/s
}

func (a Ask) size() string         { return strconv.Itoa(a.Size) }
func (a Ask) seconds() string      { return whole(a.Window) }
func whole(t time.Duration) string { return strconv.Itoa(int(t / time.Second)) }
func (a Ask) iperf3Server() []string {
	return []string{IPerf3, "-s", "-1", "-i", "0", "-B", host(a.Listen), "-p", port(a.Listen)}
}
func (a Ask) iperf3(o ...string) []string {
	return append([]string{IPerf3, "-c", host(a.Dial), "-p", port(a.Dial), "-l", a.size(),
		"-t", a.seconds(), "-O", whole(a.Omit), "-i", "0", "-J"}, o...)
}

func host(a netip.AddrPort) string { return a.Addr().String() }
func port(a netip.AddrPort) string { return strconv.Itoa(int(a.Port())) }

// Tool has command lines, the program first, and the parser of its result in base units.
type Tool struct {
	server, client func(Ask) []string
	parse          func(out []byte) (float64, error)
}

// Tools are named by what they measure.
var (
	// Bulk is iperf3's TCP stream, in bit/s received.
	Bulk = Tool{Ask.iperf3Server, func(a Ask) []string { return a.iperf3() }, parseIperf3}
	// UDP is the same with datagrams.
	UDP = Tool{Ask.iperf3Server, func(a Ask) []string {
		return a.iperf3("-u", "-b", strconv.Itoa(a.Bitrate))
	}, parseIperf3}
	// Trips is qperf's request and response: half a mean round trip, in s.
	Trips = Tool{
		server: func(a Ask) []string { return []string{QPerf, "--listen_port", port(a.Listen)} },
		client: func(a Ask) []string {
			const digits = "6"
			return []string{QPerf, "--listen_port", port(a.Dial), "--time", a.seconds(),
				"--msg_size", a.size(),
				"--unify_units", "--precision", digits, "--ip_port", strconv.Itoa(int(a.Second)),
				host(a.Dial), "tcp_lat"}
		},
		parse: parseQperf,
	}
	// SockTrips is sockperf's, the same.
	SockTrips = Tool{
		server: func(a Ask) []string {
			return []string{SockPerf, "server", "--tcp", "-i", host(a.Listen), "-p", port(a.Listen)}
		},
		client: func(a Ask) []string {
			return []string{SockPerf, "ping-pong", "--tcp", "-i", host(a.Dial), "-p", port(a.Dial),
				"-t", a.seconds(), "-m", a.size()}
		},
		parse: parseSockperf,
	}
	// Connections is netperf's connections per second.
	Connections = Tool{
		server: func(a Ask) []string {
			return []string{NetServer, "-D", "-4", "-L", host(a.Listen), "-p", port(a.Listen)}
		},
		client: func(a Ask) []string {
			return []string{NetPerf, "-H", host(a.Dial), "-p", port(a.Dial), "-t", "TCP_CRR", "-l",
				a.seconds(), "-P", "0",
				"--", "-r", a.size() + "," + a.size(), "-P", fmt.Sprintf(",%d", a.Second)}
		},
		parse: parseNetperf,
	}
)

func pinned(cpus []int, command []string) []string {
	if len(cpus) == 0 {
		return command
	}
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(cpus), " ", ","), "[]")
	return append([]string{TaskSet, "--cpu-list", list}, command...)
}

func listens(pid int, port uint16) (bool, error) {
	for _, name := range []string{"tcp", "tcp6"} {
		table, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "net", name))
		if err != nil && !os.IsNotExist(err) { // IPv6 may be off
			return false, fmt.Errorf("read sockets: %w", err)
		}
		if listed(string(table), port) {
			return true, nil
		}
	}
	return false, nil
}

// table has the format of /proc/net/tcp.
func listed(table string, port uint16) bool {
	const local, state = 1, 3 // fields of a line, as proc_net_tcp.txt has them
	suffix := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > state && strings.HasSuffix(f[local], suffix) && f[state] == "0A" { // TCP_LISTEN
			return true
		}
	}
	return false
}
