package swarm

import (
	"errors"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
)

func TestChoose(t *testing.T) {
	all := []Node{{ID: "a1b2c3", Name: "b"}, {ID: "b4", Name: "a"}, {ID: "c5", Name: "twin"},
		{ID: "c56", Name: "twin"}, {ID: "d7", Name: "e"}}
	why := map[string]string{"d": "node d is down", "a9": "node d is down"}
	for _, tt := range []struct {
		name, wanted string // a comma between
		want         string
		fails        string
	}{
		{"names", "b,a", "a1b2c3,b4", ""},
		{"down-though-a-prefix", "a1,d", "", "node d is down"},
		{"prefixes", "a1,d7", "a1b2c3,d7", ""},
		{"id-that-begins-another", "c5,a", "c5,b4", ""},
		{"prefix-of-two", "c", "", "2 nodes are called c"},
		{"shared-name", "twin", "", "2 nodes are called twin"},
		{"down-by-id", "a9", "", "node d is down"},
		{"nobody", "z", "", `the swarm has no node "z"`},
		{"empty", "a,", "", `the swarm has no node ""`},
		{"twice", "a,b4", "", "node b4 is named twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := choose(all, why, strings.Split(tt.wanted, ","))
			var u *machine.UnsupportedError
			if tt.fails != "" {
				if !errors.As(err, &u) || u.Missing != tt.fails || u.Remedy == "" {
					t.Errorf("error %v, want %q and what to do", err, tt.fails)
				}
				return
			}
			var ids []string
			for _, n := range got {
				ids = append(ids, n.ID)
			}
			if s := strings.Join(ids, ","); err != nil || s != tt.want {
				t.Errorf("%s, %v; want %s", s, err, tt.want)
			}
		})
	}
}

func TestTooFewNodes(t *testing.T) {
	a, b := Node{Name: "a"}, Node{Name: "b"}
	why := map[string]string{"c": "node c is down", "id-of-c": "node c is down",
		"d": "node d takes no tasks: its availability is drain"}
	for _, tt := range []struct {
		name          string
		chosen, ready []Node
		want, remedy  string // "": enough
	}{
		{"two", []Node{a, b}, []Node{a, b}, "", ""},
		{"one-named", []Node{a}, []Node{a, b}, "a swarm is measured between machines, and " +
			"only one node was named", "--nodes with at least two: docker node ls"},
		{"one-ready", []Node{a}, []Node{a},
			"a swarm is measured between machines, and only node a takes tasks (node c is " +
				"down; node d takes no tasks: its availability is drain)", "docker swarm join " +
				"on another machine; docker node ls; on one machine, --on docker"},
		{"none-ready", nil, nil, "a swarm is measured between machines, and no node takes " +
			"tasks (node c is down; node d takes no tasks: its availability is drain)",
			"docker swarm join on another machine; docker node ls; on one machine, --on docker"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := enough(tt.chosen, tt.ready, why)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var u *machine.UnsupportedError
			if !errors.As(err, &u) || err.Error() != tt.want ||
				u.Remedy != tt.remedy {
				t.Errorf("%v, hint %q; want %q and %q", err, u.Hint(), tt.want, tt.remedy)
			}
		})
	}
}
