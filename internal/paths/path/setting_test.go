package path

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestDifferences(t *testing.T) {
	device := func(mtu string) []Setting {
		return []Setting{{Where: "machine A", Of: "v0", Value: "veth"},
			{Where: "machine A", Of: "v0", What: "MTU", Value: mtu},
			{Where: "machine A", Of: "v0", What: "master", Value: "br0"}}
	}
	chain := Setting{Where: "machine A", Of: "chain ip nat DOCKER", Value: "2 rules"}
	fewer := chain
	fewer.Value = "1 rule"
	elsewhere := device("1500")
	for i := range elsewhere {
		elsewhere[i].Where = "machine B"
	}
	forward := Setting{Where: "machine A", What: "sysctl net.ipv4.ip_forward", Value: "1"}
	for _, c := range []struct {
		name    string
		was, is []Setting
		want    []sample.Difference
	}{
		{"same", device("1500"), device("1500"), nil},
		{"other-order", append(device("1500"), forward),
			append([]Setting{forward}, device("1500")...), nil},
		{"value", device("1500"), device("600"),
			[]sample.Difference{{Where: "machine A", What: "MTU of v0", Was: "1500", Is: "600"}}},
		{"thing-gone", device("1500"), nil, []sample.Difference{
			{Where: "machine A", What: "v0", Was: "veth"}}},
		{"thing-came", nil, device("1500"), []sample.Difference{
			{Where: "machine A", What: "v0", Is: "veth"}}},
		{"setting-came", device("1500")[:2], device("1500"),
			[]sample.Difference{{Where: "machine A", What: "master of v0", Is: "br0"}}},
		{"other-place", device("1500"), elsewhere,
			[]sample.Difference{{Where: "machine A", What: "v0", Was: "veth"},
				{Where: "machine B", What: "v0", Is: "veth"}}},
		{"chain", []Setting{chain}, []Setting{fewer},
			[]sample.Difference{{Where: "machine A", What: "chain ip nat DOCKER", Was: "2 rules",
				Is: "1 rule"}}},
		{"of-a-place", nil, []Setting{forward},
			[]sample.Difference{{Where: "machine A", What: "sysctl net.ipv4.ip_forward", Is: "1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Differences(c.was, c.is)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUndiverted(t *testing.T) {
	s := Setting{Where: "machine A", Of: "v0", What: "XDP", Value: "none"}
	if err := Undiverted([]Setting{s}); err != nil {
		t.Error(err)
	}
	s.Value, s.Diverts = "program 7", true
	err := Undiverted([]Setting{s, s, s, s, s})
	var u *machine.UnsupportedError
	if !errors.As(err, &u) || u.Hint() == "" ||
		err.Error() != "packets may bypass the hops, unseen by their counters, because of: "+
			"XDP of v0 (machine A): program 7; XDP of v0 (machine A): program 7; XDP of v0 "+
			"(machine A): program 7; and 2 more" {
		t.Errorf("%v", err)
	}
}
