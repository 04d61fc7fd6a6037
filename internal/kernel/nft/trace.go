package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

// Tracer follows packets through the nf_tables rules of a namespace.
type Tracer struct {
	fd      int
	control *transactor
	last    map[uint32]Packet // by ID, which is the same at all hooks
	buffer  []byte            // of Read
}

// Event records that a packet matched a rule or reached the end of a chain.
type Event struct {
	Packet
	Table   string // "ip filter"
	Chain   string
	Handle  uint64 // of the rule; 0: the chain's end
	Verdict string // "accept", "drop", "jump", "goto", "continue", "return" or "queue"
	Policy  bool   // the verdict is the chain's policy
	// Delivered means that the packet is about to reach the rules for what the namespace itself
	// receives. Table and Chain are not the user's.
	Delivered bool
	// Routing means that the packet is about to be routed, behind the rules that may redirect it.
	// Table and Chain are not the user's.
	Routing bool
}

// Packet is a packet at one of the kernel's hooks.
type Packet struct {
	Protocol uint8
	Src, Dst netip.AddrPort // zero unless IP; port 0 unless TCP or UDP
	In       int            // the index of a device, or 0
}

// ErrLost means that the kernel dropped events because they were not read in time.
var ErrLost = errors.New("trace events were lost")

// linux/netfilter.h
const (
	nfDrop   = 0
	nfAccept = 1
	nfQueue  = 3
)

const (
	traceTable    = "toll-trace"
	traceInput    = "input"   // has no rule: the event shows a packet that NAT has rewritten
	traceRouting  = "routing" // likewise
	traceGroup    = 9         // NFNLGRP_NFTRACE
	tracePriority = -500      // before defragmentation and raw tables
	traceBuffer   = 8 << 20
)

// NewTracer starts to trace all packets of the calling thread's namespace, to which it adds rules.
// Any thread may call the methods, one at a time. The caller closes the Tracer.
func NewTracer() (*Tracer, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK,
		unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("trace packets: %w", err)
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, traceBuffer) != nil {
		// up to net.core.rmem_max
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, traceBuffer)
	}
	t := &Tracer{fd: fd, last: map[uint32]Packet{}}
	err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, traceGroup)
	}
	if err == nil {
		t.control, err = newTransactor()
	}
	if err == nil {
		err = t.rules()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("trace packets: %w", err), t.Close())
	}
	return t, nil
}

// Close removes the rules.
func (t *Tracer) Close() error {
	if t.control == nil {
		return unix.Close(t.fd)
	}
	_, err := t.control.send([]part{tracePart(unix.NFT_MSG_DELTABLE)})
	return errors.Join(err, unix.Close(t.control.fd), unix.Close(t.fd))
}

func tracePart(kind uint16, attrs ...attribute) part {
	// In all messages, attribute 1 is the table's name.
	return part{kind: kind, family: unix.NFPROTO_INET,
		attrs: append(attributes{{1, []byte(traceTable + "\x00")}}, attrs...)}
}

