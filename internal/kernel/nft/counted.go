package nft

import (
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/bridgetoll/bridgetoll/internal/kernel/firewall"
)

// Counted is a rule of another program with its counter.
type Counted struct {
	Chain   string
	Handle  uint64 // within the table
	Rule    firewall.Rule
	Counts  bool
	Packets uint64
	Comment string
}

// ReadTable reads the rules of a table, or none if it does not exist.
func ReadTable(f Family, name string) ([]Counted, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	chains, err := c.ListChainsOfTableFamily(f.table())
	if err != nil {
		return nil, fmt.Errorf("list nftables chains: %w", err)
	}
	var out []Counted
	for _, ch := range chains {
		if ch.Table.Name != name {
			continue
		}
		rules, err := readCounted(ch)
		if err != nil {
			return nil, err
		}
		out = append(out, rules...)
	}
	return out, nil
}

// ReadChain reads the rules of one of a table's chains.
func ReadChain(f Family, table, name string) ([]Counted, error) {
	t := &nftables.Table{Name: table, Family: f.table()}
	return readCounted(&nftables.Chain{Name: name, Table: t})
}

func readCounted(ch *nftables.Chain) (out []Counted, err error) {
	rules, err := listRules(ch)
	if err != nil {
		return nil, fmt.Errorf("read rules of %s %s: %w", ch.Table.Name, ch.Name, err)
	}
	for _, x := range rules {
		r := Counted{Chain: ch.Name, Handle: x.handle, Rule: readRule(x.exprs, ch.Table.Family)}
		r.Packets, r.Counts = counterOf(x.exprs)
		r.Comment = x.comment()
		out = append(out, r)
	}
	return out, nil
}

func counterOf(exprs []any) (packets uint64, ok bool) {
	for _, e := range exprs {
		if n, ok := e.(*expr.Counter); ok {
			return n.Packets, true
		}
	}
	return 0, false
}
