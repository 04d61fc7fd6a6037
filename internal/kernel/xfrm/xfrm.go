// Package xfrm sets up IPsec between two machines and reads its counters, in the calling thread's
// network namespace. Call it inside netns.NS.Do.
package xfrm

import (
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Transform describes one direction of ESP in transport mode, with AES-GCM (RFC 4106) and a tag of
// 64 bits.
type Transform struct {
	Src, Dst netip.Addr
	SPI      uint32
	Reqid    int
	Key      []byte // 16 bytes of AES-128 and 4 of salt
}

const tagBits = 64

// Add adds the XFRM state of t. With it, the source of t can encrypt and the destination can
// decrypt.
func Add(t Transform) error {
	err := netlink.XfrmStateAdd(&netlink.XfrmState{
		Src:   t.Src.AsSlice(),
		Dst:   t.Dst.AsSlice(),
		Proto: netlink.XFRM_PROTO_ESP,
		Mode:  netlink.XFRM_MODE_TRANSPORT,
		Spi:   int(t.SPI), Reqid: t.Reqid,
		Aead: &netlink.XfrmStateAlgo{Name: "rfc4106(gcm(aes))", Key: t.Key, ICVLen: tagBits},
	})
	if err != nil {
		return fmt.Errorf("add xfrm state %s to %s: %w", t.Src, t.Dst, err)
	}
	return nil
}

// Encrypt adds an XFRM policy that sends UDP packets with the destination port and the mark through
// t.
func Encrypt(t Transform, port uint16, mark uint32) error {
	err := netlink.XfrmPolicyAdd(&netlink.XfrmPolicy{
		Src: host(t.Src), Dst: host(t.Dst), Proto: unix.IPPROTO_UDP, DstPort: int(port),
		Dir: netlink.XFRM_DIR_OUT, Mark: &netlink.XfrmMark{Value: mark, Mask: 0xffffffff},
		Tmpls: []netlink.XfrmPolicyTmpl{{Src: t.Src.AsSlice(), Dst: t.Dst.AsSlice(),
			Proto: netlink.XFRM_PROTO_ESP,
			Mode:  netlink.XFRM_MODE_TRANSPORT, Spi: int(t.SPI), Reqid: t.Reqid}},
	})
	if err != nil {
		return fmt.Errorf("add xfrm policy %s to %s: %w", t.Src, t.Dst, err)
	}
	return nil
}

// Count is the traffic of XFRM states.
type Count struct{ Bytes, Packets uint64 }

// Stats returns the count of t.
func Stats(t Transform) (Count, error) {
	s, err := netlink.XfrmStateGet(&netlink.XfrmState{Src: t.Src.AsSlice(), Dst: t.Dst.AsSlice(),
		Proto: netlink.XFRM_PROTO_ESP, Spi: int(t.SPI)})
	if err != nil {
		return Count{}, fmt.Errorf("read xfrm state %s to %s: %w", t.Src, t.Dst, err)
	}
	return Count{s.Statistics.Bytes, s.Statistics.Packets}, nil
}

// Unsupported reports whether err means that the kernel lacks IPsec, ESP or AES-GCM.
func Unsupported(err error) bool {
	return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPROTONOSUPPORT) ||
		errors.Is(err, unix.EOPNOTSUPP) ||
		errors.Is(err, unix.ENOENT)
}

func host(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}

// Between sums up all ESP states from one machine to another. It returns ErrNone without a state or
// without IPsec in the kernel.
func Between(src, dst netip.Addr) (sum Count, err error) {
	family := netlink.FAMILY_V4
	if src.Unmap().Is6() {
		family = netlink.FAMILY_V6
	}
	all, err := netlink.XfrmStateList(family)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return sum, fmt.Errorf("%w: list xfrm states: %w", ErrNone, err)
	}
	if err != nil {
		return sum, fmt.Errorf("list xfrm states: %w", err)
	}
	n := 0
	for _, s := range all {
		from, _ := netip.AddrFromSlice(s.Src)
		to, _ := netip.AddrFromSlice(s.Dst)
		if s.Proto == netlink.XFRM_PROTO_ESP && from.Unmap() == src.Unmap() &&
			to.Unmap() == dst.Unmap() {
			n++
			sum.Bytes += s.Statistics.Bytes
			sum.Packets += s.Statistics.Packets
		}
	}
	if n == 0 {
		return sum, fmt.Errorf("%w from %s to %s", ErrNone, src, dst)
	}
	return sum, nil
}

// ErrNone means that the kernel has no ESP state for the pair.
var ErrNone = errors.New("no ESP state")

// List describes the namespace's XFRM policies and states, without keys and counters. It returns
// nil if the kernel lacks IPsec. It needs CAP_NET_ADMIN.
func List() (policies, states []string, err error) {
	policies, err = listPolicies()
	if errors.Is(err, unix.EPROTONOSUPPORT) { // without CONFIG_XFRM_USER
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list xfrm policies: %w", err)
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		found, err := netlink.XfrmStateList(family)
		if err != nil {
			return nil, nil, fmt.Errorf("list xfrm states: %w", err)
		}
		for _, s := range found {
			states = append(states, fmt.Sprintf(
				"%s to %s %s mode %s spi %#x reqid %d", s.Src, s.Dst, s.Proto, s.Mode, s.Spi,
				s.Reqid))
		}
	}
	slices.Sort(policies)
	slices.Sort(states)
	return policies, states, nil
}

// listPolicies lists the policies. The library's function loses IPv6 networks.
func listPolicies() (out []string, err error) {
	msgs, err := nl.NewNetlinkRequest(nl.XFRM_MSG_GETPOLICY, unix.NLM_F_DUMP).Execute(
		unix.NETLINK_XFRM, 0)
	if err != nil {
		return nil, err
	}
	for _, m := range msgs {
		if len(m) < nl.SizeofXfrmUserpolicyInfo {
			continue
		}
		p := nl.DeserializeXfrmUserpolicyInfo(m)
		action := map[uint8]string{0: "allow", 1: "block"}[p.Action]
		sum := crc32.ChecksumIEEE(m[:nl.SizeofXfrmSelector])
		sum = crc32.Update(sum, crc32.IEEETable, m[nl.SizeofXfrmUserpolicyInfo:])
		out = append(out, fmt.Sprintf("%s from %s to %s %s priority %d (checksum %06x)",
			netlink.Dir(p.Dir),
			network(p.Sel.Family, p.Sel.Saddr, p.Sel.PrefixlenS),
			network(p.Sel.Family, p.Sel.Daddr, p.Sel.PrefixlenD),
			action, p.Priority, sum&0xffffff))
	}
	return out, nil
}

func network(family uint16, a nl.XfrmAddress, bits uint8) netip.Prefix {
	if family == unix.AF_INET {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte(a[:4])), int(bits))
	}
	return netip.PrefixFrom(netip.AddrFrom16(a), int(bits))
}
