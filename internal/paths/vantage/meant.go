package vantage

import (
	"context"
	"slices"
	"strings"

	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// Docker Compose's labels
const (
	composeService = "com.docker.compose.service"
	composeNetwork = "com.docker.compose.network"
)

type called struct{ name, compose string }

func containerHint(ctx context.Context, d *dockerapi.Daemon, name string) string {
	all, err := d.API.ContainerList(ctx, client.ContainerListOptions{})
	var known []called
	if err == nil {
		for _, c := range all.Items {
			if len(c.Names) > 0 {
				known = append(known, called{strings.TrimPrefix(c.Names[0], "/"),
					c.Labels[composeService]})
			}
		}
	}
	return hint(mode.InContainer, name, known, "docker ps lists those that run")
}

func networkHint(ctx context.Context, d *dockerapi.Daemon, name string) string {
	all, err := d.API.NetworkList(ctx, client.NetworkListOptions{})
	var known []called
	if err == nil {
		for _, n := range all.Items {
			known = append(known, called{n.Name, n.Labels[composeNetwork]})
		}
	}
	return hint(mode.OnNetwork, name, known, "docker network ls lists those that there are")
}

// hint tells how to list all if no name is similar.
func hint(kind, name string, known []called, list string) string {
	found := meant(name, known)
	if len(found) == 0 {
		return list
	}
	return "did you mean " + kind + strings.Join(found, " or "+kind) + "?"
}

const mostMeant = 3

// meant returns those with that name in Compose's file or, if there are none, those with a similar
// name.
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
