package path_test

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// A bridge must have counted the load, and the rule that publishes the port its connection.
func ExampleWitness() {
	var veth, rule sample.Counters
	read := func(c *sample.Counters) func() (sample.Counters, error) {
		return func() (sample.Counters, error) { return *c, nil }
	}
	hops := []path.Hop{
		{Kind: mode.HopDNAT, Name: "tcp 8080", Where: "machine A", Expect: path.Matches,
			Read: read(&rule)},
		{Kind: mode.HopVeth, Name: "veth0", Where: "machine A", Read: read(&veth)},
	}
	visit := func(hits uint64) {
		before, _ := path.ReadAll(hops)
		veth = veth.Add(sample.Counters{ForwardBytes: 1_052_000, ForwardPackets: 700,
			BackwardBytes: 20_000, BackwardPackets: 350})
		rule = rule.Add(sample.Counters{Hits: hits})
		after, _ := path.ReadAll(hops)
		w := path.Witness(hops, before, after, path.Moved{Forward: 1_000_000, Connections: 1})
		fmt.Printf("%t %q\n", w.OK, w.Evidence)
	}
	visit(1)
	visit(0)
	// Output:
	// true ""
	// false "DNAT tcp 8080 (machine A): hit 0 times by 1 connection"
}
