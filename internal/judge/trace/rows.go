package trace

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// kind decides to which sum a row belongs, and how much its epochs are assumed to differ.
type kind int

const (
	inPath kind = iota
	inWakes
	inRelay
	inEnds // the client and the server of a route
	inHook // within a row of the path
)

// The rows in the order of a trip.
const (
	rowPrograms = "programs, system calls"
	rowOut      = "TCP and IP out"
	rowDevices  = "qdisc and driver" // follows the kinds of the devices
	rowHandover = "hand-over to the softirq"
	rowBridge   = "bridge"
	rowRouting  = "routing, NAT"
	rowNAT      = "NAT" // of all rows, where hooks were traced
	rowTunnel   = "tunnel"
	rowIn       = "IP and TCP in"
	rowRelay    = "relay"
	rowWakes    = "wake-ups"
	rowClient   = string(sample.PartClient)
	rowNetwork  = string(sample.PartNetwork)
	rowServer   = string(sample.PartServer)
	rowTCP      = string(sample.PartServerTCP)
	rowQueue    = string(sample.PartServerQueue)
	rowTransfer = string(sample.PartTransfer)
)

var order = []string{rowPrograms, rowOut, rowDevices, rowHandover, rowBridge, rowRouting, rowNAT, rowTunnel,
	rowForwarding, rowIn, rowClient, rowNetwork, rowRelay, rowServer, rowTCP, rowQueue, rowTransfer,
	rowWakes}

// rowForwarding is the position, in order, of the rows of other kinds of hops.
const rowForwarding = ""

var rowOfPart = map[sample.Part]string{
	sample.PartCall: rowPrograms, sample.PartCopy: rowPrograms, sample.PartRead: rowPrograms,
	sample.PartProgram: rowPrograms, sample.PartReturn: rowPrograms,
	sample.PartOut: rowOut, sample.PartQdisc: rowDevices, sample.PartDriver: rowDevices,
	sample.PartHandover: rowHandover, sample.PartTunnel: rowTunnel,
	sample.PartIn: rowIn, sample.PartTCPIn: rowIn,
	sample.PartRelay: rowRelay, sample.PartWake: rowWakes,
}

// forwarders maps the kinds of devices that have a row of their own to the rows' names; "" is the
// kind itself.
var forwarders = map[string]string{"openvswitch": "Open vSwitch",
	string(mode.HopOVS): "Open vSwitch", string(mode.HopMacvlan): "", string(mode.HopIPvlan): "",
	string(mode.HopNetkit): "", string(mode.HopIPVS): ""}

func forwarding(hop, otherwise string) string {
	name, ok := forwarders[hop]
	switch {
	case !ok:
		return otherwise
	case name == "":
		return hop
	}
	return name
}

// rowOf returns the name of a segment's row. A segment with several parts, which the kernel cannot
// tell apart, has the joined names of their rows.
func rowOf(k sample.SegmentKey) string {
	var names []string
	whole, _, _ := strings.Cut(string(k.Part), sample.InPart)
	for p := range strings.SplitSeq(whole, " + ") {
		name, ok := rowOfPart[sample.Part(p)]
		switch {
		case p == string(sample.PartBridge):
			name = forwarding(k.Hop, rowBridge)
		case p == string(sample.PartRelayed):
			name = rowRelay + " " + k.Hop
		case p == string(sample.PartForward):
			name = forwarding(k.Hop, rowRouting)
		case !ok:
			name = p // a part of a later toll
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " + ")
}

func kindOf(row string) kind {
	switch {
	case has(row, rowRelay), strings.HasPrefix(row, rowRelay+" "):
		return inRelay
	case has(row, rowClient), has(row, rowServer), has(row, rowTransfer):
		return inEnds
	case has(row, rowWakes):
		return inWakes
	}
	return inPath
}

func has(row, name string) bool { return slices.Contains(strings.Split(row, " + "), name) }

// Wakes reports whether the row includes wake-ups.
func (r Row) Wakes() bool { return has(r.Name, rowWakes) }

// InPath reports whether the row includes neither wake-ups nor a relay.
func (r Row) InPath() bool { return kindOf(r.Name) == inPath }

func rank(row string) int {
	first, _, _ := strings.Cut(row, " + ")
	if strings.HasPrefix(first, rowRelay+" ") {
		first = rowRelay
	}
	if i := slices.Index(order, first); i >= 0 {
		return i
	}
	return slices.Index(order, rowForwarding)
}

// hookOf returns the name of a segment's netfilter hook. ok is false if it has none.
func hookOf(k sample.SegmentKey) (name string, ok bool) {
	if name, ok = strings.CutPrefix(string(k.Part), string(sample.PartHook)); !ok {
		return "", false
	}
	return name, true
}

// own is the part of a process in which it runs.
const own = "its own CPU time"

// partOf returns the name of a segment's part of its row; "": the row is not divided by such parts.
func partOf(k sample.SegmentKey) string {
	if _, name, ok := strings.Cut(string(k.Part), sample.InPart); ok {
		return name
	}
	if k.Part == sample.PartRelayed || k.Part == sample.PartServer {
		return own
	}
	return ""
}

// shown returns the row's name as users read it.
func shown(row string, devices []string, udp bool) string {
	if i := strings.Index(row, rowDevices); i >= 0 && len(devices) > 0 {
		row = row[:i] + strings.Join(devices, ", ") + ": " + row[i:]
	}
	if udp {
		row = strings.ReplaceAll(row, "TCP", "UDP")
	}
	return row
}

// WithoutDevices returns the name of a row without the devices that it is about.
func WithoutDevices(row string) string {
	_, name, ok := strings.Cut(row, ": ")
	if !ok {
		return row
	}
	return name
}
