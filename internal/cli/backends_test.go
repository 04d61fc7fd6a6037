package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestBackendsAreRegistered(t *testing.T) {
	var f builderFlags
	fl := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.addBuilders(fl)
	help := fl.Lookup("on").Usage
	if !slices.Equal(backendNames(), sample.Backends()) {
		t.Errorf("there are %v, records know %v", backendNames(), sample.Backends())
	}
	for _, b := range backends {
		if !strings.Contains(help, b.name) || !strings.Contains(help, b.words) {
			t.Errorf("the help of --on lacks %s (%s): %s", b.name, b.words, help)
		}
		if got, err := parseBackend(b.name); got != b.name || err != nil {
			t.Errorf("--on %s: %q, %v", b.name, got, err)
		}
	}
	fl.VisitAll(func(x *pflag.Flag) {
		for _, name := range owners(x) {
			if !slices.Contains(backendNames(), name) {
				t.Errorf("--%s is of %q, which is no backend", x.Name, name)
			}
		}
		if x.Name != "on" && len(owners(x)) == 0 {
			t.Errorf("--%s is of no backend", x.Name)
		}
	})
}

func TestFlagsFitBackends(t *testing.T) {
	for _, tt := range []struct{ args, on, want string }{
		{"", "lab,docker", ""},
		{"--wire mtu=9000 --proxy own", "lab", ""},
		{"--wire mtu=9000", "lab,docker", "--wire works only with --on lab, not with docker"},
		{"--congestion reno", "swarm", "--congestion works only with --on lab, not with swarm"},
		{"--parent eth0", "lab", "--parent is for docker and podman only"},
		{"--parent eth0", "lab,docker", ""},
		{"--parent eth0", "swarm", "--parent is for docker and podman only"},
		{"--outside=false --proxy=", "swarm", ""}, // the same as if they were not given
		{"--nodes a,b", "lab", "--nodes is for swarm and kubernetes only"},
		{"--nodes a,b --image x --context c --kubeconfig f --namespace n --unprivileged",
			"kubernetes", ""},
		{"--nodes a", "kubernetes", ""},
		{"--nodes a,b --outside", "kubernetes", ""},
		{"--outside", "swarm", "--outside is for kubernetes only"},
		{"--nodes a,b,c", "kubernetes",
			"--nodes takes two nodes, the server's and the client's, not 3"},
		{"--nodes a,", "kubernetes", "--nodes has an empty name"},
		{"--nodes a,b --address 192.0.2.1", "kubernetes", "--address is for swarm and peer only"},
		{"--context c", "swarm", "--context is for kubernetes only"},
		{"--nodes a,b", "lab,kubernetes", ""},
		{"--nodes a,b", "swarm", ""},
		{"--nodes a", "swarm", "--nodes takes two nodes, the server's and the " +
			"client's, not 1"},
		{"--peer b", "lab", "--peer is for peer only"},
		{"--peer me@b:22 --address 192.0.2.1", "peer", ""},
		{"", "peer", "--on peer needs --peer"},
		{"--peer -oProxyCommand=id", "peer",
			`--peer: "-oProxyCommand=id" is not a machine: it begins with a dash`},
		{"--peer b --address ::", "peer", `--address "::": must be an address of this machine`},
		{"--peer b --peer-binary /nowhere/toll", "peer",
			"--peer-binary: stat /nowhere/toll: no such file or directory"},
	} {
		t.Run(strings.TrimSpace(tt.on+" "+tt.args), func(t *testing.T) {
			var f builderFlags
			fl := pflag.NewFlagSet("", pflag.ContinueOnError)
			f.addBuilders(fl)
			if err := fl.Parse(strings.Fields(tt.args)); err != nil {
				t.Fatal(err)
			}
			err := f.fit(strings.Split(tt.on, ","))
			if said := fmt.Sprint(err); said != tt.want && (err != nil || tt.want != "") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
