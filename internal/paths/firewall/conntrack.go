package firewall

import (
	"encoding/binary"
	"strings"
)

// The client's own port is missing, because it is unknown.
var conntrackFields = map[string]Field{"--ctorigsrc": OrigSrc, "--ctorigdst": OrigDst,
	"--ctorigdstport": OrigDstPort,
	"--ctreplsrc":     ReplSrc, "--ctreplsrcport": ReplSrcPort, "--ctrepldst": ReplDst}

// linux/netfilter/xt_conntrack.h
var xtStates = map[string]uint32{"INVALID": stateInvalid, "ESTABLISHED": stateEstablished,
	"RELATED": 1 << 2, "NEW": stateNew,
	"SNAT": 1 << 6, "DNAT": xtDNAT, "UNTRACKED": 1 << 8}

// NONE has no bit, and so matches nothing.
var xtStatuses = map[string]uint32{"NONE": 0, "EXPECTED": 1 << 0, "SEEN_REPLY": statusSeenReply,
	"ASSURED": statusAssured, "CONFIRMED": statusConfirmed}

func parseConntrack(o saveOption) (Lookup, bool) {
	switch o.name {
	case "--ctstate", "--state":
		bits, ok := bitsOf(xtStates, o.value)
		return AnyBit(XtState, bits, o.not), ok
	case "--ctstatus":
		bits, ok := bitsOf(xtStatuses, o.value)
		return AnyBit(Status, bits, o.not), ok
	case "--ctdir":
		direction, ok := map[string]byte{"ORIGINAL": 0, "REPLY": 1}[o.value]
		return Is(Direction, Only([]byte{direction}), o.not), ok
	case "--ctproto":
		n, ok := protocolNumber(o.value)
		return Is(ConnProtocol, Only([]byte{n}), o.not), ok
	}
	f, ok := conntrackFields[o.name]
	if !ok {
		return Lookup{}, false
	}
	if f == OrigDstPort || f == ReplSrcPort {
		p, ok := parsePorts(o.value)
		return Is(f, Range{binary.BigEndian.AppendUint16(nil, p.Low),
			binary.BigEndian.AppendUint16(nil, p.High)}, o.not), ok
	}
	n, ok := parseNet(o.value)
	if !ok {
		return Lookup{}, false
	}
	return Is(f, prefixRange(n), o.not), true
}

func bitsOf(names map[string]uint32, list string) (bits uint32, ok bool) {
	for name := range strings.SplitSeq(list, ",") {
		bit, known := names[name]
		if !known {
			return 0, false
		}
		bits |= bit
	}
	return bits, true
}
