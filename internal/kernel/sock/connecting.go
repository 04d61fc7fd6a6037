package sock

import (
	"bytes"
	"encoding/binary"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// linux/inet_diag.h, linux/sock_diag.h: attributes for BPF socket storage, of a request and of an
// answer, outermost first
const (
	askStorages, askMap         = 2, 1
	storages, storage, inMap    = 20, 1, 3
	storageAttributes, fdLength = 0x3fff, 4
)

// AbortConnecting ends the TCP connections that wait for the answer to their SYN and whose value in
// a BPF map of socket storage pick accepts. It returns their number.
//
// It needs CAP_NET_ADMIN and CAP_BPF. Without CONFIG_INET_DIAG_DESTROY the error wraps EOPNOTSUPP.
func AbortConnecting(mapFD int, pick func(value []byte) bool) (n int, err error) {
	for _, family := range families {
		ids, err := connecting(family, mapFD, pick)
		if err == nil && len(ids) > 0 {
			err = destroy(family, ids)
		}
		if err != nil {
			return n, err
		}
		n += len(ids)
	}
	return n, nil
}

func connecting(family byte, mapFD int, pick func(value []byte) bool) (ids [][]byte, err error) {
	fd := binary.NativeEndian.AppendUint32(make([]byte, 0, fdLength), uint32(mapFD))
	ask := nl.NewRtAttr(askStorages|unix.NLA_F_NESTED, nil)
	ask.AddRtAttr(askMap, fd)
	err = request{family: family, protocol: unix.IPPROTO_TCP, states: 1 << synSent, more: ask}.dump(
		func(m []byte) {
			if value, ok := stored(m[messageSize:]); ok && pick(value) {
				ids = append(ids, bytes.Clone(m[idOffset:idOffset+idSize]))
			}
		})
	return ids, err
}

func stored(attributes []byte) (value []byte, ok bool) {
	for _, kind := range []uint16{storages, storage, inMap} {
		if attributes, ok = attribute(attributes, kind); !ok {
			return nil, false
		}
	}
	return attributes, true
}

func attribute(b []byte, kind uint16) ([]byte, bool) {
	all, _ := nl.ParseRouteAttr(b)
	for _, a := range all {
		if a.Attr.Type&storageAttributes == kind {
			return a.Value, true
		}
	}
	return nil, false
}
