package sock

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// atOnce is the number of requests in a message: their answers must fit into the socket's buffer.
const atOnce = 64

// Again reads TCP connections of Table once more, each by its ends, without looking through all.
// Those that have ended are missing.
func Again(connections []Socket) (out []Socket, err error) {
	requests := make([]request, 0, len(connections))
	for _, c := range connections {
		requests = append(requests, request{family: c.family(), protocol: unix.IPPROTO_TCP,
			attributes: 1 << (attrInfo - 1), states: 1 << established, id: c.id()})
	}
	err = ask(diagByFamily, requests, func(m []byte) {
		if m[1] == established { // and not in TIME_WAIT
			out = append(out, parseSocket("tcp", m))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read sockets: %w", err)
	}
	return out, nil
}

func (s Socket) family() byte {
	if s.Local.Addr().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// id returns a struct inet_diag_sockid without a cookie.
func (s Socket) id() []byte {
	b := make([]byte, idSize)
	binary.BigEndian.PutUint16(b, s.Local.Port())
	binary.BigEndian.PutUint16(b[2:], s.Remote.Port())
	copy(b[4:], s.Local.Addr().AsSlice())
	copy(b[20:], s.Remote.Addr().AsSlice())
	binary.NativeEndian.PutUint32(b[36:], s.Device)
	const none = ^uint64(0) // INET_DIAG_NOCOOKIE, twice
	binary.NativeEndian.PutUint64(b[40:], none)
	return b
}

// ask asks for single sockets and calls answer with what the kernel says of those that are there.
func ask(kind int, requests []request, answer func(message []byte)) error {
	s, err := nl.Subscribe(unix.NETLINK_INET_DIAG)
	if err != nil {
		return fmt.Errorf("open sock_diag: %w", err)
	}
	defer s.Close()
	limit := unix.NsecToTimeval(int64(answerTimeout))
	if err := s.SetReceiveTimeout(&limit); err != nil {
		return fmt.Errorf("open sock_diag: %w", err)
	}
	for some := range slices.Chunk(requests, atOnce) {
		// The library would send each request alone, but the kernel accepts many in one message.
		var batch []byte
		var last uint32
		for i, r := range some {
			flags := 0
			if i == len(some)-1 {
				flags = unix.NLM_F_ACK
			}
			q := nl.NewNetlinkRequest(kind, flags)
			q.AddData(r)
			batch, last = append(batch, q.Serialize()...), q.Seq
		}
		err := unix.Sendto(s.GetFd(), batch, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		if err != nil {
			return err
		}
		if err := answers(s, last, answer); err != nil {
			return err
		}
	}
	return nil
}

// answers reads until the last request is acknowledged. A socket that is gone is no error.
func answers(s *nl.NetlinkSocket, last uint32, answer func(message []byte)) error {
	var failed error
	for {
		messages, _, err := s.Receive()
		if err != nil {
			return err
		}
		for _, m := range messages {
			switch {
			case m.Header.Type == diagByFamily && len(m.Data) >= messageSize:
				answer(m.Data)
				continue
			case m.Header.Type != unix.NLMSG_ERROR || len(m.Data) < 4:
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
