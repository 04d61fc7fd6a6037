package analysis

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestProxyMemory(t *testing.T) {
	visits := func(bytes ...int64) (out []*sample.Visit) {
		for _, b := range bytes {
			out = append(out, &sample.Visit{Metered: sample.Metered{
				Proxy: &sample.ProxyUse{Memory: b}}})
		}
		return out
	}
	for _, tt := range []struct {
		name    string
		port    int64
		visits  []*sample.Visit
		streams int
		shape   sample.Shape
		want    *ProxyMemory
	}{
		{"one-connection", 4e6, visits(5e6, 6e6, 7e6), 0, sample.Shape{},
			&ProxyMemory{4e6, 6e6, 1, 0}},
		{"many", 4e6, visits(5e6), 500, sample.Shape{}, &ProxyMemory{4e6, 5e6, 500, 2e6}},
		{"a-crowd", 4e6, visits(5e6), 50, sample.Shape{Servers: 1, Clients: 5, Procs: 2},
			&ProxyMemory{4e6, 5e6, 500, 2e6}},
		{"less-than-idle", 4e6, visits(3e6), 500, sample.Shape{}, &ProxyMemory{4e6, 3e6, 500, 0}},
		{"not-known-before", 0, visits(3e6), 1, sample.Shape{}, nil},
		{"not-known-then", 4e6, visits(0, 0), 1, sample.Shape{}, nil},
		{"no-proxy", 0, []*sample.Visit{{}}, 1, sample.Shape{}, nil},
	} {
		s := &Series{Visits: tt.visits, Load: sample.Load{Streams: tt.streams},
			Cell: sample.Cell{Shape: tt.shape}}
		if got := s.proxyMemory(sample.Path{ProxyMemory: tt.port}); (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
