package sample

import (
	"errors"
	"fmt"
)

// Card is a network card as its kernel reports it. Unknown fields are zero.
type Card struct {
	Name  string `json:"name"`
	Where string `json:"where"` // "this machine", "peer b", "node b"
	// Under is the bond, bridge or VLAN above the card.
	Under    string `json:"under,omitempty"`
	Driver   string `json:"driver,omitempty"`
	Version  string `json:"driver_version,omitempty"`
	Firmware string `json:"firmware,omitempty"`
	Bus      string `json:"bus,omitempty"` // "0000:03:00.0"
	// Device means that the card is not virtual.
	Device bool `json:"device,omitempty"`
	NUMA   *int `json:"numa_node,omitempty"`
	MTU    int  `json:"mtu,omitempty"` // bytes
	// Speed is the link's current speed, MaxSpeed that of the card's fastest mode, and PartnerSpeed
	// the fastest that the link partner offers.
	Speed        uint64 `json:"speed_bit_per_s,omitempty"`
	MaxSpeed     uint64 `json:"max_speed_bit_per_s,omitempty"`
	PartnerSpeed uint64 `json:"partner_speed_bit_per_s,omitempty"`
	Duplex       string `json:"duplex,omitempty"` // full or half
	Autoneg      bool   `json:"autonegotiation,omitempty"`
	// Offloads has the short names of `ethtool -k`.
	Offloads map[string]bool `json:"offloads,omitempty"`
	Sizes    *OffloadSizes   `json:"sizes,omitempty"`
	Queues   *CardQueues     `json:"queues,omitempty"`
	// Interrupts may include those of others that share an interrupt.
	Interrupts []Interrupt `json:"interrupts,omitempty"`
	// RPS and XPS are sysfs's CPU masks by queue. Queues without a mask are left out.
	RPS map[string]string `json:"rps,omitempty"`
	XPS map[string]string `json:"xps,omitempty"`
}

// OffloadSizes are gso_max_size, gro_max_size and their IPv4 variants, in bytes.
type OffloadSizes struct {
	GSO  uint32 `json:"gso_max,omitempty"`
	GRO  uint32 `json:"gro_max,omitempty"`
	GSO4 uint32 `json:"gso_ipv4_max,omitempty"`
	GRO4 uint32 `json:"gro_ipv4_max,omitempty"`
}

// CardQueues are current and maximum numbers of queues (`ethtool -l`) and ring descriptors
// (`ethtool -g`).
type CardQueues struct {
	Combined     int `json:"combined,omitempty"`
	Receive      int `json:"receive,omitempty"`
	Send         int `json:"send,omitempty"`
	MostCombined int `json:"most_combined,omitempty"`
	MostReceive  int `json:"most_receive,omitempty"`
	MostSend     int `json:"most_send,omitempty"`
	ReceiveRing  int `json:"receive_ring,omitempty"`
	SendRing     int `json:"send_ring,omitempty"`
	MostRxRing   int `json:"most_receive_ring,omitempty"`
	MostTxRing   int `json:"most_send_ring,omitempty"`
}

// Interrupt is one of a card's interrupts.
type Interrupt struct {
	Number int    `json:"number"`
	Name   string `json:"name,omitempty"` // as in /proc/interrupts
	CPUs   string `json:"cpus,omitempty"` // "0-3,8"
}

// CardName identifies a card in a file.
type CardName struct {
	Name  string `json:"name"`
	Where string `json:"where"`
}

// ID returns the card's name and place.
func (c Card) ID() CardName { return CardName{c.Name, c.Where} }

const (
	FullDuplex = "full"
	HalfDuplex = "half"
)

const (
	MaxInterrupts = 256
	MaxSpeed      = 100_000_000_000_000 // bit/s
	maxCards      = 1000
)

func (e Environment) check() error {
	if len(e.Cards) > maxCards {
		return fmt.Errorf("%d network cards, at most %d are read", len(e.Cards), maxCards)
	}
	for _, c := range e.Cards {
		if max(c.Speed, c.MaxSpeed, c.PartnerSpeed) > MaxSpeed {
			return fmt.Errorf("card %s: an impossible speed", c.Name)
		}
		if len(c.Interrupts) > MaxInterrupts {
			return fmt.Errorf("card %s: %d interrupts", c.Name, len(c.Interrupts))
		}
	}
	return nil
}

func (p Path) check() error {
	if len(p.Cards) > maxCards {
		return errors.New("a path with too many network cards")
	}
	for _, l := range p.Links {
		if l.Rate > MaxSpeed {
			return fmt.Errorf("device %s: an impossible rate", l.Name)
		}
	}
	for _, s := range p.Steered {
		if err := s.check(); err != nil {
			return err
		}
	}
	return p.Evidence.check()
}

// Cards returns the cards of all nodes, at most maxCards. With more than fullNodes nodes it leaves
// out their details, because a header must fit in one line.
func (m *Mesh) Cards() (out []Card) {
	for _, n := range m.Nodes {
		for _, c := range n.Cards {
			if len(m.Nodes) > fullNodes {
				c.Offloads, c.Sizes, c.Queues = nil, nil, nil
				c.Interrupts, c.RPS, c.XPS = nil, nil, nil
			}
			if len(out) < maxCards {
				out = append(out, c)
			}
		}
	}
	return out
}

// CardsOf returns the cards that a path crosses, in the path's order.
func (h Header) CardsOf(p Path) []Card {
	var out []Card
	for _, name := range p.Cards {
		for _, c := range h.Environment.Cards {
			if c.ID() == name {
				out = append(out, c)
				break
			}
		}
	}
	return out
}
