package load

import (
	"encoding/binary"
	"math"
)

// The loads over UDP begin each flow with a greeting and end it with a message. Both are repeated
// until they are answered, so that neither end hangs after losses. A flow is a pair of connected
// sockets. The server makes its socket when a greeting arrives.
//
// A datagram of udp has a head, a sequence number and payload. The loss is the number of missing
// sequence numbers in the window. All fields are big-endian.
const (
	headBytes    = 8
	controlBytes = 6 * 8 // a head and five numbers
	magic        = 0xc5
)

type kind byte

const (
	data    kind = iota + 1
	hello        // client: a new flow
	welcome      // server: the greeting arrived
	ask          // client: asks what arrived of this step of the search
	report       // server: step, datagrams, first and last arrival
	end          // client: first number of the window, first after it, number of all, round trip
	bye          // server: the client's end arrived
)

// head is a datagram's first word. run identifies flow and visit, because a proxy may still forward
// another one's datagrams.
type head struct {
	kind kind
	part byte // number of the window's bounds passed
	step byte // of the search; 0: not a step
	run  uint32
}

func (h head) word() uint64 {
	return magic<<56 | uint64(h.kind)<<48 | uint64(h.part)<<40 | uint64(h.step)<<32 | uint64(h.run)
}

func parseHead(b []byte, run uint32) (head, bool) {
	if len(b) < 2*headBytes {
		return head{}, false
	}
	w := binary.BigEndian.Uint64(b)
	h := head{kind: kind(w >> 48), part: byte(w >> 40), step: byte(w >> 32), run: uint32(w)}
	return h, w>>56 == magic && h.run == run
}

func control(b []byte, h head, numbers ...int64) []byte {
	b = b[:controlBytes]
	clear(b)
	binary.BigEndian.PutUint64(b, h.word())
	for i, n := range numbers {
		binary.BigEndian.PutUint64(b[(i+1)*8:], uint64(n))
	}
	return b
}

// number returns number i of a control message, or 0 if the message is too short.
func number(b []byte, i int) int64 {
	if at := (i + 1) * 8; at+8 <= len(b) {
		return int64(binary.BigEndian.Uint64(b[at:]))
	}
	return 0
}

// trackBits is the number of sequence numbers remembered.
const trackBits = 1 << 16

type tracker struct {
	next uint64 // one more than the highest that arrived
	seen [trackBits / 64]uint64
}

// add records an arrival. fresh means that it is the first with its number, late that a higher
// number arrived before. A number that is too old to be remembered counts as the first.
func (k *tracker) add(seq uint64) (fresh, late bool) {
	if seq > math.MaxInt64 { // no sender reaches that
		return false, true
	}
	if seq >= k.next {
		gap := min(seq-k.next+1, trackBits)
		for s := seq + 1 - gap; s < seq; s++ {
			k.seen[s%trackBits/64] &^= 1 << (s % 64)
		}
		k.next = seq + 1
		k.seen[seq%trackBits/64] |= 1 << (seq % 64)
		return true, false
	}
	if k.next-seq > trackBits {
		return true, true
	}
	word, bit := &k.seen[seq%trackBits/64], uint64(1)<<(seq%64)
	if *word&bit != 0 {
		return false, true
	}
	*word |= bit
	return true, true
}
