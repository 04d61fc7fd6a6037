// Package raw represents saved netlink messages: a message from a kernel's dump creates the same
// object in another network namespace. Kernels of the same architecture understand each other's
// messages.
package raw

import "encoding/binary"

// Message is a netlink message without its header.
type Message struct {
	Type uint16 `json:"type"` // such as RTM_NEWROUTE, or subsystem<<8 | message of nfnetlink
	Data []byte `json:"data"` // the family's header, such as struct rtmsg, and the attributes
}

// Refused is a saved object that the kernel did not make.
type Refused struct {
	What   string // "rule 3 of ip filter INPUT", "route default via 192.0.2.1 dev eth0"
	Device string // "": none in particular
	Err    error
}

// Words calls f for the 16-bit numbers at even positions of b, in both byte orders.
func Words(b []byte, f func(uint16)) {
	for ; len(b) >= 2; b = b[2:] {
		f(binary.BigEndian.Uint16(b))
		f(binary.LittleEndian.Uint16(b))
	}
}
