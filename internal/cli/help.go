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

type named struct {
	title string
	names []string
}

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
	groups := grouped(c, flags)
	if len(groups) == 1 {
		groups[0].title = "Flags"
	}
	for _, g := range groups {
		lines := ""
		for _, f := range g.flags {
			lines += flagText(f, columns)
		}
		section(&b, string(g.title), lines)
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
	title group
	flags []*pflag.Flag
}

// grouped returns the flags by group, the command's main ones first.
func grouped(c *cobra.Command, fl *pflag.FlagSet) (out []flagGroup) {
	for _, g := range groups {
		of := flagGroup{title: g}
		fl.VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !f.Hidden &&
				group(cmp.Or(note(f, inGroup), string(otherFlags))) == g {
				of.flags = append(of.flags, f)
			}
		})
		slices.SortStableFunc(of.flags, func(a, b *pflag.Flag) int {
			return cmp.Compare(rankOf(c, a), rankOf(c, b))
		})
		if len(of.flags) > 0 {
			out = append(out, of)
		}
	}
	return out
}

func rankOf(c *cobra.Command, f *pflag.Flag) int {
	if isMain(c, f) {
		return 0
	}
	return 1
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
		value = cmp.Or(note(f, asWord), typeNames[f.Value.Type()])
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

// shortened reports whether the command's help leaves flags out.
func shortened(c *cobra.Command) (is bool) {
	c.Flags().VisitAll(func(f *pflag.Flag) { is = is || isMain(c, f) })
	return is
}

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
	shown.SortFlags = false
	fl.VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden || f.Name == "help":
		case isMain(c, f):
			shown.AddFlag(f)
		default:
			left++
		}
	})
	return shown, left
}

// paragraphs wraps text. Lines that begin with a space are wrapped only if they are too long.
func paragraphs(text string, columns int) string {
	var out strings.Builder
	var open []string
	kept := "" // an indented line that may continue in the next one
	end := func() {
		out.WriteString(wrap(strings.Join(open, " "), "", columns))
		if kept != "" {
			out.WriteString(hanging(kept, columns))
		}
		open, kept = nil, ""
	}
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "":
			end()
			out.WriteString("\n")
		case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
			line = strings.ReplaceAll(line, "\t", "  ")
			if text, ok := goesOn(kept, line); ok && columns < helpWidth {
				kept += " " + text
				continue
			}
			end()
			kept = line
		default:
			if kept != "" {
				end()
			}
			open = append(open, line)
		}
	}
	end()
	return out.String()
}

func examples(text string, columns int) string {
	out := ""
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		if _, _, ok := hung(line); ok {
			line = hanging(strings.TrimRight(line, "\n"), columns)
		}
		out += line
	}
	return out
}

// hanging wraps a line with a name and a text after at least two spaces. The text is indented to
// its start, or goes below the name if little room is left.
func hanging(line string, columns int) string {
	if ansi.StringWidth(line) <= columns {
		return line + "\n"
	}
	name, text, ok := hung(line)
	if !ok {
		text = strings.TrimLeft(line, " ")
		return wrap(text, line[:len(line)-len(text)], columns)
	}
	const least = 20 // columns of the text
	at := ansi.StringWidth(line) - ansi.StringWidth(text)
	if columns-at < least {
		return name + "\n" + wrap(text, "      ", columns)
	}
	return entry(name, text, at, columns)
}

// goesOn returns the text of a line that continues the description in the line before, at the same
// column.
func goesOn(before, line string) (text string, ok bool) {
	_, of, hangs := hung(before)
	text = strings.TrimLeft(line, " ")
	at := ansi.StringWidth(before) - ansi.StringWidth(of)
	return text, hangs && ansi.StringWidth(line)-ansi.StringWidth(text) == at
}

// hung splits a line at the first gap of two or more spaces after a word.
func hung(line string) (name, text string, ok bool) {
	rest := strings.TrimLeft(line, " ")
	i := strings.Index(rest, "  ")
	if i < 0 {
		return line, "", false
	}
	i += len(line) - len(rest)
	return line[:i], strings.TrimLeft(line[i:], " "), true
}

// wrap breaks text into lines. A word longer than columns gets its own line.
func wrap(text, margin string, columns int) string {
	var out strings.Builder
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && ansi.StringWidth(margin+line+" "+word) > columns {
			out.WriteString(margin + line + "\n")
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		out.WriteString(margin + line + "\n")
	}
	return out.String()
}

const helpWidth = 80

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
