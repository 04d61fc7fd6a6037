package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// bit/s; 0: unknown
type modes struct {
	speed, most, partner uint64
	duplex               string
	autoneg              bool
}

const mega = 1_000_000

// linkModes reads the link modes by netlink (Linux 5.6). The library's function uses an ioctl,
// knows fewer modes, and prints unknown ones to standard output.
func linkModes(name string) (m modes, err error) {
	family, err := netlink.GenlFamilyGet(unix.ETHTOOL_GENL_NAME)
	if err != nil {
		return m, fmt.Errorf("find generic netlink family ethtool: %w", err)
	}
	req := nl.NewNetlinkRequest(int(family.ID), 0)
	req.AddData(&nl.Genlmsg{Command: unix.ETHTOOL_MSG_LINKMODES_GET, Version: 1})
	header := nl.NewRtAttr(unix.ETHTOOL_A_LINKMODES_HEADER|unix.NLA_F_NESTED, nil)
	header.AddRtAttr(unix.ETHTOOL_A_HEADER_DEV_NAME, nl.ZeroTerminated(name))
	req.AddData(header)
	answers, err := req.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return m, fmt.Errorf("read the link modes of %s: %w", name, err)
	}
	if len(answers) != 1 || len(answers[0]) < nl.SizeofGenlmsg {
		return m, fmt.Errorf("read the link modes of %s: %w", name, errors.New("no answer"))
	}
	if m, err = parseModes(answers[0][nl.SizeofGenlmsg:]); err != nil {
		return m, fmt.Errorf("read the link modes of %s: %w", name, err)
	}
	return m, nil
}

func parseModes(b []byte) (m modes, err error) {
	err = eachAttr(b, func(kind uint16, v []byte) error {
		switch {
		case kind == unix.ETHTOOL_A_LINKMODES_SPEED && len(v) == 4:
			m.speed = speedOf(int64(int32(binary.NativeEndian.Uint32(v))))
		case kind == unix.ETHTOOL_A_LINKMODES_DUPLEX && len(v) == 1:
			m.duplex = duplexes[v[0]]
		case kind == unix.ETHTOOL_A_LINKMODES_AUTONEG && len(v) == 1:
			m.autoneg = v[0] != 0
		case kind == unix.ETHTOOL_A_LINKMODES_OURS:
			m.most, err = fastest(v)
			return err
		case kind == unix.ETHTOOL_A_LINKMODES_PEER:
			m.partner, err = fastest(v)
			return err
		}
		return nil
	})
	return m, err
}

// linux/ethtool.h; 255 is unknown
var duplexes = map[byte]string{0: sample.HalfDuplex, 1: sample.FullDuplex}

func speedOf(mbit int64) uint64 {
	if mbit < 1 || mbit > sample.MaxSpeed/mega {
		return 0
	}
	return uint64(mbit) * mega
}

func fastest(set []byte) (most uint64, err error) {
	err = eachAttr(set, func(kind uint16, bits []byte) error {
		if kind != unix.ETHTOOL_A_BITSET_BITS {
			return nil
		}
		return eachAttr(bits, func(_ uint16, bit []byte) error {
			return eachAttr(bit, func(kind uint16, v []byte) error {
				if kind == unix.ETHTOOL_A_BITSET_BIT_NAME {
					most = max(most, speedOfMode(nl.BytesToString(v)))
				}
				return nil
			})
		})
	})
	return most, err
}

func speedOfMode(name string) uint64 {
	digits, _, ok := strings.Cut(name, "base")
	mbit, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil {
		return 0
	}
	return speedOf(mbit)
}

func eachAttr(b []byte, f func(kind uint16, v []byte) error) error {
	attrs, err := attributesOf(b, 0) // nl's parser panics if the last one is not padded
	if err != nil {
		return err
	}
	for _, a := range attrs {
		if err := f(typeOf(a), a.Data); err != nil {
			return err
		}
	}
	return nil
}

func (k kernelFiles) modes(name string) (m modes) {
	if n, err := strconv.ParseInt(k.text(name, "speed"), 10, 64); err == nil {
		m.speed = speedOf(n)
	}
	if d := k.text(name, "duplex"); d == sample.FullDuplex || d == sample.HalfDuplex {
		m.duplex = d
	}
	return m
}
