package nft

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/google/nftables/xt"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
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
	conn, err := raw.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	defer func() { _ = conn.Close() }()
	chain, err := encode(attributes{{unix.NFTA_RULE_TABLE, append([]byte(ch.Table.Name), 0)},
		{unix.NFTA_RULE_CHAIN, append([]byte(ch.Name), 0)}})
	if err != nil {
		return nil, err
	}
	family := byte(ch.Table.Family)
	replies, err := dump(conn, unix.NFT_MSG_GETRULE,
		append([]byte{family, unix.NFNETLINK_V0, 0, 0}, chain...))
	if err != nil {
		return nil, err
	}
	out := make([]rawRule, len(replies))
	for i, m := range replies {
		if out[i], err = decodeRule(family, m.Data[headerSize:]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func decodeRule(family byte, data []byte) (rawRule, error) {
	a, err := decode(data)
	r := rawRule{user: a.get(unix.NFTA_RULE_USERDATA)}
	if h := a.get(unix.NFTA_RULE_HANDLE); len(h) == 8 {
		r.handle = binary.BigEndian.Uint64(h)
	}
	list, _ := decode(a.get(unix.NFTA_RULE_EXPRESSIONS))
	for _, x := range list {
		e, _ := decode(x.data)
		r.exprs = append(r.exprs, decodeExpr(family, e.text(unix.NFTA_EXPR_NAME),
			e.get(unix.NFTA_EXPR_DATA)))
	}
	return r, err
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

func decodeExpr(family byte, name string, data []byte) any {
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
