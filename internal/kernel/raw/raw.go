// Package raw represents saved netlink messages: a message from a kernel's dump creates the same
// object in another network namespace. Kernels of the same architecture understand each other's
// messages. Dial opens a socket to ask for them.
package raw

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

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

const (
	headerSize = 6       // type and size
	maxSize    = 1 << 20 // of a message that Receive accepts, in bytes
)

// Send writes messages for Receive.
func Send(w io.Writer, all []Message) error {
	b := bufio.NewWriter(w)
	for _, m := range all {
		if len(m.Data) > maxSize {
			return fmt.Errorf("a message has %d bytes", len(m.Data))
		}
		var head [headerSize]byte
		binary.NativeEndian.PutUint16(head[:], m.Type)
		binary.NativeEndian.PutUint32(head[2:], uint32(len(m.Data)))
		if _, err := b.Write(head[:]); err != nil {
			return err
		}
		if _, err := b.Write(m.Data); err != nil {
			return err
		}
	}
	return b.Flush()
}

// Receive reads n messages that Send wrote.
func Receive(r io.Reader, n int) (out []Message, err error) {
	for range n {
		var head [headerSize]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return nil, err
		}
		size := binary.NativeEndian.Uint32(head[2:])
		if size > maxSize {
			return nil, fmt.Errorf("a message has %d bytes", size)
		}
		m := Message{binary.NativeEndian.Uint16(head[:]), make([]byte, size)}
		if _, err := io.ReadFull(r, m.Data); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}
