// Package nft writes nftables rule sets and reads their counters back, in the calling thread's
// network namespace. Call it inside netns.NS.Do, with CAP_NET_ADMIN over the namespace.
//
// The rules equal those that iptables-nft writes for the same commands, or that nft writes for
// those of Docker's own tables, so they cost packets as much as Docker's rules.
package nft

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"
)

// Family is the address family of a table.
type Family int

const (
	IPv4 Family = iota
	IPv6
)

func (f Family) table() nftables.TableFamily {
	if f == IPv6 {
		return nftables.TableFamilyIPv6
	}
	return nftables.TableFamilyIPv4
}

// Chain is a list of rules of one table.
type Chain struct {
	Family
	Table string // "nat", "filter", "mangle", "raw"
	Name  string
	Hook  Hook // zero: reached only by jumps
	// Like is the table of iptables whose chain at the hook has the same type and priority; "":
	// Table.
	Like  string
	Drop  bool // policy of a chain with a hook
	Rules []Rule
}

// Map is a named map from devices to chains of its table, for JumpByIn and JumpByOut.
type Map struct {
	Family
	Table string
	Name  string
	Jumps []Jumps
}

// Jumps is an element of a map.
type Jumps struct{ Device, Chain string }

// Hook is where the kernel calls a chain.
type Hook int

// The hooks have the priorities of iptables' chains.
const (
	noHook Hook = iota
	Prerouting
	Input
	Forward
	Output
	Postrouting
)

// Rule is a list of matches, a counter and a verdict, in iptables' order. A rule that jumps by a
// map has no counter.
type Rule struct {
	Match   []Match
	Verdict Verdict
	Tag     string // identifies the rule for Hits; optional
}

// Match is one condition of a rule.
type Match struct{ exprs []expr.Any }

// Verdict is what happens to a packet that a rule matches.
type Verdict struct {
	exprs  []expr.Any
	silent bool // without a counter
}

// batch is the number of commands in a transaction. A socket's receive buffer has space for the
// answers to a few hundred.
const batch = 64

// Apply writes the chains, and maps of their tables, in transactions of up to 64 commands. If one
// fails, the earlier ones stay.
func Apply(chains []Chain, maps ...Map) error {
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	w := &writer{conn: c, tables: map[tableID]*nftables.Table{}}
	made := make([]*nftables.Chain, len(chains))
	for i, ch := range chains {
		made[i] = c.AddChain(chain(ch, w.table(ch.Family, ch.Table)))
		w.next()
	}
	for _, m := range maps {
		w.add(m)
	}
	for i, ch := range chains {
		for _, r := range ch.Rules {
			var comment []byte
			if r.Tag != "" {
				comment = userdata.AppendString(nil, userdata.TypeComment, r.Tag)
			}
			c.AddRule(&nftables.Rule{Table: made[i].Table, Chain: made[i], Exprs: r.exprs(),
				UserData: comment})
			w.next()
		}
	}
	w.flush()
	return w.err
}

type tableID struct {
	Family
	name string
}

type writer struct {
	conn     *nftables.Conn
	tables   map[tableID]*nftables.Table
	commands int
	err      error // the first one; nothing is written after it
}

// next counts a command, and ends the transaction if it is full.
func (w *writer) next() {
	if w.commands++; w.commands%batch == 0 {
		w.flush()
	}
}

func (w *writer) flush() {
	if w.err != nil {
		return
	}
	if err := w.conn.Flush(); err != nil {
		w.err = fmt.Errorf("write nftables rules: %w", err)
	}
}

func (w *writer) table(f Family, name string) *nftables.Table {
	id := tableID{f, name}
	if w.tables[id] == nil {
		w.tables[id] = w.conn.AddTable(&nftables.Table{Name: name, Family: f.table()})
		w.next()
	}
	return w.tables[id]
}

func (w *writer) add(m Map) {
	set := &nftables.Set{Table: w.table(m.Family, m.Table), Name: m.Name, IsMap: true,
		KeyType: nftables.TypeIFName, KeyByteOrder: binaryutil.NativeEndian,
		DataType: nftables.TypeVerdict}
	var elements []nftables.SetElement
	for _, j := range m.Jumps {
		elements = append(elements, nftables.SetElement{Key: paddedName(j.Device),
			VerdictData: &expr.Verdict{Kind: expr.VerdictJump, Chain: j.Chain}})
	}
	if err := w.conn.AddSet(set, elements); err != nil && w.err == nil {
		w.err = fmt.Errorf("write nftables map %s: %w", m.Name, err)
	}
	w.next()
}

