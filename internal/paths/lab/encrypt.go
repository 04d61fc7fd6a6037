package lab

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xfrm"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// As in Docker Engine 28.5.2 (libnetwork/drivers/overlay/encryption.go), each machine marks the
// network's VXLAN packets, sends them through ESP in transport mode and drops those that arrive in
// clear text. Unlike Swarm, the lab uses one key for each run.
const (
	espMark = 0xd0c4e3 // the packets' mark, and the reqid of the XFRM states and policies
	espKey  = 16       // bytes: AES-128
)

// encrypt encrypts what the machines send each other, and gives the path the hops of that.
func (s *site) encrypt() error {
	key := make([]byte, espKey)
	if _, err := rand.Read(key); err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	var tag [4]byte
	if _, err := rand.Read(tag[:]); err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	toServer := transform(key, tag, s.b.addr.Addr(), s.a.addr.Addr())
	toClient := transform(key, tag, s.a.addr.Addr(), s.b.addr.Addr())
	for _, m := range []*hostMachine{s.a, s.b} {
		err := m.ns.Do(func() error {
			for _, t := range []xfrm.Transform{toServer, toClient} {
				if err := xfrm.Add(t); err != nil {
					return err
				}
				if t.Src != m.addr.Addr() {
					continue
				}
				if err := xfrm.Encrypt(t, vxlanPort, espMark); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	s.path.Facts["encryption"] = "ESP in transport mode, AES-128-GCM with a tag of 64 bits"
	s.GiveBoth(mode.HopESP, espHop(s.b, toServer, toClient), espHop(s.a, toServer, toClient))
	return nil
}

func transform(key []byte, tag [4]byte, src, dst netip.Addr) xfrm.Transform {
	h := fnv.New32a()
	from, to := src.As16(), dst.As16()
	for _, part := range [][]byte{from[:], tag[:], to[:]} {
		h.Write(part)
	}
	spi := h.Sum32()
	return xfrm.Transform{Src: src, Dst: dst, SPI: spi, Reqid: espMark,
		Key: binary.BigEndian.AppendUint32(append([]byte{}, key...), spi)}
}

func espHop(m *hostMachine, toServer, toClient xfrm.Transform) path.Hop {
	return path.Hop{Kind: mode.HopESP, Name: fmt.Sprintf(
		"spi 0x%08x⇄0x%08x", toServer.SPI, toClient.SPI), Where: m.name,
		Read: func() (out sample.Counters, err error) {
			err = m.ns.Do(func() error {
				f, err := xfrm.Stats(toServer)
				if err != nil {
					return err
				}
				b, err := xfrm.Stats(toClient)
				out = sample.Counters{ForwardBytes: f.Bytes, ForwardPackets: f.Packets,
					BackwardBytes: b.Bytes, BackwardPackets: b.Packets}
				return err
			})
			return out, err
		}}
}

func (d daemon) encryption() []nft.Chain {
	if !d.encrypted {
		return nil
	}
	ours := nft.VXLAN(vxlanPort, vxlanVNI)
	return []nft.Chain{
		{Table: "mangle", Name: "OUTPUT", Hook: nft.Output,
			Rules: []nft.Rule{rule(nft.Mark(espMark), ours)}},
		{Table: "filter", Name: "INPUT", Hook: nft.Input,
			Rules: []nft.Rule{rule(nft.Drop(), nft.ClearText(), ours)}},
	}
}

func tryESP() error {
	a, b := outer.nth(machineA).Addr(), outer.nth(machineB).Addr()
	err := xfrm.Add(transform(make([]byte, espKey), [4]byte{}, a, b))
	switch {
	case err == nil:
		return nil
	case !xfrm.Unsupported(err):
		return err
	}
	return &machine.UnsupportedError{
		Missing: "the kernel cannot encrypt with ESP and AES-GCM (CONFIG_XFRM_USER, CONFIG_INET_ESP, CONFIG_CRYPTO_GCM)",
		Remedy:  remedy.ModprobeOr("esp4", "gcm"),
		Err:     err,
	}
}
