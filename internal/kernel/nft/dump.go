package nft

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/google/nftables/xt"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// The library leaves out unknown expressions, and fails at those for one direction of a connection.

type rawRule struct {
	handle uint64
	exprs  []any
	user   []byte
}

// comment returns the comment that nft or iptables gave the rule, or "".
func (r rawRule) comment() string {
	if s, ok := userdata.GetString(r.user, userdata.TypeComment); ok {
		return s
	}
	for _, e := range r.exprs {
		if m, ok := e.(*expr.Match); ok {
			if c, ok := m.Info.(*xt.Comment); ok {
				return text([]byte(*c))
			}
		}
	}
	return ""
}

type opaque string

func listRules(ch *nftables.Chain) ([]rawRule, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	defer func() { _ = conn.Close() }()
	attrs, err := netlink.MarshalAttributes([]netlink.Attribute{
		{Type: unix.NFTA_RULE_TABLE, Data: append([]byte(ch.Table.Name), 0)},
		{Type: unix.NFTA_RULE_CHAIN, Data: append([]byte(ch.Name), 0)}})
	if err != nil {
		return nil, err
	}
	header := []byte{byte(ch.Table.Family), unix.NFNETLINK_V0, 0, 0} // struct nfgenmsg
	replies, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETRULE,
			Flags: netlink.Request | netlink.Dump},
		Data: append(header, attrs...)})
	if err != nil {
		return nil, err
	}
	var out []rawRule
	for _, m := range replies {
		if len(m.Data) < len(header) {
			continue
		}
		r, err := decodeRule(byte(ch.Table.Family), m.Data[len(header):])
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func decodeRule(family byte, data []byte) (rawRule, error) {
	var r rawRule
	ad, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return r, err
	}
	ad.ByteOrder = binary.BigEndian
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_RULE_HANDLE:
			r.handle = ad.Uint64()
		case unix.NFTA_RULE_USERDATA:
			r.user = ad.Bytes()
		case unix.NFTA_RULE_EXPRESSIONS:
			ad.Nested(func(list *netlink.AttributeDecoder) error {
				for list.Next() {
					list.Nested(func(one *netlink.AttributeDecoder) error {
						r.exprs = append(r.exprs, decodeExpr(family, one))
						return nil
					})
				}
				return nil
			})
		}
	}
	return r, ad.Err()
}

var decoded = map[string]func() expr.Any{
	"meta": func() expr.Any { return &expr.Meta{} }, "cmp": func() expr.Any { return &expr.Cmp{} },
	"payload":   func() expr.Any { return &expr.Payload{} },
	"lookup":    func() expr.Any { return &expr.Lookup{} },
	"immediate": func() expr.Any { return &expr.Immediate{} },
	"bitwise":   func() expr.Any { return &expr.Bitwise{} },
	"counter":   func() expr.Any { return &expr.Counter{} },
	"redir":     func() expr.Any { return &expr.Redir{} },
	"nat":       func() expr.Any { return &expr.NAT{} },
	"match":     func() expr.Any { return &expr.Match{} },
	"target":    func() expr.Any { return &expr.Target{} },
	"reject":    func() expr.Any { return &expr.Reject{} },
	"masq":      func() expr.Any { return &expr.Masq{} },
	"fib":       func() expr.Any { return &expr.Fib{} },
}

func decodeExpr(family byte, ad *netlink.AttributeDecoder) any {
	var name string
	var data []byte
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_EXPR_NAME:
			name = ad.String()
		case unix.NFTA_EXPR_DATA:
			data = ad.Bytes()
		}
	}
	fresh := decoded[name]
	if fresh == nil {
		return opaque(name)
	}
	e := fresh()
	if expr.Unmarshal(family, data, e) != nil {
		return opaque(name)
	}
	if x, ok := e.(*expr.Immediate); ok && x.Register == unix.NFT_REG_VERDICT {
		v := &expr.Verdict{}
		if expr.Unmarshal(family, data, v) != nil {
			return opaque("verdict")
		}
		return v
	}
	return e
}
