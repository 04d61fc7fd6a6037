package tokens

import "bytes"

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

// mayGreet reports whether a connection may begin with such a message.
func mayGreet(b []byte) bool {
	for _, start := range []string{"\x16\x03", "PROXY ", "\r\n\r\n\x00\r\nQUIT\n"} {
		n := min(len(start), len(b))
		if bytes.Equal(b[:n], []byte(start[:n])) {
			return n > 0
		}
	}
	return false
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
