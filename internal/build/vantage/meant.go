package vantage

import (
	"context"
	"slices"
	"strings"

	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/build/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// Labels that Docker Compose puts on the containers of a service and on a project's networks:
// what its file calls them.
const (
	composeService = "com.docker.compose.service"
	composeNetwork = "com.docker.compose.network"
)

// called is a container or a network, and what Compose's file calls it.
type called struct{ name, compose string }

// containerHint says which running container may have been meant.
func containerHint(ctx context.Context, d *dockerapi.Daemon, name string) string {
	all, err := d.API.ContainerList(ctx, client.ContainerListOptions{})
	var known []called
	if err == nil {
		for _, c := range all.Items {
			if len(c.Names) > 0 {
				known = append(known, called{strings.TrimPrefix(c.Names[0], "/"), c.Labels[composeService]})
			}
		}
	}
	return hint(inContainer, name, known, "docker ps lists those that run")
}

// networkHint says which network may have been meant.
func networkHint(ctx context.Context, d *dockerapi.Daemon, name string) string {
	all, err := d.API.NetworkList(ctx, client.NetworkListOptions{})
	var known []called
	if err == nil {
		for _, n := range all.Items {
			known = append(known, called{n.Name, n.Labels[composeNetwork]})
		}
	}
	return hint(onNetwork, name, known, "docker network ls lists those that there are")
}

// hint names what may have been meant; if nothing is near, it says what lists all.
func hint(kind, name string, known []called, list string) string {
	found := meant(name, known)
	if len(found) == 0 {
		return list
	}
	return "did you mean " + kind + strings.Join(found, " or "+kind) + "?"
}

// mostMeant is how many containers of a service are named.
const mostMeant = 3

// meant are those that Compose's file calls so; if there are none, those with a name like it.
func meant(name string, known []called) (out []string) {
	var names []string
	for _, c := range known {
		if names = append(names, c.name); c.compose == name {
			out = append(out, c.name)
		}
	}
	if slices.Sort(out); len(out) > 0 {
		return out[:min(len(out), mostMeant)]
	}
	return suggest.Words(name, names)
}
