package swarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/swarm"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
)

// Node is a machine of the swarm.
type Node struct {
	ID, Name string
	Addr     netip.Addr // the address that the swarm knows
	Engine   string
	Arch     string // as uname -m prints it; may be ""

	shared string // name of several nodes; "": Name is unique
}

// nodes returns the nodes that take tasks, sorted by name. why tells for each other node, by ID and
// by name, why it takes no tasks.
func nodes(ctx context.Context, api *client.Client) (ready []Node, why map[string]string,
	err error) {
	got, err := api.NodeList(ctx, client.NodeListOptions{})
	if dockerapi.Leaderless(err) {
		return nil, nil, &machine.UnsupportedError{
			Missing: "the swarm has no leader: half of its managers or more are down",
			Remedy:  "start them; docker node ls must answer", Err: err}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list the swarm's nodes: %w", err)
	}
	why = map[string]string{}
	for _, n := range got.Items {
		node := Node{ID: n.ID, Name: n.Description.Hostname,
			Engine: n.Description.Engine.EngineVersion,
			Arch:   n.Description.Platform.Architecture}
		node.Name = cmp.Or(node.Name, n.ID)
		node.Addr, _ = netip.ParseAddr(n.Status.Addr)
		if n.ManagerStatus != nil && (!node.Addr.IsValid() || node.Addr.IsUnspecified()) {
			if at, err := netip.ParseAddrPort(n.ManagerStatus.Addr); err == nil {
				node.Addr = at.Addr()
			}
		}
		switch {
		case n.Status.State != swarm.NodeStateReady:
			why[n.ID] = fmt.Sprintf("node %s is %s", node.Name, n.Status.State)
		case n.Spec.Availability != swarm.NodeAvailabilityActive:
			why[n.ID] = fmt.Sprintf("node %s takes no tasks: its availability is %s", node.Name,
				n.Spec.Availability)
		case n.Description.Platform.OS != "" && n.Description.Platform.OS != "linux":
			why[n.ID] = fmt.Sprintf("node %s runs %s", node.Name, n.Description.Platform.OS)
		default:
			ready = append(ready, node)
			continue
		}
		why[node.Name] = why[n.ID]
	}
	slices.SortFunc(ready, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return ready, why, nil
}

// choose returns the wanted nodes in the given order. A node is named by host name, ID or the
// beginning of an ID. If wanted is empty, choose returns all. Nodes with equal names are called by
// their IDs.
func choose(all []Node, why map[string]string, wanted []string) ([]Node, error) {
	names := map[string]int{}
	for _, n := range all {
		names[n.Name]++
	}
	all = slices.Clone(all)
	for i, n := range all {
		if names[n.Name] > 1 {
			all[i].shared, all[i].Name = n.Name, n.ID
		}
	}
	if len(wanted) == 0 {
		return all, nil
	}
	var out []Node
	for _, w := range wanted {
		found := those(all, func(n Node) bool { return n.Name == w || n.shared == w || n.ID == w })
		if len(found) == 0 && why[w] == "" {
			found = those(all, func(n Node) bool { return strings.HasPrefix(n.ID, w) })
		}
		switch {
		case len(found) == 0 && why[w] != "":
			return nil, &machine.UnsupportedError{Missing: why[w],
				Remedy: "docker node ls; docker node update --availability active"}
		case len(found) == 0 || w == "":
			return nil, &machine.UnsupportedError{Missing: fmt.Sprintf("the swarm has no node %q", w),
				Remedy: "docker node ls lists them"}
		case len(found) > 1:
			return nil, &machine.UnsupportedError{Missing: fmt.Sprintf(
				"%d nodes are called %s", len(found), w),
				Remedy: "use the nodes' IDs: docker node ls"}
		case slices.Contains(out, found[0]):
			return nil, &machine.UnsupportedError{Missing: "node " + w + " is named twice",
				Remedy: "--nodes a,b"}
		}
		out = append(out, found[0])
	}
	return out, nil
}

func those(all []Node, are func(Node) bool) (out []Node) {
	for _, n := range all {
		if are(n) {
			out = append(out, n)
		}
	}
	return out
}

func enough(chosen, ready []Node, why map[string]string) error {
	const between = "a swarm is measured between machines, and "
	switch {
	case len(chosen) >= 2:
		return nil
	case len(ready) >= 2:
		return &machine.UnsupportedError{Missing: between + "only one node was named",
			Remedy: "--nodes with at least two: docker node ls", Lack: machine.LackPlacement}
	}
	u := &machine.UnsupportedError{Missing: between + "no node takes tasks",
		Remedy: "docker swarm join on another machine; docker node ls; on one machine, --on docker",
		Lack:   machine.LackPlacement}
	if len(ready) == 1 {
		u.Missing = between + "only node " + ready[0].Name + " takes tasks"
	}
	if others := slices.Compact(slices.Sorted(maps.Values(why))); len(others) > 0 {
		u.Err = errors.New(strings.Join(others, "; "))
	}
	return u
}
