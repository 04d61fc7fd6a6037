package nft

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func TestManyRules(t *testing.T) {
	const many = 2000
	netnstest.Do(t, func() error {
		var rules []Rule
		for range many {
			rules = append(rules, Rule{Match: []Match{TCPDport(80)}, Verdict: Accept()})
		}
		chains := []Chain{{Table: "filter", Name: "one", Rules: rules[:1]},
			{Table: "filter", Name: "all", Rules: rules}}
		if err := Apply(chains); err != nil {
			return err
		}
		for name, want := range map[string]int{"one": 1, "all": many} {
			got, err := ReadChain(IPv4, "filter", name)
			if err != nil {
				return err
			}
			if len(got) != want {
				t.Errorf("chain %s has %d rules, want %d", name, len(got), want)
			}
		}
		return nil
	})
}
