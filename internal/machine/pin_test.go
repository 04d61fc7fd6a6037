package machine

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func flat(n int) Topology { return split(n, n) }

func split(n, size int) Topology {
	var t Topology
	for i := range n {
		t = append(t, CPU{ID: i, Core: i, Package: i / size, Cache: i / size * size})
	}
	return t
}

// smt returns cores of two threads, the second threads numbered after all first ones, as on x86.
func smt(cores int) Topology {
	var t Topology
	for i := range 2 * cores {
		t = append(t, CPU{ID: i, Core: i % cores})
	}
	return t
}

func upTo(n int) []int {
	var all []int
	for i := range n {
		all = append(all, i)
	}
	return all
}

func TestPin(t *testing.T) {
	// Package 0 has its cores on two caches, as EPYC does.
	caches := Topology{{0, 0, 0, 0}, {1, 1, 0, 0}, {2, 2, 0, 2}, {3, 3, 0, 2}, {4, 4, 0, 4}}
	// Packages numbered in turn, as some vendors do.
	turns := Topology{{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 0, 0}, {3, 3, 1, 1}}
	// Package 0 has a cache for each core, package 1 one for both.
	shared := Topology{{0, 0, 0, 0}, {1, 1, 0, 1}, {2, 2, 1, 2}, {3, 3, 1, 2}}
	// Two packages of two caches of two cores, the caches numbered in turn.
	both := Topology{{1, 1, 0, 1}, {2, 2, 0, 1}, {3, 3, 1, 3}, {4, 4, 1, 3}, {5, 5, 0, 5},
		{6, 6, 0, 5}, {7, 7, 1, 7}, {8, 8, 1, 7}}
	for _, tt := range []struct {
		name           string
		topology       Topology
		allowed        []int
		threads        int
		client, server []int
		same           bool
	}{
		{"one-cpu", flat(1), []int{0}, 1, []int{0}, []int{0}, true},
		{"one-cpu-two-threads", flat(1), []int{0}, 2, []int{0}, []int{0}, true},
		{"two-cpus", flat(2), upTo(2), 1, []int{0}, []int{1}, false},
		{"two-cpus-four-threads", flat(2), upTo(2), 4, []int{0}, []int{1}, false},
		{"two-siblings", smt(1), upTo(2), 1, []int{0}, []int{1}, true},
		{"smt-4", smt(2), upTo(4), 1, []int{0}, []int{1}, false},
		{"smt-4-two-threads", smt(2), upTo(4), 2, []int{0, 2}, []int{1, 3}, false},
		{"smt-4-siblings-allowed", smt(2), []int{1, 3}, 1, []int{1}, []int{3}, true},
		{"smt-8", smt(4), upTo(8), 1, []int{1}, []int{2}, false},
		{"smt-8-two-threads", smt(4), upTo(8), 2, []int{1, 3}, []int{2, 4}, false},
		{"smt-8-three-threads", smt(4), upTo(8), 3, []int{1, 3, 5}, []int{2, 4, 6}, false},
		{"smt-6-odd-cores", smt(3), upTo(6), 2, []int{1, 3}, []int{2, 5}, false},
		{"packages", split(8, 4), upTo(8), 1, []int{1}, []int{2}, false},
		{"packages-two-threads", split(8, 4), upTo(8), 2, []int{4, 6}, []int{5, 7}, false},
		{"packages-nine-threads", split(8, 4), upTo(8), 9, []int{4, 6, 1}, []int{5, 7, 2}, false},
		{"packages-in-turn", turns, upTo(4), 1, []int{0}, []int{2}, false},
		{"mask-3", split(8, 4), []int{3}, 1, []int{3}, []int{3}, true},
		{"mask-1-5", split(8, 4), []int{1, 5}, 1, []int{1}, []int{5}, false},
		{"mask-1-5-6", split(8, 4), []int{1, 5, 6}, 1, []int{5}, []int{6}, false},
		{"mask-1-5-siblings", smt(4), []int{1, 5}, 1, []int{1}, []int{5}, true},
		{"mask-unsorted", flat(4), []int{3, 1, 3}, 1, []int{1}, []int{3}, false},
		{"mask-offline", flat(4), []int{2, 3, 64}, 2, []int{2}, []int{3}, false},
		{"four-keep-zero", flat(4), upTo(4), 1, []int{0}, []int{1}, false},
		{"five-leave-zero", flat(5), upTo(5), 1, []int{1}, []int{2}, false},
		{"zero-is-the-other-core", Topology{{0, 0, 0, 0}, {8, 8, 0, 0}, {9, 8, 0, 0}, {10, 8, 0, 0},
			{11, 8, 0, 0}},
			[]int{0, 8, 9, 10, 11}, 1, []int{0}, []int{8}, false},
		{"cache-without-zero", caches, upTo(5), 1, []int{2}, []int{3}, false},
		{"cache-in-another-package", shared, upTo(4), 1, []int{2}, []int{3}, false},
		{"caches-in-turn", both, []int{1, 2, 3, 4, 5, 6, 7, 8}, 2, []int{1, 5}, []int{2, 6}, false},
		{"no-topology", nil, []int{4, 6}, 1, []int{4}, []int{6}, false},
		{"no-threads", flat(2), upTo(2), 0, []int{0}, []int{1}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.topology.pin(tt.allowed, tt.threads)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Client, tt.client) || !slices.Equal(got.Server, tt.server) ||
				got.SameCore != tt.same {
				t.Errorf("got %+v, want %v %v %v", got, tt.client, tt.server, tt.same)
			}
			if same := tt.topology.sameCore(got.Client, got.Server); same != got.SameCore {
				t.Errorf("SameCore says %v, Pin %v", same, got.SameCore)
			}
		})
	}
}

