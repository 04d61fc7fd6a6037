package sock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// What connections leave behind: sockets without a process, which wait out
// the end of their connection, most of them for a minute in TIME_WAIT.

// Numbers of linux/sock_diag.h and linux/inet_diag.h, and of the states of
// net/tcp_states.h.
const (
	diagByFamily = 20 // SOCK_DIAG_BY_FAMILY
	diagDestroy  = 21 // SOCK_DESTROY

	headerSize  = unix.SizeofNlMsghdr
	requestSize = 56 // struct inet_diag_req_v2
	messageSize = 72 // struct inet_diag_msg
	idOffset    = 4  // of struct inet_diag_sockid in inet_diag_msg
	idSize      = 48
	inodeOffset = 68 // in inet_diag_msg

	ending = 1<<finWait1 | 1<<finWait2 | 1<<timeWait | 1<<lastAck | 1<<closing

	finWait1, finWait2, timeWait, lastAck, closing = 4, 5, 6, 9, 11
)

const (
	// destroyAtOnce is how many sockets are named at once: as many as may each be
	// answered by an error without filling the socket's buffer.
	destroyAtOnce = 64
	// answerTimeout bounds the wait for an answer that was lost.
	answerTimeout = time.Second
)

// diag is a netlink socket in the calling thread's network namespace.
type diag int

func openDiag() (diag, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return -1, fmt.Errorf("open sock_diag: %w", err)
	}
	limit := unix.NsecToTimeval(int64(answerTimeout))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return -1, errors.Join(fmt.Errorf("open sock_diag: %w", err), unix.Close(fd))
	}
	return diag(fd), nil
}

func (d diag) close() { _ = unix.Close(int(d)) }

func (d diag) send(b []byte) error {
	return unix.Sendto(int(d), b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// message is a request about sockets of a family; id may be empty.
func message(kind, flags uint16, family byte, states uint32, id []byte) []byte {
	b := make([]byte, headerSize+requestSize)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], kind)
	binary.NativeEndian.PutUint16(b[6:], flags)
	r := b[headerSize:]
	r[0], r[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(r[4:], states)
	copy(r[8:], id)
	return b
}

// each calls f for each message of the answer to a dump.
func (d diag) each(f func(body []byte)) error {
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(int(d), buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read sockets: %w", err)
		}
		for b := buf[:n]; len(b) >= headerSize; {
			size := int(binary.NativeEndian.Uint32(b))
			if size < headerSize || size > len(b) {
				return errors.New("read sockets: a message of an impossible length")
			}
			body := b[headerSize:size]
			switch binary.NativeEndian.Uint16(b[4:]) {
			case unix.NLMSG_DONE:
				return nil
			case unix.NLMSG_ERROR:
				return fmt.Errorf("read sockets: %w", errnoOf(body))
			case diagByFamily:
				if len(body) >= messageSize {
					f(body)
				}
			}
			b = b[min(len(b), (size+3)&^3):]
		}
	}
}

// errnoOf is the error of an NLMSG_ERROR's body; 0 is an acknowledgement.
func errnoOf(body []byte) unix.Errno {
	if len(body) < 4 {
		return unix.EBADMSG
	}
	return unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
}

// Ends picks sockets by their two ends; nil picks all.
type Ends func(local, remote netip.AddrPort) bool

