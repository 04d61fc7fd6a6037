package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

const helpWidth = 80

type named struct {
	title string
	names []string
}

var flagGroups = []named{
	{"What to measure", []string{"mode", "label", "from", "to", "ipv4", "ipv6", "baseline",
		"against", "trace", attachFlag, "hooks", "tune", "lever", "clients", "pairs", "procs", "shape", "dsn",
		"query", "model", "prompt", "request-json", "compressed", "recipe", "server", "client",
		"ready", "metric", "seconds", "no-root",
		"password-env", "api-key-env", "all", "parts", "measure"}},
	{"Input", []string{"from-file", "results", "rules", "confirm", "unclear", "last", "try", "try-file",
		"expect", "expect-now"}},
	{"Load", []string{"load", "sweep", "streams", "reverse", "write-size", "bidir", "bytes", "send",
		"nodelay", "request", "reply", "connections",
		"rate", "under-load", "bitrate", "datagram", "batch", "gso", "buffer", "sessions", "tokens",
		"tokens-per-second", "queries", "requests", "no-stream", "stall", "qps", "pin"}},
	{"How long", []string{"budget", "busy", "precision", "same", "rounds", "sweeps", "slice",
		"window", "timeout", "at-once", "seed", "lease"}},
	{"Where the modes are built", []string{
		"on", "wire", "congestion", "proxy", "engine", "ports", "parent", "keep-image", "others", "kubeconfig",
		"context", "namespace", "account", "nodes", "image", "unprivileged", "outside", "control",
		"peer", "peer-dial", "peers-network", "peer-binary", "peer-sudo"}},
	{"Output", []string{"details", "live", "format", "output", "save", "force", "no-history",
		"fail-above", "dry-run", "quiet"}},
}

const otherFlags = "Other flags"

// helpOf returns the help with all flags or only the main ones. Commands in examples are not
// broken, so that they can be copied.
func helpOf(c *cobra.Command, columns int, all bool) string {
	var b strings.Builder
	b.WriteString(paragraphs(cmp.Or(c.Long, c.Short+"."), columns))
	if c.Runnable() || c.HasAvailableSubCommands() {
		section(&b, "Usage", "  "+strings.Join(format.Wrap(usageLine(c), columns-2), "\n  ")+"\n")
	}
	if c.HasExample() {
		section(&b, "Examples", examples(c.Example, columns))
	}
	if c.HasAvailableSubCommands() {
		commandLists(&b, c, columns)
	}
	flags := c.Flags()
	if !c.HasParent() { // the flags of toll compare are in its own help
		flags = pflag.NewFlagSet("", pflag.ContinueOnError)
	}
	left := 0
	if !all {
		flags, left = selected(c, flags)
	}
	groups := grouped(flags)
	if len(groups) == 1 {
		groups[0].title = "Flags"
	}
	for _, g := range groups {
		lines := ""
		for _, f := range g.flags {
			lines += flagText(f, columns)
		}
		section(&b, g.title, lines)
	}
	b.WriteString("\n")
	if left > 0 {
		b.WriteString(wrap(fmt.Sprintf("%d more flags: %s --%s", left, c.CommandPath(),
			helpAllFlag), "", columns))
	}
	for _, line := range footer(c) {
		b.WriteString(wrap(line, "", columns))
	}
	return b.String()
}

func section(b *strings.Builder, title, text string) {
	fmt.Fprintf(b, "\n%s:\n%s", title, text)
}

func usageLine(c *cobra.Command) string {
	if !c.HasParent() {
		return "toll [COMMAND] [flags]"
	}
	line := c.CommandPath()
	if _, args, ok := strings.Cut(c.Use, " "); ok {
		line += " " + args
	}
	if c.HasAvailableFlags() {
		line += " [flags]"
	}
	return line
}

func commandLists(b *strings.Builder, c *cobra.Command, columns int) {
	left := slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool {
		return !sub.IsAvailableCommand() && sub.Name() != "help"
	})
	list := func(title string, of func(*cobra.Command) bool) {
		lines := ""
		for _, sub := range left {
			if of(sub) {
				lines += entry("  "+sub.Name(), sub.Short, len("  completion  "), columns)
			}
		}
		if lines != "" {
			section(b, title, lines)
		}
	}
	for _, g := range commandGroups {
		slices.SortStableFunc(left, func(a, b *cobra.Command) int {
			return slices.Index(g.names, a.Name()) - slices.Index(g.names, b.Name())
		})
		list(g.title, func(sub *cobra.Command) bool { return sub.GroupID == g.title })
	}
	list("Commands", func(sub *cobra.Command) bool { return sub.GroupID == "" })
}

type flagGroup struct {
	title string
	flags []*pflag.Flag
}

func grouped(fl *pflag.FlagSet) []flagGroup {
	out := make([]flagGroup, len(flagGroups)+1)
	for i, g := range flagGroups {
		out[i].title = g.title
		for _, n := range g.names {
			if f := fl.Lookup(n); f != nil && !f.Hidden {
				out[i].flags = append(out[i].flags, f)
			}
		}
	}
	rest := &out[len(flagGroups)]
	rest.title = otherFlags
	fl.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden && !slices.ContainsFunc(flagGroups, func(g named) bool {
			return slices.Contains(g.names, f.Name)
		}) {
			rest.flags = append(rest.flags, f)
		}
	})
	return slices.DeleteFunc(out, func(g flagGroup) bool { return len(g.flags) == 0 })
}

