package nft

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

// Read returns the rules that decide where IP packets go and whether they are accepted.
func Read() (firewall.Rules, error) {
	c, err := nftables.New()
	if err != nil {
		return firewall.Rules{}, fmt.Errorf("open nftables: %w", err)
	}
	chains, err := c.ListChains()
	if err != nil {
		return firewall.Rules{}, fmt.Errorf("list nftables chains: %w", err)
	}
	var out firewall.Rules
	sets := sets{conn: c}
	for _, ch := range chains {
		r, ok := readChain(ch)
		if !ok {
			continue
		}
		rules, err := listRules(ch)
		if err != nil {
			return out, fmt.Errorf("read rules of %s %s: %w", ch.Table.Name, ch.Name, err)
		}
		for _, x := range rules {
			r.Rules = append(r.Rules, readRule(x.exprs, ch.Table, &sets))
		}
		out.Chains = append(out.Chains, r)
	}
	return out, nil
}

var hooks = map[nftables.ChainHook]firewall.Hook{
	*nftables.ChainHookPrerouting: firewall.Prerouting, *nftables.ChainHookInput: firewall.Input,
	*nftables.ChainHookForward: firewall.Forward, *nftables.ChainHookOutput: firewall.Output,
	*nftables.ChainHookPostrouting: firewall.Postrouting,
}

func readChain(ch *nftables.Chain) (firewall.Chain, bool) {
	out := firewall.Chain{Table: ch.Table.Name, Name: ch.Name, Kind: firewall.Filter}
	switch ch.Table.Family {
	case nftables.TableFamilyIPv4:
		out.V4 = true
	case nftables.TableFamilyIPv6:
		out.V6 = true
	case nftables.TableFamilyINet:
		out.V4, out.V6 = true, true
	default:
		return out, false
	}
	if ch.Type == nftables.ChainTypeNAT {
		out.Kind = firewall.NAT
	}
	if ch.Hooknum != nil {
		out.Hook = hooks[*ch.Hooknum]
		out.Drop = ch.Policy != nil && *ch.Policy == nftables.ChainPolicyDrop
	}
	if ch.Priority != nil {
		out.Priority = int(*ch.Priority)
	}
	return out, true
}

type field int

const (
	unknown field = iota
	inName
	outName
	srcAddr
	dstAddr
	protocolOf
	dport
	srcType
	dstType
	nfproto
	mark
	inIndex
	outIndex
	ctState
	ctStatus
	ctDirection
	ctProtocol
	ctOrigSrc
	ctOrigDst
	ctOrigDport
	ctReplSrc
	ctReplDst
	ctReplSport
)

type reader struct {
	rule  firewall.Rule
	table *nftables.Table
	sets  *sets
	six   bool
	regs  map[uint32]field
	size  map[uint32]int
	mask  map[uint32][]byte
	data  map[uint32][]byte

	placed map[field]bool
	does   string // an action that is not understood
}

func readRule(exprs []any, table *nftables.Table, sets *sets) firewall.Rule {
	r := &reader{table: table, sets: sets, six: table.Family == nftables.TableFamilyIPv6,
		regs: map[uint32]field{}, size: map[uint32]int{}, mask: map[uint32][]byte{},
		data: map[uint32][]byte{}, placed: map[field]bool{}}
	for _, e := range exprs {
		if name, ok := e.(opaque); ok {
			r.opaque(string(name))
		} else if !r.load(e) && !r.match(e) && !r.verdict(e) {
			r.unread(strings.ToLower(fmt.Sprintf("%T", e)[len("*expr."):]))
		}
	}
	if r.does != "" {
		r.rule.Verdict, r.rule.Chain = firewall.Other, r.does
	}
	return r.rule
}

func (r *reader) unread(what string) {
	if r.rule.Unread == "" {
		r.rule.Unread = what
	}
}

func (r *reader) other(what string) { r.does = what }