func (t *Tracer) rules() error {
	number := func(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	var failed error
	nest := func(list ...attribute) []byte {
		b, err := encode(list)
		failed = errors.Join(failed, err)
		return b
	}
	named := func(name string, data []byte) attribute {
		return attribute{unix.NFTA_LIST_ELEM, nest(
			attribute{unix.NFTA_EXPR_NAME, []byte(name + "\x00")},
			attribute{unix.NFTA_EXPR_DATA, data})}
	}
	exprs := nest(
		named("immediate", nest(attribute{unix.NFTA_IMMEDIATE_DREG, number(unix.NFT_REG_1)},
			attribute{unix.NFTA_IMMEDIATE_DATA,
				nest(attribute{unix.NFTA_DATA_VALUE, []byte{1, 0, 0, 0}})})),
		named("meta", nest(attribute{unix.NFTA_META_KEY, number(unix.NFT_META_NFTRACE)},
			attribute{unix.NFTA_META_SREG, number(unix.NFT_REG_1)})))
	parts := []part{tracePart(unix.NFT_MSG_NEWTABLE)}
	for name, at := range map[string]struct{ hook, priority int32 }{
		"prerouting": {unix.NF_INET_PRE_ROUTING, tracePriority},
		traceRouting: {unix.NF_INET_PRE_ROUTING, math.MaxInt32},
		"output":     {unix.NF_INET_LOCAL_OUT, tracePriority},
		traceInput:   {unix.NF_INET_LOCAL_IN, tracePriority},
	} {
		chain := []byte(name + "\x00")
		parts = append(parts, tracePart(unix.NFT_MSG_NEWCHAIN,
			attribute{unix.NFTA_CHAIN_NAME, chain},
			attribute{unix.NFTA_CHAIN_TYPE, []byte("filter\x00")},
			attribute{unix.NFTA_CHAIN_HOOK, nest(
				attribute{unix.NFTA_HOOK_HOOKNUM, number(at.hook)},
				attribute{unix.NFTA_HOOK_PRIORITY, number(at.priority)})}))
		if name != traceInput && name != traceRouting {
			parts = append(parts, tracePart(unix.NFT_MSG_NEWRULE,
				attribute{unix.NFTA_RULE_CHAIN, chain},
				attribute{unix.NFTA_RULE_EXPRESSIONS, exprs}))
		}
	}
	if failed != nil {
		return failed
	}
	refused, err := t.control.send(parts)
	for _, why := range refused {
		err = errors.Join(err, why)
	}
	return err
}

// Read returns the events since the last call, without waiting. With ErrLost, it returns those that
// were not lost.
func (t *Tracer) Read() (out []Event, err error) {
	if t.buffer == nil {
		t.buffer = make([]byte, 64<<10)
	}
	var lost error
	for {
		n, _, err := unix.Recvfrom(t.fd, t.buffer, 0)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return out, lost
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOBUFS):
			lost = fmt.Errorf("trace packets: %w", ErrLost)
			continue
		case err != nil:
			return out, fmt.Errorf("trace packets: %w", err)
		}
		messages, err := syscall.ParseNetlinkMessage(t.buffer[:n])
		if err != nil {
			return out, fmt.Errorf("trace packets: %w", err)
		}
		for _, m := range messages {
			if m.Header.Type != unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_TRACE {
				continue
			}
			if e, ok := t.event(m.Data); ok {
				out = append(out, e)
			}
		}
	}
}

// event parses a trace message. ok is false for the tracer's own rules.
func (t *Tracer) event(data []byte) (e Event, ok bool) {
	if len(data) < headerSize {
		return e, false
	}
	a, err := decode(data[headerSize:])
	if err != nil {
		return e, false
	}
	table := a.text(unix.NFTA_TRACE_TABLE)
	e = Event{Table: familyName(data[0]) + " " + table, Chain: a.text(unix.NFTA_TRACE_CHAIN)}
	if h := a.get(unix.NFTA_TRACE_RULE_HANDLE); len(h) == 8 {
		e.Handle = binary.BigEndian.Uint64(h)
	}
	id := a.number(unix.NFTA_TRACE_ID)
	// The first event of each hook has the packet.
	if header := a.get(unix.NFTA_TRACE_NETWORK_HEADER); header != nil {
		p := packet(header, a.get(unix.NFTA_TRACE_TRANSPORT_HEADER))
		p.In = int(a.number(unix.NFTA_TRACE_IIF))
		t.last[id] = p
	}
	e.Packet = t.last[id]
	verdict, _ := decode(a.get(unix.NFTA_TRACE_VERDICT))
	code := int32(verdict.number(unix.NFTA_VERDICT_CODE))
	if b := a.get(unix.NFTA_TRACE_POLICY); len(b) == 4 {
		e.Policy, code = true, int32(binary.BigEndian.Uint32(b))
	}
	const verdictBits = 0xff // NF_VERDICT_MASK: a queue has its number above
	if code >= 0 {
		code &= verdictBits
	}
	e.Verdict = map[int32]string{nfDrop: "drop", nfAccept: "accept",
		nfQueue: "queue", unix.NFT_CONTINUE: "continue", unix.NFT_BREAK: "continue",
		unix.NFT_JUMP: "jump", unix.NFT_GOTO: "goto", unix.NFT_RETURN: "return"}[code]
	e.Delivered = table == traceTable && e.Chain == traceInput && e.Policy
	e.Routing = table == traceTable && e.Chain == traceRouting && e.Policy
	return e, table != traceTable || e.Delivered || e.Routing
}

