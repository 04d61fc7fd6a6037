package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

var commandGroups = []named{
	{"Measure network modes", []string{"compare", "ladder", "trace", "scale", "run"}},
	{"Measure what is already running", []string{"stream", "sql", "mesh"}},
	{"See where packets go", []string{"path", "ports", "modes"}},
	{"Make it faster", []string{"advise", "fast"}},
	{"Read results", []string{"report", "diff", "history", "view", "gate", "predict", "published"}},
	{"Other commands", []string{"explain", "help", "completion", "image", "kubernetes", "clean",
		"version"}},
}

func helpful(root *cobra.Command) {
	root.SetHelpCommand(newHelp(root))
	root.InitDefaultHelpCmd()
	root.CompletionOptions.DisableNoDescFlag = true
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.Short = "Print the script that makes a shell complete toll's words"
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("toll completion needs a shell"), "toll completion bash")
			}
			_, err := closed("shell", commandNames(c)...)(args[0])
			return usage(err, "")
		}
	}
	keepAtInWords(root)
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range root.Commands() {
			if slices.Contains(g.names, c.Name()) {
				c.GroupID = g.title
			}
		}
	}
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		fmt.Fprint(c.OutOrStdout(), helpOf(c, min(helpWidth, terminalWidth(c.OutOrStdout())),
			false))
	})
	addHelpAll(root)
}

func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:               "help [COMMAND]",
		Short:             "Show what a command does and its flags",
		ValidArgsFunction: oneOf(func() []string { return commandNames(root) }, one),
		RunE: func(_ *cobra.Command, args []string) error {
			c := root
			for _, a := range args {
				var next *cobra.Command
				for _, sub := range c.Commands() {
					if sub.Name() == a {
						next = sub
					}
				}
				if next == nil {
					_, err := closed("command", commandNames(c)...)(a)
					return usage(err, "")
				}
				c = next
			}
			return c.Help()
		},
	}
}

var topics = []struct {
	name, short string
	long        func() string
}{
	{"exit-codes", "What toll's exit codes mean", exitCodesHelp},
	{"environment", "The environment variables that toll reads", func() string {
		return environmentHelp
	}},
}

func topicNames() (names []string) {
	for _, t := range topics {
		names = append(names, t.name)
	}
	return names
}

func addTopics(root *cobra.Command) {
	for _, t := range topics {
		root.AddCommand(&cobra.Command{Use: t.name, Short: t.short, Long: t.long()})
	}
}

func exitCodesHelp() string {
	var b strings.Builder
	b.WriteString("toll ends with one of these codes:\n\n")
	for _, c := range exitCodes {
		b.WriteString(entry("  "+c.code, c.means, len("  130, 143, 129, 131  "), helpWidth))
	}
	b.WriteString(
		"\nAn error is one line, \"toll: error: …\", on standard error. A second line,\n" +
			"\"toll: hint: …\", says what you can do about it, if anything.")
	return b.String()
}

var environmentHelp = fmt.Sprintf(`toll reads these environment variables:

  NO_COLOR     if set, no colours
  TERM=dumb    no colours and no progress line
  COLUMNS      how wide output is in pipes and files, from 60 to 100 (default 80)
  CI           if set, no progress line: a line of text every %d s instead
  TOLL_BUSY    if yes, do not wait for a busy machine, as with --busy
  TOLL_HISTORY if off, keep no run and learn from none
  XDG_STATE_HOME
               where the history and journals are kept (default ~/.local/state)
  KUBECONFIG   the kubeconfig, as kubectl reads it
  DOCKER_HOST, DOCKER_CONTEXT, DOCKER_CONFIG
               the Docker daemon, as the docker command reads them
  CONTAINER_HOST
               the address of Podman's service
  PGPASSWORD   the password of toll sql for PostgreSQL (see --secret-env)

Where standard error is not a terminal, such as in a pipe, the progress line is
also a line of text every %d s. --quiet turns both off.`, beat, beat)
