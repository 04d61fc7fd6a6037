package tokens

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
)

// errTwoWay means that from now on both sides of a connection send what answers nothing.
var errTwoWay = errors.New("both sides send messages")

// areTwoWay reports whether bytes, the first of a client or of a server that talks first, are of
// AMQP, MQTT, NATS or SSH, in which both sides send messages that answer nothing.
func areTwoWay(b []byte) bool {
	begins := func(heads ...string) bool {
		return slices.ContainsFunc(heads, func(h string) bool { return bytes.HasPrefix(b, []byte(h)) })
	}
	return begins("AMQP", "SSH-2.0-", "INFO {", "CONNECT {", "PUB ", "HPUB ", "SUB ", "PONG\r\n") ||
		areAMQP(b) || areMQTT(b)
}

// areAMQP reports whether bytes begin with a frame of AMQP, version 0-9-1 or 1.0.
func areAMQP(b []byte) bool {
	const head, last = 7, 0xce
	if len(b) <= head {
		return false
	}
	if kind, size := b[0], binary.BigEndian.Uint32(b[3:]); (kind >= 1 && kind <= 3 || kind == 8) &&
		int64(size) < int64(len(b)-head) {
		return b[head+size] == last
	}
	const performative = 8
	return len(b) > performative+2 && int64(binary.BigEndian.Uint32(b)) <= int64(len(b)) && b[4] == 2 &&
		b[5] <= 1 && b[performative] == 0 && b[performative+1] == 0x53
}

// opensQUIC reports whether a datagram begins like one of QUIC that opens a connection.
func opensQUIC(b []byte) bool {
	const (
		header        = 6 // up to the length of the connection's name
		long, longest = 0xc0, 20
		first, second = 1, 0x6b3343cf // versions
	)
	if len(b) < header || b[0]&long != long || b[header-1] > longest {
		return false
	}
	version := binary.BigEndian.Uint32(b[1:])
	return version == first || version == second
}

// seal is what WireGuard's data say in clear.
type seal struct {
	session uint32
	number  uint64 // from 1 on; 0: the datagram has another form
}

func sealOf(b []byte, size int) seal {
	const data, header, block = 4, 16, 16
	if len(b) < header || size < header+block || size%block != 0 ||
		binary.LittleEndian.Uint32(b) != data {
		return seal{}
	}
	return seal{binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:]) + 1}
}

// follows reports whether data come next, or after a few that are lost, to earlier ones. A single
// datagram of another protocol may look like data; two of them do not count on.
func (s seal) follows(earlier seal) bool {
	const lost = 64
	return earlier.number != 0 && s.session == earlier.session &&
		s.number > earlier.number && s.number-earlier.number <= lost
}

// hides has the first bytes of datagrams, in which QUIC hides all but two or three bits.
type hides struct {
	seen uint64 // of those from 0x40 on
	not  bool   // there was another one
}

// add adds a first byte. It reports whether the datagrams are of QUIC: their first bytes have the same
// two bits, differ much, and are not all letters, as in protocols of text.
func (h *hides) add(first byte) bool {
	const fixed, differ, noLetters = 0x40, 16, 3
	const letters = 0x07fffffe<<32 | 0x07fffffe
	if h.not = h.not || first&0xc0 != fixed; h.not {
		return false
	}
	h.seen |= 1 << (first - fixed)
	return bits.OnesCount64(h.seen) >= differ && bits.OnesCount64(h.seen&^letters) >= noLetters
}

// areMQTT reports whether bytes are a client's greeting, its ping or an acknowledgement.
func areMQTT(b []byte) bool {
	const connect, acknowledge, ping = 0x10, 0x40, 0xc0
	switch {
	case len(b) == 2:
		return b[0] == ping && b[1] == 0
	case len(b) == 4:
		return b[0] == acknowledge && b[1] == 2
	}
	const name = 8 // the latest end of "MQTT", behind lengths
	return len(b) > name && b[0] == connect && bytes.Contains(b[:name+1], []byte("MQ"))
}
