package load

import (
	"encoding/binary"
	"math"
)

// The loads over UDP, "udp" and "udp-rr". UDP neither connects nor closes, so
// each flow begins with a greeting that is answered and ends with a word that
// is answered, each said again until it is; what gets lost can make neither end
// hang. A flow is a pair of connected sockets: the server makes one for each
// greeting, as accept(2) does for TCP.
//
// A datagram of udp carries a head that says whose it is and which part of the
// visit it belongs to, and a sequence number; the rest is payload that nobody
// looks at. Loss is what is missing among the sequence numbers of the window.
// All fields are big-endian.
const (
	headBytes    = 8
	controlBytes = 6 * 8 // a head and five numbers
	magic        = 0xc5
)

// kind is what a datagram with a head is for.
type kind byte

const (
	data    kind = iota + 1
	hello        // client: a new flow
	welcome      // server: it is known
	ask          // client: what came of this step of the search?
	report       // server: step, datagrams, first and last arrival
	end          // client: first number of the window, first after it, numbers in all, round trip
	bye          // server: the end is known
)

// head is a datagram's first word. Run tells flows and visits apart: a proxy may
// still hold another's datagrams.
type head struct {
	kind kind
	part byte // of the visit: how many of the window's bounds were passed
	step byte // of the search; 0: not one
	run  uint32
}

func (h head) word() uint64 {
	return magic<<56 | uint64(h.kind)<<48 | uint64(h.part)<<40 | uint64(h.step)<<32 | uint64(h.run)
}

// parseHead reads a datagram's head; false if it is none of this run's.
func parseHead(b []byte, run uint32) (head, bool) {
	if len(b) < 2*headBytes {
		return head{}, false
	}
	w := binary.BigEndian.Uint64(b)
	h := head{kind: kind(w >> 48), part: byte(w >> 40), step: byte(w >> 32), run: uint32(w)}
	return h, w>>56 == magic && h.run == run
}

// control writes a control message.
func control(b []byte, h head, numbers ...int64) []byte {
	b = b[:controlBytes]
	clear(b)
	binary.BigEndian.PutUint64(b, h.word())
	for i, n := range numbers {
		binary.BigEndian.PutUint64(b[(i+1)*8:], uint64(n))
	}
	return b
}

// number is a control message's i-th number; 0 if it is too short to have one.
func number(b []byte, i int) int64 {
	if at := (i + 1) * 8; at+8 <= len(b) {
		return int64(binary.BigEndian.Uint64(b[at:]))
	}
	return 0
}

// trackBits is how far back a number is remembered.
const trackBits = 1 << 16

// tracker sorts arrivals by their sequence numbers, from 0.
type tracker struct {
	next uint64 // one more than the highest that came
	seen [trackBits / 64]uint64
}

// add notes an arrival: whether it came for the first time, and whether one
// that was sent later came before it. Of one that is too old to be remembered
// it takes the former for granted.
func (k *tracker) add(seq uint64) (fresh, late bool) {
	if seq > math.MaxInt64 { // no sender gets there
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