func chain(ch Chain, t *nftables.Table) *nftables.Chain {
	out := &nftables.Chain{Name: ch.Name, Table: t}
	if ch.Hook == noHook {
		return out
	}
	out.Type = nftables.ChainTypeFilter
	like := cmp.Or(ch.Like, ch.Table)
	switch {
	case like == "nat":
		out.Type = nftables.ChainTypeNAT
	case like == "mangle" && ch.Hook == Output:
		out.Type = nftables.ChainTypeRoute // a new mark may change the route
	}
	switch ch.Hook {
	case Prerouting:
		out.Hooknum, out.Priority = nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest
	case Input:
		out.Hooknum = nftables.ChainHookInput
	case Output:
		out.Hooknum, out.Priority = nftables.ChainHookOutput, nftables.ChainPriorityNATDest
	case Forward:
		out.Hooknum = nftables.ChainHookForward
	case Postrouting:
		out.Hooknum, out.Priority = nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource
	}
	switch like {
	case "filter":
		out.Priority = nftables.ChainPriorityFilter
	case "mangle":
		out.Priority = nftables.ChainPriorityMangle
	case "raw":
		out.Priority = nftables.ChainPriorityRaw
	}
	policy := nftables.ChainPolicyAccept
	if ch.Drop {
		policy = nftables.ChainPolicyDrop
	}
	out.Policy = &policy
	return out
}

func (r Rule) exprs() []expr.Any {
	var out []expr.Any
	for _, m := range r.Match {
		out = append(out, m.exprs...)
	}
	if !r.Verdict.silent {
		out = append(out, &expr.Counter{})
	}
	return append(out, r.Verdict.exprs...)
}

var errNoRule = errors.New("no such rule")

// Count is a rule's counter.
type Count struct{ Packets, Bytes uint64 }

// Hits returns the counter of the rule with the tag.
func Hits(f Family, table, chainName, tag string) (Count, error) {
	c, err := nftables.New()
	if err != nil {
		return Count{}, fmt.Errorf("open nftables: %w", err)
	}
	t := &nftables.Table{Name: table, Family: f.table()}
	rules, err := c.GetRules(t, &nftables.Chain{Name: chainName, Table: t})
	if err != nil {
		return Count{}, fmt.Errorf("read rules of %s %s: %w", table, chainName, err)
	}
	for _, r := range rules {
		if s, ok := userdata.GetString(r.UserData, userdata.TypeComment); !ok || s != tag {
			continue
		}
		for _, e := range r.Exprs {
			if n, ok := e.(*expr.Counter); ok {
				return Count{n.Packets, n.Bytes}, nil
			}
		}
	}
	return Count{}, fmt.Errorf("read counter of %s %s %q: %w", table, chainName, tag, errNoRule)
}

// Supported returns nil if the kernel and the caller's privileges allow every kind of rule. It
// writes such rules to the namespace, which the caller discards.
func Supported(f Family) error {
	const probe = "toll-probe"
	lan := netip.MustParsePrefix("192.0.2.0/24")
	if f == IPv6 {
		lan = netip.MustParsePrefix("2001:db8::/64")
	}
	err := Apply([]Chain{{Family: f, Table: probe, Name: "probe", Rules: []Rule{
		{Match: []Match{DstLocal(), TCPDport(1)}, Verdict: Return()},
		{Match: []Match{Src(lan), Established()}, Verdict: Accept()},
	}}})
	if err != nil {
		return err
	}
	return Apply([]Chain{
		{Family: f, Table: "nat", Name: "PREROUTING", Hook: Prerouting, Rules: []Rule{
			{Match: []Match{NotIn(probe), TCPDport(1)},
				Verdict: DNAT(netip.AddrPortFrom(lan.Addr(), 1))}}},
		{Family: f, Table: "nat", Name: "POSTROUTING", Hook: Postrouting, Rules: []Rule{
			{Match: []Match{Out(probe), SrcLocal()}, Verdict: Masquerade()}}},
	})
}

// Unsupported reports whether err means that the kernel lacks nf_tables or an expression.
func Unsupported(err error) bool {
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) ||
		errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL)
}
