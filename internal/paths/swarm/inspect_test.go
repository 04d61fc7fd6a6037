package swarm

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

const (
	overlayOn3 = "docker inspect -f '{{.State.Pid}}' $(docker ps -q --filter name=-overlay)"
	shapeIt    = "nsenter -t $(" + overlayOn3 +
		") -n tc qdisc add dev eth0 root tbf rate 200mbit burst 32kb latency 50ms"
	filterIt = "tc qdisc add dev eth0 clsact; tc filter add dev eth0 ingress protocol all u32 " +
		"match u32 0xffffffff 0xffffffff action mirred egress redirect dev lo"
)

func settings(t *testing.T, c *testCluster, toll string) {
	compare := func(args ...string) []string {
		return append([]string{toll, "compare", "host", "overlay", "--on", "swarm", "--nodes",
			"node2,node3", "--load", "rr", "--quiet"}, args...)
	}
	says := func(out string, wants ...string) {
		t.Helper()
		words := strings.Join(strings.Fields(out), " ")
		for _, want := range wants {
			if !strings.Contains(words, want) {
				t.Errorf("%q is missing:\n%s", want, out)
			}
		}
	}
	r := &meshRun{node: 1, file: filepath.Join(t.TempDir(), "results.jsonl")}
	c.begin(t, r, compare("--rounds", "3", "--window", "700ms", "--save", r.file)...)
	r.waitFor(t, "its first visit", func(visits []pathtest.Visit) bool { return len(visits) > 0 })
	c.run(t, 3, "sh", "-ec", shapeIt)
	<-r.over
	says(r.said.String(), "its path was changed while it was measured",
		"queueing discipline of eth0 in container on node node3 was noqueue and is tbf "+
			"of 200 Mbit/s")
	if code := r.cmd.ProcessState.ExitCode(); code != 4 {
		t.Errorf("exit %d\n%s", code, r.said)
	}

	c.run(t, 3, "sh", "-ec", filterIt)
	refused := compare("--rounds", "1", "--window", "50ms")
	_, out, errOut := c.toll(t, 1, refused[0], refused[1:]...)
	says(out+errOut, "packets may bypass the hops",
		"tc filter of eth0 (node node3): ingress u32")
	if !strings.Contains(out, "host ") {
		t.Errorf("past the one hop of host nothing leads:\n%s", out)
	}
	c.run(t, 3, "tc", "qdisc", "del", "dev", "eth0", "clsact")
}
