package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// topics are the help topics that are no commands.
var topics = []struct {
	name, short string
	long        func() string
}{
	{"exit-codes", "What toll's exit codes mean", exitCodesHelp},
	{"environment", "The environment variables that toll reads", func() string { return environmentHelp }},
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
		b.WriteString(entry("  "+c.code, c.means, len("  130, 143, 129  "), helpWidth))
	}
	b.WriteString("\nAn error is one line, \"toll: error: …\", on the standard error, with a line\n" +
		"\"toll: hint: …\" where something can be done about it.")
	return b.String()
}

// environmentHelp describes the environment variables.
var environmentHelp = fmt.Sprintf(`toll reads these environment variables:

  NO_COLOR     if set, no colours
  TERM=dumb    no colours and no progress line
  CI           if set, no progress line: a line of text every %d s instead
  TOLL_BUSY    if it is yes, as --busy: do not wait for a busy machine
  TOLL_HISTORY if it is off, as --no-history: keep no run and learn from none
  XDG_STATE_HOME
               where the history and journals are kept (default ~/.local/state)
  KUBECONFIG   the kubeconfig, as kubectl reads it
  DOCKER_HOST, DOCKER_CONTEXT, DOCKER_CONFIG
               the Docker daemon, as the docker command reads them
  PGPASSWORD   the password of toll sql for PostgreSQL (see --password-env)

Where standard error is not a terminal, such as in a pipe, the progress line is
also a line of text every %d s. --quiet turns both off.`, beat, beat)
