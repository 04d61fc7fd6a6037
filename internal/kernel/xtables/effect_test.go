package xtables

import "testing"

// A client may stay with the server that chance gave it. It makes no difference which it is, unless
// a rule in between decides.
func TestEffectOfAffinity(t *testing.T) {
	jump := func(to string, doubt, chance bool) Act {
		return Act{Chain: "svc", Verdict: Jump, To: []string{to}, Doubt: doubt, Chance: chance,
			Always: !doubt && !chance}
	}
	server := func(name string) Act { return Act{Chain: name, Alters: true} }
	acts := []Act{jump("a", true, false), jump("b", true, false), jump("a", false, true),
		jump("b", false, false), server("a"), server("b")}
	base := Act{Chain: "OUTPUT", Verdict: Jump, To: []string{"svc"}}
	decides := Act{Chain: "svc", Verdict: Accept, Always: true}
	limits := Act{Chain: "svc", Verdict: Jump, To: []string{"limits"}, Always: true}
	for name, x := range map[string]struct {
		acts []Act
		want Effect
	}{
		"same":     {append([]Act{base}, acts...), Same},
		"decided":  {append([]Act{base, acts[0], decides}, acts[1:]...), Alters},
		"limited":  {append([]Act{base, acts[0], limits}, acts[1:]...), Alters},
		"no other": {append([]Act{base, acts[0], acts[1]}, acts[3:]...), Alters},
	} {
		if got := NewEffects(x.acts, []string{"OUTPUT"}).Of(1); got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}
