package tokens

import (
	"bytes"
	"encoding/binary"
	"errors"
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
