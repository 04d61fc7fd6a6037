package collect

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// controlSocket returns the path of the socket by which pesto(1) changes a pasta's ports, or "".
// Other sockets of passt are for a virtual machine, which a connection would replace.
func controlSocket(args []string) string {
	for i, a := range args {
		name, value, joined := strings.Cut(a, "=")
		switch {
		case name == "--conf-path" && joined:
			return value
		case (a == "-c" || a == "--conf-path") && i+1 < len(args):
			return args[i+1]
		case len(a) > 2 && strings.HasPrefix(a, "-c"):
			return a[2:]
		}
	}
	return ""
}

// askPasta reads the ports from the control socket of pasta, which may have got others than its
// arguments say.
func (r *relay) askPasta(at string, until time.Time) {
	r.all = false
	if !slices.Contains(listensAt(r.PID), at) {
		return
	}
	_ = converseWith(r.PID, at, until, r.listened, func(conn *net.UnixConn) error {
		all, err := pestoForwards(bufio.NewReader(io.LimitReader(conn, relayAnswer)))
		if err == nil {
			r.forwards, r.all = all, true
		}
		return err
	})
}

// listened reports whether the peer is the relay: it listened before it became a daemon.
func (r *relay) listened(peer *unix.Ucred) bool {
	return int(peer.Pid) == r.PID || peer.Uid == r.uid
}

// What pasta writes to each client of its control socket, in version 2 of 2026_10_02. All numbers
// are big-endian.
const (
	pestoMagic   = "basil:s\x00"
	pestoVersion = 2
	pestoHost    = "HOST" // the ports of the machine; others are of the namespace
	pestoName    = 1 << 10
	pestoRules   = 1 << 14
)

type pestoHead struct {
	Magic        [8]byte
	Version      uint32
	Name, IfName uint32 // lengths of names of lists and of devices
}

type pestoRule struct {
	first, last, to uint16
	proto           uint8
	host            netip.Addr // invalid: any
}

// pestoForwards parses the lists of rules, to at most maxForwards ports.
func pestoForwards(in *bufio.Reader) (out []forward, err error) {
	var head pestoHead
	if err := binary.Read(in, binary.BigEndian, &head); err != nil {
		return nil, err
	}
	if string(head.Magic[:]) != pestoMagic || head.Version != pestoVersion ||
		head.Name > pestoName || head.IfName > pestoName {
		return nil, fmt.Errorf("a control socket of pasta writes %v", head)
	}
	for {
		if id, err := in.ReadByte(); err != nil || id == 0 {
			return out, err
		}
		name := make([]byte, head.Name)
		var n struct{ Features, Rules uint32 }
		if _, err := io.ReadFull(in, name); err != nil {
			return nil, err
		}
		if err := binary.Read(in, binary.BigEndian, &n); err != nil {
			return nil, err
		}
		if n.Rules > pestoRules {
			return nil, fmt.Errorf("a pasta has %d rules", n.Rules)
		}
		name, _, _ = bytes.Cut(name, []byte{0})
		for range n.Rules {
			rule, err := readPestoRule(in, int(head.IfName))
			if err != nil {
				return nil, err
			}
			if string(name) != pestoHost {
				continue
			}
			if out, err = rule.forwards(out); err != nil {
				return nil, err
			}
		}
	}
}

func readPestoRule(in io.Reader, ifName int) (r pestoRule, err error) {
	const addr = 16
	b := make([]byte, 2*addr+ifName+8)
	if _, err := io.ReadFull(in, b); err != nil {
		return r, err
	}
	if a := netip.AddrFrom16([addr]byte(b)).Unmap(); !a.IsUnspecified() {
		r.host = a
	}
	b = b[2*addr+ifName:] // the address to dial, and the device
	r.first, r.last = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	r.to, r.proto = binary.BigEndian.Uint16(b[4:]), b[6]
	return r, nil
}

var errTooManyPorts = errors.New("a pasta has too many ports")

func (r pestoRule) forwards(out []forward) ([]forward, error) {
	proto := map[uint8]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp"}[r.proto]
	if proto == "" || r.first == 0 || r.last < r.first {
		return nil, fmt.Errorf("a pasta has a rule %+v", r)
	}
	for n := range r.last - r.first + 1 {
		if len(out) >= maxForwards {
			return nil, errTooManyPorts
		}
		out = append(out, forward{proto, netip.AddrPortFrom(r.host, r.first+n), r.to + n})
	}
	return out, nil
}
