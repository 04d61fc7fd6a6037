package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(fmt.Errorf("%s takes no arguments, %q was given", c.CommandPath(), args[0]),
			"see "+c.CommandPath()+" --help")
	}
	return nil
}

// oneArgument returns the check of a command that takes one argument. example is a valid command line.
func oneArgument(what, example string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return usage(fmt.Errorf("%s takes one %s, %d were given", c.Name(), what, len(args)), example)
	}
}

// parsePort returns the port that word names. example is a valid command line for the hint.
func parsePort(word, example string) (uint16, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(word, ":"), 10, 16)
	if err != nil || n == 0 {
		return 0, usage(fmt.Errorf("%q is not a port: must be from 1 to 65535", word), example)
	}
	return uint16(n), nil
}

// isRoute reports whether a word is a route. Only routes contain one of ".:=".
func isRoute(w string) bool { return strings.ContainsAny(w, ".:=") }

func splitRoutes(args []string) (modes, routes []string) {
	for _, w := range args {
		if isRoute(w) {
			routes = append(routes, w)
		} else {
			modes = append(modes, w)
		}
	}
	return modes, routes
}
