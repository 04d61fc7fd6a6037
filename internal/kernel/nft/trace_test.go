package nft

import (
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func TestTracer(t *testing.T) {
	ruleSets["traced.nft"] = `table inet x {
	chain deep {
		udp dport 9 counter drop
	}
	chain i {
		type filter hook input priority 0; policy drop;
		udp dport 1 counter
		udp dport 9 jump deep
		udp dport { 9, 10 } reject
	}
}
`
	netnstest.Do(t, func() error {
		write(t, "traced.nft")
		if err := link.Up("lo"); err != nil {
			return err
		}
		tracer, err := NewTracer()
		if err != nil {
			return err
		}
		var delivered []string
		dial := func(to string) (got []string) {
			delivered = nil
			conn, err := net.Dial("udp", to)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			events, err := tracer.Read()
			if err != nil {
				t.Error(err)
			}
			for _, e := range events {
				if e.Src.String() != conn.LocalAddr().String() {
					continue // the answer
				}
				if e.Routing {
					continue
				}
				if e.Delivered {
					delivered = append(delivered, e.Dst.String())
					continue
				}
				places, err := Placements(e.Table, e.Chain)
				if err != nil {
					t.Fatal(err)
				}
				at, ok := places[e.Handle]
				if e.Dst.String() != to || e.In != 1 || ok != (e.Handle != 0) {
					t.Errorf("%+v at %+v", e, at)
				}
				text := fmt.Sprintf("%s %s %d %s", e.Table, e.Chain, at.Number, e.Verdict)
				if e.Policy {
					text += " (policy)"
				}
				got = append(got, text)
			}
			return got
		}
		for to, want := range map[string][]string{
			"127.0.0.1:9": {"inet x i 2 jump", "inet x deep 1 drop"},
			"[::1]:10":    {"inet x i 3 drop"},
			"127.0.0.1:1": {"inet x i 1 continue", "inet x i 0 continue",
				"inet x i 0 drop (policy)"},
		} {
			if got := dial(to); !slices.Equal(got, want) {
				t.Errorf("%s: %q", to, got)
			}
			if !slices.Equal(delivered, []string{to}) {
				t.Errorf("%s: delivered to %q", to, delivered)
			}
		}
		if err := tracer.Close(); err != nil {
			t.Error(err)
		}
		if s, err := Save(); err != nil || len(s.Messages) != 1+2+1+1+5 {
			t.Errorf("%d messages are left, %v", len(s.Messages), err)
		}
		return nil
	})
}

// Docker's tables have the same names in both families.
func TestPlacements(t *testing.T) {
	ruleSets["families.nft"] = `table ip y { chain i { accept; }; }
table ip6 y { chain i { counter; counter drop; }; chain j { drop; }; }
`
	netnstest.Do(t, func() error {
		write(t, "families.nft")
		for at, want := range map[[2]string]int{{"ip y", "i"}: 1, {"ip6 y", "i"}: 2, {"ip y", "j"}: 0,
			{"ip6 y", "j"}: 1, {"inet y", "i"}: 0} {
			if got, err := Placements(at[0], at[1]); err != nil || len(got) != want {
				t.Errorf("%s: %v, %v", at, got, err)
			}
		}
		return nil
	})
}