// pick reports whether a struct inet_diag_msg is of a picked socket.
func (e Ends) pick(m []byte) bool {
	if e == nil {
		return true
	}
	s := parseSocket("tcp", m)
	unmapped := func(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
	return e(unmapped(s.Local), unmapped(s.Remote))
}

// leftovers are the ids, as the kernel gave them, of a family's sockets that no
// process has and that wait for their end.
func (d diag) leftovers(family byte, of Ends) (ids [][]byte, err error) {
	if err := d.send(message(diagByFamily, unix.NLM_F_REQUEST|unix.NLM_F_DUMP, family, ending, nil)); err != nil {
		return nil, fmt.Errorf("read sockets: %w", err)
	}
	err = d.each(func(m []byte) {
		if binary.NativeEndian.Uint32(m[inodeOffset:]) == 0 && of.pick(m) {
			ids = append(ids, append([]byte{}, m[idOffset:idOffset+idSize]...))
		}
	})
	return ids, err
}

// destroy ends sockets of a family. One that is gone already is no error.
func (d diag) destroy(family byte, ids [][]byte) error {
	for len(ids) > 0 {
		n := min(len(ids), destroyAtOnce)
		var batch []byte
		for i, id := range ids[:n] {
			flags := uint16(unix.NLM_F_REQUEST)
			if i == n-1 { // one answer tells that all have been worked through
				flags |= unix.NLM_F_ACK
			}
			batch = append(batch, message(diagDestroy, flags, family, 0, id)...)
		}
		if err := d.send(batch); err != nil {
			return fmt.Errorf("destroy sockets: %w", err)
		}
		if err := d.acknowledged(batch[len(batch)-headerSize-requestSize:]); err != nil {
			return fmt.Errorf("destroy sockets: %w", err)
		}
		ids = ids[n:]
	}
	return nil
}

// acknowledged reads the answers up to that to the last message. Without
// CONFIG_INET_DIAG_DESTROY, and where the kernel cannot end a socket in
// TIME_WAIT, they are EOPNOTSUPP.
func (d diag) acknowledged(last []byte) error {
	buf := make([]byte, 64<<10)
	var failed error
	for {
		n, _, err := unix.Recvfrom(int(d), buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		for b := buf[:n]; len(b) >= headerSize; {
			size := int(binary.NativeEndian.Uint32(b))
			if size < headerSize+4 || size > len(b) {
				return errors.New("a message of an impossible length")
			}
			body := b[headerSize:size]
			if e := errnoOf(body); e != 0 && e != unix.ENOENT {
				failed = e
			}
			// The answer holds the message that it is to.
			if len(body) >= 4+headerSize && binary.NativeEndian.Uint16(body[4+6:])&unix.NLM_F_ACK != 0 {
				return failed
			}
			b = b[min(len(b), (size+3)&^3):]
		}
	}
}

// Leftover counts the picked sockets, in the calling thread's network namespace,
// that no process has and that wait for their end.
func Leftover(of Ends) (n int, err error) {
	d, err := openDiag()
	if err != nil {
		return 0, err
	}
	defer d.close()
	for _, family := range families {
		ids, err := d.leftovers(family, of)
		if err != nil {
			return n, err
		}
		n += len(ids)
	}
	return n, nil
}

var families = []byte{unix.AF_INET, unix.AF_INET6}

// Sweep ends those sockets, as `ss -K` does, so that their ports are free. It
// needs CONFIG_INET_DIAG_DESTROY in a kernel that ends sockets in TIME_WAIT so
// (older ones only end open ones), and CAP_NET_ADMIN over the namespace; else it
// returns an error that wraps EOPNOTSUPP or EPERM.
func Sweep(of Ends) error {
	d, err := openDiag()
	if err != nil {
		return err
	}
	defer d.close()
	for _, family := range families {
		ids, err := d.leftovers(family, of)
		if err == nil {
			err = d.destroy(family, ids)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Opens are how many TCP connections were begun and accepted in the calling
// thread's network namespace since it was made: ActiveOpens and PassiveOpens
// of RFC 4022.
func Opens() (active, passive uint64, err error) {
	// Not /proc/net, which is that of the process's first thread.
	b, err := os.ReadFile("/proc/thread-self/net/snmp")
	if err != nil {
		return 0, 0, fmt.Errorf("read TCP's counters: %w", err)
	}
	counters := parseSNMP(string(b), "Tcp")
	active, ok := counters["ActiveOpens"]
	passive, too := counters["PassiveOpens"]
	if !ok || !too {
		return 0, 0, errors.New("read TCP's counters: /proc/net/snmp has no ActiveOpens and PassiveOpens")
	}
	return active, passive, nil
}

// Arrivals are how many TCP connections were accepted and UDP datagrams received
// in the calling thread's network namespace since it was made.
func Arrivals() (uint64, error) {
	_, accepted, err := Opens()
	if err != nil {
		return 0, err
	}
	b, err := os.ReadFile("/proc/thread-self/net/snmp")
	if err != nil {
		return 0, fmt.Errorf("read UDP's counters: %w", err)
	}
	total := accepted + parseSNMP(string(b), "Udp")["InDatagrams"]
	b, err = os.ReadFile("/proc/thread-self/net/snmp6") // a name and a value in each line
	if err != nil {
		return total, nil // no IPv6 here
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "Udp6InDatagrams" {
			n, _ := strconv.ParseUint(f[1], 10, 64)
			total += n
		}
	}
	return total, nil
}

// parseSNMP reads a protocol's counters from the text of /proc/net/snmp, in
// which a line of names precedes a line of values. Those that are negative or
// no numbers are left out.
func parseSNMP(text, protocol string) map[string]uint64 {
	var names []string
	out := map[string]uint64{}
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, protocol+":")
		if !ok {
			continue
		}
		fields := strings.Fields(rest)
		if names == nil {
			names = fields
			continue
		}
		for i := range min(len(names), len(fields)) {
			if v, err := strconv.ParseUint(fields[i], 10, 64); err == nil {
				out[names[i]] = v
			}
		}
		break
	}
	return out
}
