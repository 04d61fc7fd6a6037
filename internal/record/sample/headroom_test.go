package sample

import "testing"

func TestNewHeadroom(t *testing.T) {
	for _, c := range []struct {
		name                                string
		ports, left, tracked, most, entries int
		budget                              int
		limit                               string
	}{
		{"ports", 28_232, 0, 0, 262_144, 1, 28_232, LimitPorts},
		{"no-table", 28_232, 0, 0, 0, 1, 28_232, LimitPorts},
		{"table", 28_232, 0, 100, 8_292, 1, 8_192, LimitTracking},
		{"table-with-proxy", 28_232, 0, 0, 16_384, 2, 8_192, LimitTracking},
		{"table-full", 28_232, 0, 10, 10, 1, 0, LimitTracking},
		{"no-ports", -5, 28_237, 0, 0, 1, 0, LimitPorts},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := NewHeadroom(c.ports, c.left, c.tracked, c.most, c.entries); r.Budget != c.budget || r.Limit != c.limit || r.Ports < 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}