// packet reads a packet's headers. The kernel sends at most 40 and 20 bytes of them.
func packet(network, transport []byte) (p Packet) {
	var src, dst netip.Addr
	switch {
	case len(network) >= 20 && network[0]>>4 == 4:
		p.Protocol = network[offsetProto]
		src, _ = netip.AddrFromSlice(network[offsetSrc : offsetSrc+4])
		dst, _ = netip.AddrFromSlice(network[offsetDst : offsetDst+4])
	case len(network) >= 40 && network[0]>>4 == 6:
		p.Protocol = network[6]
		src, _ = netip.AddrFromSlice(network[offsetSrc6 : offsetSrc6+16])
		dst, _ = netip.AddrFromSlice(network[offsetDst6 : offsetDst6+16])
	default:
		return p
	}
	var sport, dport uint16
	if (p.Protocol == unix.IPPROTO_TCP || p.Protocol == unix.IPPROTO_UDP) && len(transport) >= 4 {
		sport = binary.BigEndian.Uint16(transport[offsetSport:])
		dport = binary.BigEndian.Uint16(transport[offsetDport:])
	}
	p.Src, p.Dst = netip.AddrPortFrom(src, sport), netip.AddrPortFrom(dst, dport)
	return p
}

// Place is a rule's place in a namespace.
type Place struct {
	Table  string // "ip filter"
	Chain  string
	Number int // in the chain, from 1
}

// Placed is a rule in its chain.
type Placed struct {
	Number   int  // in the chain, from 1
	Rewrites bool // it changes destinations
}

// Placements returns the rules of a chain of the calling thread's namespace by their handles, as an
// Event has them. The table's name is like "ip filter".
func Placements(table, chain string) (map[uint64]Placed, error) {
	c, err := raw.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	defer func() { _ = c.Close() }()
	prefix, name, _ := strings.Cut(table, " ")
	family := byte(unix.AF_UNSPEC) // of which the kernel lists only the first table with that name
	for number, text := range familyNames {
		if text == prefix {
			family = number
		}
	}
	of, err := encode(attributes{{unix.NFTA_RULE_TABLE, append([]byte(name), 0)},
		{unix.NFTA_RULE_CHAIN, append([]byte(chain), 0)}})
	if err != nil {
		return nil, err
	}
	found, err := dump(c, unix.NFT_MSG_GETRULE,
		append([]byte{family, unix.NFNETLINK_V0, 0, 0}, of...))
	if err != nil {
		return nil, fmt.Errorf("list nftables rules: %w", err)
	}
	out := map[uint64]Placed{}
	for _, m := range found {
		a, err := decode(m.Data[headerSize:])
		if err != nil {
			return nil, fmt.Errorf("list nftables rules: %w", err)
		}
		h := a.get(unix.NFTA_RULE_HANDLE)
		if familyName(m.Data[0])+" "+a.text(unix.NFTA_RULE_TABLE) == table &&
			a.text(unix.NFTA_RULE_CHAIN) == chain && len(h) == 8 {
			out[binary.BigEndian.Uint64(h)] = Placed{len(out) + 1,
				slices.ContainsFunc(expressions(a), expression.rewrites)}
		}
	}
	return out, nil
}

// rewrites reports whether the expression changes packets' destinations.
func (e expression) rewrites() bool {
	return e.name == "redir" || slices.Contains(xtables.Redirecting, e.xt()) ||
		e.name == "nat" && e.attrs.number(unix.NFTA_NAT_TYPE) == unix.NFT_NAT_DNAT
}
