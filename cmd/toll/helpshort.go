package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpAllFlag prints the help with all flags, for commands with many.
const helpAllFlag = "help-all"

// mainFlags are the flags in the short help of commands with many: those for a first run and most
// later ones. Commands without an entry show all.
var mainFlags = map[string][]string{
	"compare": {"from", "load", "sweep", "tune", "baseline", "ipv6", "pin", "budget", "on", "peer", "live", "details", "format", "save"},
	"ladder":  {"from", "load", "pin", "budget", "on", "peer", "live", "details", "format", "save"},
	"advise":  {"from", "load", "lever", "budget", "on", "live", "details", "format", "save"},
	"scale":   {"from", "load", "clients", "pairs", "procs", "shape", "budget", "on", "details", "format", "save"},
	"run":     {"recipe", "server", "client", "ready", "metric", "from", "budget", "on", "peer", "details", "format", "save"},
	"mesh":    {"mode", "nodes", "load", "budget", "on", "format", "save"},
	"stream":  {"from", "peer", "model", "prompt", "tokens", "sessions", "batch", "api-key-env", "budget", "details", "format", "save"},
	"sql":     {"from", "peer", "query", "queries", "sessions", "password-env", "budget", "details", "format", "save"},
}

// mostShown is the largest number of flags in a help without a selection.
const mostShown = 24

// shortened reports whether the help of a command shows only its main flags.
func shortened(c *cobra.Command) bool {
	return mainFlags[c.Name()] != nil && c.HasParent() && !c.Parent().HasParent()
}

// addHelpAll adds helpAllFlag to the commands with many flags.
func addHelpAll(root *cobra.Command) {
	for _, c := range append(root.Commands(), root) {
		if !shortened(c) && c != root {
			continue
		}
		c.Flags().Bool(helpAllFlag, false, "show all flags of this command")
		_ = c.Flags().MarkHidden(helpAllFlag)
	}
}

// askedForAll prints the help with all flags and returns true, if the user asked for it.
func askedForAll(c *cobra.Command) bool {
	f := c.Flags().Lookup(helpAllFlag)
	if f == nil || f.Value.String() != "true" {
		return false
	}
	if !c.HasParent() {
		c, _, _ = c.Find([]string{"compare"}) // the root has the flags of compare
	}
	out := c.OutOrStdout()
	fmt.Fprint(out, helpOf(c, min(helpWidth, terminalWidth(out)), true))
	return true
}

// selected returns the flags that a command's help shows, and the number of flags left out.
func selected(c *cobra.Command, fl *pflag.FlagSet) (shown *pflag.FlagSet, left int) {
	if !shortened(c) {
		return fl, 0
	}
	shown = pflag.NewFlagSet("", pflag.ContinueOnError)
	fl.VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden || f.Name == "help":
		case slices.Contains(mainFlags[c.Name()], f.Name):
			shown.AddFlag(f)
		default:
			left++
		}
	})
	return shown, left
}
