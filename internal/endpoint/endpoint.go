// Package endpoint makes visits to what somebody else runs: a language model's
// server (chat) or a database (sql), each reached in one or several ways. A way
// is a name and an address; the same server's published port, container address
// and host address are three. Each visit opens connections of its own, so that no
// visit inherits another's.
//
// Both kinds fit engine.Endpoints: Check finds out once whether each way answers,
// Paths describes them, Visit measures.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// MaxWays bounds how many ways are compared.
const MaxWays = 32

var named = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_.-]{0,39})=(.*)$`)

// Way is a way to an endpoint as the command line has it.
type Way struct{ Name, Address string }

// ParseWays reads NAME=ADDRESS or ADDRESS, whose name is its host and port then.
// Names must differ. Errors say which word is wrong, not what is in it: an
// address may hold a secret.
func ParseWays(words []string) ([]Way, error) {
	if len(words) > MaxWays {
		return nil, fmt.Errorf("%d ways, at most %d can be compared", len(words), MaxWays)
	}
	var out []Way
	seen := map[string]bool{}
	for i, w := range words {
		way := Way{Address: w}
		if m := named.FindStringSubmatch(w); m != nil {
			way = Way{m[1], m[2]}
		} else if u, err := url.Parse(w); err == nil && u.Host != "" {
			way.Name = u.Host
		}
		switch {
		case way.Address == "":
			return nil, fmt.Errorf("way %d has no address", i+1)
		case atBehindHost(way.Address):
			return nil, fmt.Errorf("way %d has an @ behind its host: write %%40 there, and no password at all", i+1)
		case way.Name == "":
			return nil, fmt.Errorf("way %d is neither NAME=URL nor a URL with a host", i+1)
		case seen[way.Name]:
			return nil, fmt.Errorf("two ways are called %s: name them, as in published=%s", way.Name, "URL")
		}
		seen[way.Name] = true
		out = append(out, way)
	}
	return out, nil
}

// atBehindHost reports whether an address has an @ where a URL's path or query
// is. Most likely it ends a password with a / ? or # in it, of which the front
// would be taken for a port, and printed.
func atBehindHost(address string) bool {
	_, rest, _ := strings.Cut(address, "//")
	end := strings.IndexAny(rest, "/?#")
	return end >= 0 && strings.Contains(rest[end:], "@")
}

// atOnce calls f for each of n sessions, all at once; if one fails the others are
// stopped, and the first failure is the error.
func atOnce(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			if errs[i] = f(ctx, i); errs[i] != nil {
				cancel(errOther)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, errOther) {
			return err
		}
	}
	return nil
}

// errOther is why a session stops whose fellow failed.
var errOther = errors.New("another session failed")

// paths describes ways by what was found at each.
func paths(ways []string, facts map[string]sample.Path) []sample.Path {
	out := make([]sample.Path, len(ways))
	for i, w := range ways {
		out[i] = facts[w]
	}
	return out
}
