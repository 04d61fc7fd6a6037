package swarm

import (
	"bytes"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// Node 2 gets a network with the subnet that the swarm assigns next, so toll must use another one.
func addressesTaken(t *testing.T, c *testCluster, toll string) {
	t.Helper()
	c.run(t, 1, "docker", "network", "create", "-d", "overlay", "before")
	var (
		subnet netip.Prefix
		out    []byte
		err    error
	)
	testwait.Until(t, time.Minute, "the swarm gives the network a subnet", func() bool {
		out, _ = c.on(1, "docker", "network", "inspect", "-f", "{{(index .IPAM.Config 0).Subnet}}",
			"before").Output()
		subnet, err = netip.ParsePrefix(strings.TrimSpace(string(out)))
		return err == nil
	})
	at := subnet.Addr().As4()
	at[2]++
	take := "docker network create --subnet " +
		netip.PrefixFrom(netip.AddrFrom4(at), subnet.Bits()).String() + " own"
	if !testwait.Met(time.Minute, func() bool {
		out, err = c.on(2, "sh", "-c", take).CombinedOutput() // an earlier run's may still be there
		return err == nil
	}) {
		t.Fatalf("%s: %v: %s", take, err, out)
	}
	rejected := func() int {
		b, _ := os.ReadFile(c.dir + "/2/log")
		return bytes.Count(b, []byte(`Pool overlaps with other one on this address space" module`))
	}
	was := rejected()
	testwait.Unhindered(t, 2*patience, func(u testing.TB) { // a visit may fail
		code, report, errOut := c.toll(t, 1, toll, "compare", "host", "overlay", "--on", "swarm",
			"--nodes", "node2,node3",
			"--from", "remote-container", "--rounds", "1", "--window", "50ms", "--load", "rr")
		if code != 0 || strings.Contains(report, "Not measured") || rejected() == was {
			u.Errorf("exit %d, %d rejections\n%s%s", code, rejected()-was, report, errOut)
		}
	})
	c.run(t, 1, "docker", "network", "rm", "before")
	c.run(t, 2, "docker", "network", "rm", "own")
}
