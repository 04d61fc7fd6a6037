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

func (o *opener) containerHint(ctx context.Context, name string) string {
	var known []called
	var lists []string
	for _, e := range o.engines {
		lists = append(lists, e.Command()+" ps")
		all, err := dockerapi.Containers(ctx, e.API, client.ContainerListOptions{})
		if err != nil {
			continue
		}
		for _, c := range all {
			if len(c.Names) > 0 {
				known = append(known, called{strings.TrimPrefix(c.Names[0], "/"),
					c.Labels[composeService]})
			}
		}
	}
	return hint(mode.InContainer, name, known, "see "+strings.Join(lists, " and "))
}

func (o *opener) networkHint(ctx context.Context, name string) string {
	var known []called
	var lists []string
	for _, e := range o.engines {
		lists = append(lists, e.Command()+" network ls")
		all, err := e.API.NetworkList(ctx, client.NetworkListOptions{})
		if err != nil {
			continue
		}
		for _, n := range all.Items {
			known = append(known, called{n.Name, n.Labels[composeNetwork]})
		}
	}
	return hint(mode.OnNetwork, name, known, "see "+strings.Join(lists, " and "))
}

// hint suggests similar names, or returns list if there are none.
func hint(kind, name string, known []called, list string) string {
	found := meant(name, known)
	if len(found) == 0 {
		return list
	}
	return "did you mean " + kind + strings.Join(found, " or "+kind) + "?"
}

const mostMeant = 3

// meant returns the names of those that have the given name in a Compose file or, if there are
// none, a similar name.
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
