package link

import "testing"

func TestParseNeighbours(t *testing.T) {
	const counts = "entries  allocs   destroys\n" +
		"000003e0  000131bc 00011d32\n000003e0  00010a5b 00011eb2\n"
	for _, tt := range []struct {
		counts, limit string
		want          Neighbours
		ok            bool
	}{
		{counts, "1024\n", Neighbours{992, 1024}, true},
		{counts, "0\n", Neighbours{}, false},
		{counts, "", Neighbours{}, false},
		{"entries allocs\n", "1024\n", Neighbours{}, false},
		{"", "1024", Neighbours{}, false},
		{"allocs entries\n1 2\n", "1024", Neighbours{}, false},
	} {
		if got, ok := parseNeighbours(tt.counts, tt.limit); got != tt.want || ok != tt.ok {
			t.Errorf("%q, %q: %+v %v", tt.counts, tt.limit, got, ok)
		}
	}
	if v4, _ := NeighbourTables(); v4.Max == 0 {
		t.Skip("this kernel does not show the table")
	} else if v4.Entries > v4.Max {
		t.Errorf("%+v", v4)
	}
}