func TestPinNothing(t *testing.T) {
	for _, allowed := range [][]int{nil, {64}} {
		if _, err := flat(2).pin(allowed, 1); err == nil {
			t.Errorf("allowed %v: no error", allowed)
		}
	}
}

func TestPinAlways(t *testing.T) {
	for name, topology := range map[string]Topology{"flat": flat(7), "smt": smt(4),
		"split": split(8, 2)} {
		for mask := 1; mask < 1<<len(topology); mask++ {
			var allowed []int
			for i := range topology {
				if mask>>i&1 == 1 {
					allowed = append(allowed, i)
				}
			}
			for threads := 1; threads <= 4; threads++ {
				got, err := topology.pin(allowed, threads)
				client, server, same := got.Client, got.Server, got.SameCore
				if err != nil || len(client) == 0 || len(client) > threads ||
					len(client) != len(server) {
					t.Fatalf("%s %v x%d: %v %v %v", name, allowed, threads, client, server, err)
				}
				both := slices.Concat(client, server)
				if slices.ContainsFunc(both, func(id int) bool {
					return !slices.Contains(allowed, id)
				}) {
					t.Fatalf("%s %v x%d: %v not allowed", name, allowed, threads, both)
				}
				if one := len(topology.cores(allowed)) == 1; same != one ||
					topology.sameCore(client, server) != one {
					t.Fatalf("%s %v x%d: %v %v same core %v", name, allowed, threads, client,
						server, same)
				}
			}
		}
	}
}

func TestPlace(t *testing.T) {
	files := cloud()
	maps.DeleteFunc(files, func(name, _ string) bool {
		return strings.HasSuffix(name, "quota_us") || strings.HasSuffix(name, "cpu.max")
	})
	m := tree(t, files)
	far, err := m.Place(sample.PinFar, 1)
	want := sample.CPUs{Client: []int{0}, Server: []int{1}, Distance: sample.SharedCache}
	if err != nil || !reflect.DeepEqual(far, want) {
		t.Errorf("far: %+v %v, want %+v", far, err, want)
	}
	near, err := m.Place(sample.PinNear, 4)
	one := []int{0}
	want = sample.CPUs{Client: one, Server: one, Relay: one, SameCore: true,
		Distance: sample.SharedCPU}
	if err != nil || !reflect.DeepEqual(near, want) {
		t.Errorf("near: %+v %v, want %+v", near, err, want)
	}
	if pair := m.Pinned(1, 3); !pair.SameCore || pair.Distance != sample.SharedCore {
		t.Errorf("siblings: %+v", pair)
	}
}

func TestPlaceRefused(t *testing.T) {
	var cannot *PinError
	one := tree(t, cloud())
	one.Affinity = func() ([]int, error) { return []int{1}, nil }
	if _, err := one.Place(sample.PinFar, 1); !errors.As(err, &cannot) ||
		cannot.Hint() != "--pin near, or --pin none" {
		t.Errorf("one CPU: %v", err)
	}
	if p, err := one.Place(sample.PinNear, 1); err != nil || !slices.Equal(p.Client, []int{1}) {
		t.Errorf("one CPU, near: %+v %v", p, err)
	}
	limited := tree(t, cloud())
	if _, err := limited.Place(sample.PinFar, 1); !errors.As(err, &cannot) ||
		err.Error() != "--pin far: the cgroup's CPU limit is 1.5 CPUs, and client and "+
			"server need one each" {
		t.Errorf("limited: %v", err)
	}
}

func TestDistance(t *testing.T) {
	both := Topology{{0, 0, 0, 0}, {1, 1, 0, 0}, {2, 2, 0, 2}, {3, 3, 1, 3}, {4, 0, 0, 0}}
	for _, tt := range []struct {
		a, b []int
		want string
	}{
		{[]int{0}, []int{0}, sample.SharedCPU}, {[]int{0}, []int{4}, sample.SharedCore},
		{[]int{0}, []int{1}, sample.SharedCache},
		{[]int{0}, []int{2}, sample.SharedSocket}, {[]int{0}, []int{3}, sample.SharedMachine},
		{[]int{3, 0}, []int{1}, sample.SharedCache},
		{[]int{0}, []int{9}, ""},
	} {
		if got := both.distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%v and %v share %q, want %q", tt.a, tt.b, got, tt.want)
		}
	}
}
