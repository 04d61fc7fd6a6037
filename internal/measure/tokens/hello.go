package tokens

import (
	"bytes"
	"encoding/binary"
)

// Hello is the random number in a TLS client's first message. It is the connection's alone, and
// relays that copy bytes pass it on.
type Hello [32]byte

const (
	helloAt     = 11  // where the number begins in the message's record
	mostPreface = 256 // bytes of PROXY protocol before it
)

// HelloOf finds a client's first message at the beginning of a connection, also behind a header of
// the PROXY protocol. at is the number of bytes before it.
func HelloOf(b []byte) (h Hello, at int, ok bool) {
	if !mayGreet(b) {
		return h, 0, false
	}
	for i := range min(len(b)-helloAt-len(h)+1, mostPreface) {
		const handshake, clientHello, major = 0x16, 1, 3
		if b[i] == handshake && b[i+1] == major && b[i+5] == clientHello && b[i+9] == major {
			return Hello(b[i+helloAt:][:len(h)]), i, true
		}
	}
	return h, 0, false
}

// Sealed reports whether a packet begins with a record of TLS that has data.
func Sealed(b []byte) bool { return bytes.HasPrefix(b, []byte{0x17, 3, 3}) }

// mayGreet reports whether a connection may begin with such a message.
func mayGreet(b []byte) bool {
	return len(b) > 0 && (mayBegin(b, "\x16\x03") || mayBegin(b, proxyV1) || mayBegin(b, proxyV2))
}

// mayBegin reports whether bytes begin with a text, as far as they have come.
func mayBegin(b []byte, text string) bool {
	n := min(len(text), len(b))
	return string(b[:n]) == text[:n]
}

// How the headers of the PROXY protocol's versions begin.
const (
	proxyV1 = "PROXY "
	proxyV2 = "\r\n\r\n\x00\r\nQUIT\n"
)

// proxyHeader returns the length of the header of the PROXY protocol with which bytes begin, 0 if
// there is none. known is false if that takes more bytes.
func proxyHeader(b []byte) (n int, known bool) {
	const longest1, sizeAt2, head2 = 107, 14, 16
	switch {
	case mayBegin(b, proxyV1):
		n = bytes.IndexByte(b, '\n') + 1
		return n, n > 0 || len(b) > longest1
	case mayBegin(b, proxyV2) && len(b) < head2:
		return 0, false
	case mayBegin(b, proxyV2):
		n = head2 + int(binary.BigEndian.Uint16(b[sizeAt2:]))
		return n, len(b) >= n
	}
	return 0, true
}

// greeting looks for a client's first message in a connection that comes in pieces.
type greeting struct {
	Hello
	at   int64 // bytes before it
	seen bool
	over bool // it has been found, or will not be
	kept []byte
}

func (g *greeting) feed(b []byte) {
	if g.over {
		return
	}
	g.kept = append(g.kept, b[:min(len(b), mostPreface+helloAt+len(g.Hello)-len(g.kept))]...)
	h, at, ok := HelloOf(g.kept)
	if g.Hello, g.at, g.seen = h, int64(at), ok; ok || !mayGreet(g.kept) ||
		len(g.kept) == mostPreface+helloAt+len(h) {
		g.over, g.kept = true, nil
	}
}
