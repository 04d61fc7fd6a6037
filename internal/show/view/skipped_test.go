package view

import (
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestNotMeasured(t *testing.T) {
	skip := func(m mode.Name, from mode.Placement, to mode.Target, reason,
		remedy string) sample.Skip {
		return sample.Skip{Mode: m, From: from, To: to, Reason: reason, Remedy: remedy,
			On: "docker"}
	}
	const none, load = "the kernel has no ipvlan devices", "sudo modprobe ipvlan"
	for _, tt := range []struct {
		name  string
		skips []sample.Skip
		on    func(string) string
		want  []string
	}{
		{name: "none"},
		{"one", []sample.Skip{skip("netkit", "host", "container", "no netkit", "")}, nil,
			[]string{"netkit from the machine itself: no netkit"}},
		{"a-reason-of-many", []sample.Skip{skip("ipvlan-l2", "container", "container", none, load),
			skip("netkit", "host", "", "no netkit", ""),
			skip("ipvlan-l3", "container", "container", none, load),
			skip("ipvlan-l2", "remote", "container", none, load),
			skip("ipvlan-l3", "remote", "container", none, load),
			skip("ipvlan-l3s", "remote", "container", none, load)}, nil,
			[]string{
				"ipvlan-l2 and ipvlan-l3 from another container and another machine; ipvlan-l3s " +
					"from another machine: " + none + "; hint: " + load,
				"netkit from the machine itself: no netkit"}},
		{"targets", []sample.Skip{skip("publish-nat", "host", "loopback", "docker-proxy has them",
			""), skip("publish-nat", "host", "address", "docker-proxy has them", "")}, nil,
			[]string{
				"publish-nat :lo and publish-nat :addr from the machine itself: " +
					"docker-proxy has them"}},
		{"another-remedy", []sample.Skip{skip("a", "host", "", "apart", "x"),
			skip("b", "host", "", "apart", "y")}, nil,
			[]string{"a from the machine itself: apart; hint: x",
				"b from the machine itself: apart; hint: y"}},
		{"two-loads", []sample.Skip{skip("a", "host", "", "no UDP", ""),
			skip("a", "host", "", "no UDP", "")}, nil,
			[]string{"a from the machine itself: no UDP"}},
		{"backends", []sample.Skip{skip("a", "host", "", "not there", ""),
			{Mode: "b", Reason: "not there"}}, func(on string) string {
			return "on " + on
		},
			[]string{"on docker, a from the machine itself: not there", "b: not there"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := NotMeasured(tt.skips, tt.on); !slices.Equal(got, tt.want) {
				t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}
