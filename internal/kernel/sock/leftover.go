package sock

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Leftovers are sockets that no process has any more and that wait for the end of their connection,
// usually for a minute in TIME_WAIT.

// linux/sock_diag.h, linux/inet_diag.h, net/tcp_states.h
const (
	diagByFamily = 20 // SOCK_DIAG_BY_FAMILY
	diagDestroy  = 21 // SOCK_DESTROY

	messageSize = 72 // struct inet_diag_msg
	idOffset    = 4  // in inet_diag_msg
	idSize      = 48
	queueOffset = 56 // in inet_diag_msg
	inodeOffset = 68 // in inet_diag_msg

	ending = 1<<finWait1 | 1<<finWait2 | 1<<timeWait | 1<<lastAck | 1<<closing

	finWait1, finWait2, timeWait = 4, 5, 6
	lastAck, closing             = 9, 11
)

const answerTimeout = time.Second

// request is a struct inet_diag_req_v2. It selects sockets in the given states, or the one with the
// given ID.
type request struct {
	family, protocol, attributes byte
	states                       uint32
	id                           []byte
	more                         nl.NetlinkRequestData
}

var _ nl.NetlinkRequestData = request{}

func (request) Len() int { return 8 + idSize }

func (r request) Serialize() []byte {
	b := make([]byte, r.Len())
	b[0], b[1], b[2] = r.family, r.protocol, r.attributes
	binary.NativeEndian.PutUint32(b[4:], r.states)
	copy(b[8:], r.id)
	return b
}

func (r request) dump(f func(message []byte)) error {
	q := nl.NewNetlinkRequest(diagByFamily, unix.NLM_F_DUMP)
	q.AddData(r)
	if r.more != nil {
		q.AddData(r.more)
	}
	err := q.ExecuteIter(unix.NETLINK_INET_DIAG, diagByFamily, func(message []byte) bool {
		if len(message) >= messageSize {
			f(message)
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("read sockets: %w", err)
	}
	return nil
}

// Ends picks sockets by their two ends; nil picks all.
type Ends func(local, remote netip.AddrPort) bool

func (e Ends) pick(m []byte) bool {
	if e == nil {
		return true
	}
	s := parseSocket("tcp", m)
	unmapped := func(a netip.AddrPort) netip.AddrPort {
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	}
	return e(unmapped(s.Local), unmapped(s.Remote))
}

func leftovers(family byte, of Ends) (ids [][]byte, err error) {
	err = request{family: family, protocol: unix.IPPROTO_TCP, states: ending}.dump(func(m []byte) {
		if binary.NativeEndian.Uint32(m[inodeOffset:]) == 0 && of.pick(m) {
			ids = append(ids, bytes.Clone(m[idOffset:idOffset+idSize]))
		}
	})
	return ids, err
}

func destroy(family byte, ids [][]byte) error {
	requests := make([]request, 0, len(ids))
	for _, id := range ids {
		requests = append(requests, request{family: family, protocol: unix.IPPROTO_TCP, id: id})
	}
	if err := ask(diagDestroy, requests, func([]byte) {}); err != nil {
		return fmt.Errorf("destroy sockets: %w", err)
	}
	return nil
}

// Leftover counts the leftovers that of picks.
func Leftover(of Ends) (n int, err error) {
	for _, family := range families {
		ids, err := leftovers(family, of)
		if err != nil {
			return n, err
		}
		n += len(ids)
	}
	return n, nil
}

var families = []byte{unix.AF_INET, unix.AF_INET6}

// Sweep ends the sockets that Leftover counts, which frees their ports. The error wraps EPERM
// without CAP_NET_ADMIN, and EOPNOTSUPP without CONFIG_INET_DIAG_DESTROY or if the kernel cannot
// end sockets in TIME_WAIT.
func Sweep(of Ends) error {
	for _, family := range families {
		ids, err := leftovers(family, of)
		if err == nil && len(ids) > 0 {
			err = destroy(family, ids)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