// inert expressions do not affect where packets go; matches only match or load values. All others
// are actions.
var (
	inert = []string{"log", "last", "secmark", "cthelper", "cttimeout", "ctexpect",
		"flow_offload"}
	matches = []string{"limit", "quota", "connlimit", "dynset", "rt", "socket", "exthdr", "hash",
		"numgen", "osf", "xfrm", "tunnel", "inner", "byteorder",
		"meta", "payload", "cmp", "lookup", "bitwise", "range", "fib", "ct", "match"}
)

func (r *reader) opaque(name string) {
	switch {
	case slices.Contains(inert, name):
	case slices.Contains(matches, name):
		r.unread(name)
		clear(r.regs) // it may have loaded any of them
	default:
		r.other(name)
	}
}

func (r *reader) load(e any) bool {
	switch e := e.(type) {
	case *expr.Meta:
		if e.SourceRegister {
			r.rule.Marks = r.rule.Marks || e.Key == expr.MetaKeyMARK
			return true
		}
		r.put(e.Register, map[expr.MetaKey]field{
			expr.MetaKeyIIFNAME: inName, expr.MetaKeyOIFNAME: outName, expr.MetaKeyIIF: inIndex,
			expr.MetaKeyOIF: outIndex, expr.MetaKeyL4PROTO: protocolOf,
			expr.MetaKeyNFPROTO: nfproto, expr.MetaKeyMARK: mark}[e.Key])
	case *expr.Payload:
		if e.OperationType == expr.PayloadWrite {
			r.other("a changed packet")
			return true
		}
		r.put(e.DestRegister, r.payload(e))
		r.size[slot(e.DestRegister)] = int(e.Len)
	case *expr.Fib:
		f := unknown
		whole := e.ResultADDRTYPE && !e.FlagIIF && !e.FlagOIF && !e.FlagMARK && !e.FlagPRESENT
		if whole && e.FlagDADDR {
			f = dstType
		} else if whole && e.FlagSADDR {
			f = srcType
		}
		r.put(e.Register, f)
	case *ct:
		r.connection(e)
	case *expr.Bitwise:
		src, dst := slot(e.SourceRegister), slot(e.DestRegister)
		f, size := r.regs[src], r.size[src]
		if r.mask[src] != nil || len(e.Mask) == 0 || !allZero(e.Xor) {
			f = unknown
		}
		r.put(dst, f)
		r.size[dst], r.mask[dst] = size, e.Mask
	case *byteorder:
		f := r.regs[slot(e.from)]
		if f != mark && (kinds[f].size != 1 || r.mask[slot(e.from)] != nil) {
			f = unknown
		}
		r.put(e.to, f)
	case *expr.Immediate:
		r.put(e.Register, unknown)
		r.data[slot(e.Register)] = e.Data
	default:
		return false
	}
	return true
}

func (r *reader) put(reg uint32, f field) {
	r.regs[slot(reg)] = f
	delete(r.mask, slot(reg))
	delete(r.size, slot(reg))
	delete(r.data, slot(reg))
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

const (
	offsetProto = 9
	offsetSrc6  = 8
	offsetDst6  = 24
)

func (r *reader) payload(e *expr.Payload) field {
	switch {
	case e.Base == expr.PayloadBaseTransportHeader && e.Offset == offsetDport && e.Len == 2:
		return dport
	case e.Base != expr.PayloadBaseNetworkHeader:
		return unknown
	case e.Offset == offsetSrc6 && r.v6(e) || e.Offset == offsetSrc && !r.six && e.Len <= 4:
		return srcAddr
	case e.Offset == offsetDst6 && r.v6(e) || e.Offset == offsetDst && !r.six && e.Len <= 4:
		return dstAddr
	case e.Offset == offsetProto && !r.six && e.Len == 1:
		return protocolOf
	}
	return unknown
}

func (r *reader) v6(e *expr.Payload) bool { return r.six || e.Len > 4 }