var valueNames = map[string]string{
	"from":          "PLACE",
	"to":            "TARGET",
	"load":          "LOAD",
	"on":            "BACKEND",
	"baseline":      "MODE",
	"mode":          "MODE",
	"label":         "KEY",
	"tune":          "TUNE",
	"lever":         "LEVER",
	"format":        "FORMAT",
	"send":          "HOW",
	"nodelay":       "on|off",
	"pin":           "CPUS",
	"rules":         "FILE",
	"confirm":       "N|FILE",
	"unclear":       "fail|pass",
	"wire":          "WIRE",
	"congestion":    "NAME",
	"engine":        "NAME",
	"parent":        "CARD",
	"nodes":         "NODES",
	"image":         "IMAGE",
	"control":       "ADDRESS",
	"kubeconfig":    "FILE",
	"context":       "NAME",
	"namespace":     "NAME",
	"account":       "NAME",
	"peer":          "HOST",
	"peer-dial":     "ADDRESS",
	"peers-network": "NETWORK",
	"peer-binary":   "FILE",
	"dsn":           "URL",
	"recipe":        "NAME",
	"server":        "COMMAND",
	"client":        "COMMAND",
	"ready":         "WHEN",
	"metric":        "METRIC",
	"query":         "SQL",
	"model":         "NAME",
	"password-env":  "VARIABLE",
	"api-key-env":   "VARIABLE",
	"sweep":         "OPTION=VALUES",
	"shape":         "SHAPE",
	"procs":         "CxP",
	"output":        "FILE", "save": "FILE", "results": "FILE", "against": "FILE", "try-file": "FILE", "proxy": "FILE",
}

var typeNames = map[string]string{
	"bool":     "",
	"int":      "N",
	"uint64":   "N",
	"float64":  "N",
	"duration": "TIME",
	"size":     "SIZE",
	"rate":     "RATE",
	"share":    "PERCENT",
	"string":   "TEXT", "stringSlice": "LIST", "stringArray": "TEXT",
}

func flagText(f *pflag.Flag, columns int) string {
	value, text := pflag.UnquoteUsage(f)
	if !strings.Contains(f.Usage, "`") {
		value = cmp.Or(valueNames[f.Name], typeNames[f.Value.Type()])
	}
	name := "  --" + f.Name
	if f.Shorthand != "" {
		name = "  -" + f.Shorthand + ", --" + f.Name
	}
	if value != "" {
		name += " " + value
	}
	if preset := strings.Trim(f.DefValue, "[]"); preset != "" && preset != "false" &&
		preset != "0" && !strings.Contains(text, "(default") {
		text += " (default " + preset + ")"
	}
	return entry(name, text, len("  --write-size SIZE  "), columns)
}

func entry(name, text string, at, columns int) string {
	const tooNarrow = 50 // columns: the text goes below the name
	if columns < tooNarrow {
		return name + "\n" + wrap(text, "      ", columns)
	}
	body := wrap(text, strings.Repeat(" ", at), columns)
	if ansi.StringWidth(name)+2 > at {
		return name + "\n" + body
	}
	return name + body[ansi.StringWidth(name):]
}

func footer(c *cobra.Command) []string {
	if c.HasParent() {
		return []string{"Exit codes: toll help exit-codes. Words of the output: toll explain WORD."}
	}
	return []string{
		`Without a command toll is "toll compare".`,
		"Flags of a command: toll COMMAND --help",
		"Words of the output: toll explain WORD",
		"Topics: " + strings.Join(topicNames(), ", ") + " (toll help TOPIC)",
	}
}

const helpAllFlag = "help-all"

// mainFlags lists the flags in each command's short help. Commands without an entry show all flags.
var mainFlags = map[string][]string{
	"compare": {"from", "load", "sweep", "tune", "baseline", "ipv6", "pin", "budget", "on", "peer",
		"live", "details", "format", "save"},
	"ladder": {"from", "trace", "load", "pin", "budget", "on", "peer", "live", "details",
		"format", "save"},
	"trace": {"from", "to", "against", attachFlag, "hooks", "load", "tune", "budget", "on", "live", "details",
		"format", "save"},
	"advise": {"from", "to", "load", "lever", "budget", "on", "live", "details", "format", "save"},
	"path":   {"from", "to", "ipv6", "tune", "on", "peer", "engine", "format", "output"},
	"scale": {"from", "load", "clients", "pairs", "procs", "shape", "budget", "on", "details",
		"format", "save"},
	"run": {"recipe", "server", "client", "ready", "metric", "from", "budget", "on", "peer",
		"details", "format", "save"},
	"mesh": {"mode", "nodes", "load", "budget", "on", "format", "save"},
	"stream": {"from", "peer", "model", "prompt", "tokens", "sessions", "batch", "api-key-env",
		"budget", "details", "format", "save"},
	"sql": {"from", "peer", "query", "queries", "sessions", "password-env", "budget", "details",
		"format", "save"},
}

const mostShown = 24

// mainFlagsOf returns the command's entry in mainFlags, whose key is the command's path without
// toll.
func mainFlagsOf(c *cobra.Command) []string {
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	return mainFlags[path]
}

func shortened(c *cobra.Command) bool { return mainFlagsOf(c) != nil }

// addHelpAll adds --help-all if the help leaves flags out.
func addHelpAll(c *cobra.Command) {
	if shortened(c) || !c.HasParent() {
		c.Flags().Bool(helpAllFlag, false, "show all flags of this command")
		_ = c.Flags().MarkHidden(helpAllFlag)
	}
	for _, below := range c.Commands() {
		addHelpAll(below)
	}
}

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

func selected(c *cobra.Command, fl *pflag.FlagSet) (shown *pflag.FlagSet, left int) {
	if !shortened(c) {
		return fl, 0
	}
	shown = pflag.NewFlagSet("", pflag.ContinueOnError)
	fl.VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden || f.Name == "help":
		case slices.Contains(mainFlagsOf(c), f.Name):
			shown.AddFlag(f)
		default:
			left++
		}
	})
	return shown, left
}
