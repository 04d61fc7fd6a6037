package sock

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
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

const (
	// number of requests in a message: their errors must fit into the socket's buffer
	destroyAtOnce = 64
	answerTimeout = time.Second
)

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
	s, err := nl.Subscribe(unix.NETLINK_INET_DIAG)
	if err != nil {
		return fmt.Errorf("open sock_diag: %w", err)
	}
	defer s.Close()
	limit := unix.NsecToTimeval(int64(answerTimeout))
	if err := s.SetReceiveTimeout(&limit); err != nil {
		return fmt.Errorf("open sock_diag: %w", err)
	}
	for some := range slices.Chunk(ids, destroyAtOnce) {
		// The library would send each request alone, but the kernel accepts many in one message.
		var batch []byte
		var last uint32
		for i, id := range some {
			flags := 0
			if i == len(some)-1 {
				flags = unix.NLM_F_ACK
			}
			q := nl.NewNetlinkRequest(diagDestroy, flags)
			q.AddData(request{family: family, protocol: unix.IPPROTO_TCP, id: id})
			batch, last = append(batch, q.Serialize()...), q.Seq
		}
		err := unix.Sendto(s.GetFd(), batch, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		if err != nil {
			return fmt.Errorf("destroy sockets: %w", err)
		}
		if err := acknowledged(s, last); err != nil {
			return fmt.Errorf("destroy sockets: %w", err)
		}
	}
	return nil
}

func acknowledged(s *nl.NetlinkSocket, last uint32) error {
	var failed error
	for {
		messages, _, err := s.Receive()
		if err != nil {
			return err
		}
		for _, m := range messages {
			if m.Header.Type != unix.NLMSG_ERROR || len(m.Data) < 4 {
				return unix.EBADMSG
			}
			if e := unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data))); e != 0 &&
				e != unix.ENOENT {
				failed = e
			}
			if m.Header.Seq == last {
				return failed
			}
		}
	}
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
