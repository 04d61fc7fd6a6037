package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

// transactor sends parts in transactions.
type transactor struct {
	fd      int
	parts   []part
	size    int
	out     []byte // the last transaction's memory
	refused []raw.Refused
}

// transaction limits the bytes of a transaction. It must fit into the socket's send buffer, by
// default 208 KiB.
const transaction = 96 << 10

func newTransactor() (*transactor, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	// With this option, answers do not contain a copy of the request.
	if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1); err != nil {
		return nil, errors.Join(fmt.Errorf("open nftables: %w", err), unix.Close(fd))
	}
	return &transactor{fd: fd}, nil
}

func (t *transactor) add(p part) error {
	n := unix.NLMSG_HDRLEN + headerSize
	for _, a := range p.attrs {
		n += unix.NLA_HDRLEN + len(a.data) + unix.NLA_ALIGNTO
	}
	if t.size+n > transaction {
		if err := t.flush(); err != nil {
			return err
		}
	}
	t.parts, t.size = append(t.parts, p), t.size+n
	return nil
}

// flush sends the parts in one transaction. The kernel makes all parts or none, so flush repeats
// the transaction without the refused parts until the kernel accepts it.
func (t *transactor) flush() error {
	parts := t.parts
	t.parts, t.size = nil, 0
	for len(parts) > 0 {
		refused, err := t.send(parts)
		if err != nil {
			return fmt.Errorf("write nftables rules: %w", err)
		}
		if len(refused) == 0 {
			return nil
		}
		var rest []part
		for i, p := range parts {
			err := refused[i]
			if err == nil {
				rest = append(rest, p)
				continue
			}
			if p.attrs.get(unix.NFTA_RULE_EXPRESSIONS) != nil && p.kind == unix.NFT_MSG_NEWRULE {
				t.refused = append(t.refused, raw.Refused{What: p.what, Err: err})
				p.attrs = p.attrs.without(unix.NFTA_RULE_EXPRESSIONS)
				rest = append(rest, p)
			} else if p.kind != unix.NFT_MSG_NEWRULE {
				t.refused = append(t.refused, raw.Refused{What: p.what, Err: err})
			}
		}
		parts = rest
	}
	return nil
}

// send sends a transaction and returns the errors of its parts, by their positions.
func (t *transactor) send(parts []part) (map[int]error, error) {
	resource := []byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, unix.NFNL_SUBSYS_NFTABLES}
	out := message(t.out[:0], unix.NFNL_MSG_BATCH_BEGIN, 0, 0, resource)
	var data []byte
	for i, p := range parts {
		data = append(data[:0], p.family, unix.NFNETLINK_V0, 0, 0)
		for _, x := range p.attrs {
			data = x.append(data)
		}
		out = message(out, unix.NFNL_SUBSYS_NFTABLES<<8|p.kind, unix.NLM_F_CREATE|unix.NLM_F_APPEND,
			i+1, data)
	}
	out = message(out, unix.NFNL_MSG_BATCH_END, 0, len(parts)+1, resource)
	t.out = out
	err := unix.Sendto(t.fd, out, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	if err != nil {
		return nil, err
	}
	return t.answers(len(parts))
}

func message(b []byte, kind, flags uint16, number int, data []byte) []byte {
	start := len(b)
	b = binary.NativeEndian.AppendUint32(b, uint32(unix.NLMSG_HDRLEN+len(data)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST|flags)
	b = binary.NativeEndian.AppendUint32(b, uint32(number))
	b = append(b, 0, 0, 0, 0)
	b = append(b, data...)
	for (len(b)-start)%unix.NLMSG_ALIGNTO != 0 {
		b = append(b, 0)
	}
	return b
}

// answers reads the kernel's answers, which are in the socket once the transaction is sent. The
// kernel answers only with errors.
func (t *transactor) answers(n int) (map[int]error, error) {
	refused := map[int]error{}
	lost := false
	buffer := make([]byte, 64<<10)
	for {
		size, _, err := unix.Recvfrom(t.fd, buffer, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOBUFS):
			lost = true
			continue
		case errors.Is(err, unix.EAGAIN) && lost && len(refused) == 0:
			return nil, unix.ENOBUFS
		case errors.Is(err, unix.EAGAIN):
			return refused, nil
		case err != nil:
			return nil, err
		}
		all, err := syscall.ParseNetlinkMessage(buffer[:size])
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			if m.Header.Type != unix.NLMSG_ERROR || len(m.Data) < 4 {
				continue
			}
			code := -int32(binary.NativeEndian.Uint32(m.Data))
			if code == 0 {
				continue
			}
			if m.Header.Seq == 0 || int(m.Header.Seq) > n { // of the transaction
				return nil, unix.Errno(code)
			}
			refused[int(m.Header.Seq)-1] = unix.Errno(code)
		}
	}
}
