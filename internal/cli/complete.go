package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// The suffixes of files that are completed.
const resultsFile, machineFile = "jsonl", "json"

func completeValues(root *cobra.Command) {
	all := append(root.Commands(), root)
	for _, c := range root.Commands() {
		all = append(all, c.Commands()...)
	}
	for _, c := range all {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if complete := completionOf(f); complete != nil {
				// Only a flag that does not exist makes this fail.
				_ = c.RegisterFlagCompletionFunc(f.Name, complete)
			}
		})
		if complete := argumentsOf(c.Name()); complete != nil {
			c.ValidArgsFunction = complete
		}
	}
}

func argumentsOf(command string) cobra.CompletionFunc {
	switch command {
	case "compare", "ladder", "trace", "advise", "run", "scale", "modes":
		return oneOf(func() []string { return append(modeWords(), allModes) }, many)
	case "path":
		return oneOf(modeWords, one)
	case "trend":
		return oneOf(modeWords, many)
	case "view", "gate", "predict":
		return results(measuredRuns, one)
	case "report":
		return results(keptRuns, one)
	case "diff":
		return results(keptRuns, two)
	case "show":
		return oneOf(keptRuns, one)
	case "clean", "image", "kubernetes", "manifest", "mesh", "sql", "version", "stream", "ports":
		return oneOf(func() []string { return nil }, many)
	}
	return nil
}

func completionOf(f *pflag.Flag) cobra.CompletionFunc {
	words := func() []string { return f.Annotations[offers] }
	_, several := f.Value.(pflag.SliceValue)
	switch files := note(f, ofFiles); {
	case len(words()) > 0 && several:
		return listed(words)
	case len(words()) > 0:
		return oneOf(words, many)
	case files == resultsFile && !usedAs(f, shows):
		return results(measuredRuns, many)
	case files != "":
		return endingIn(files)
	}
	return nil
}

const (
	one  = 1
	two  = 2
	many = 1000
)

func oneOf(of func() []string, most int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) (
		[]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		left := slices.DeleteFunc(slices.Clone(of()), func(w string) bool {
			name, _, _ := strings.Cut(w, "\t")
			return slices.Contains(args, name)
		})
		return left, cobra.ShellCompDirectiveNoFileComp
	}
}

func listed(of func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) (
		[]cobra.Completion, cobra.ShellCompDirective) {
		var before []string
		at := strings.LastIndex(typed, ",") + 1
		if at > 0 {
			before = strings.Split(typed[:at-1], ",")
		}
		var out []cobra.Completion
		for _, w := range of() {
			if name, _, _ := strings.Cut(w, "\t"); !slices.Contains(before, name) {
				out = append(out, typed[:at]+w)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// keptRuns returns the names of the kept runs, newest first, or nil if the history cannot be read.
func keptRuns() []string { return runsThat(func(trend.Entry) bool { return true }) }

// measuredRuns returns the names of the kept runs that are results files, as keptRuns does.
// Requests that were watched are none.
func measuredRuns() []string { return runsThat(func(e trend.Entry) bool { return !e.Watched() }) }

func runsThat(fit func(trend.Entry) bool) (out []string) {
	l, err := listHistory(0)
	if err != nil {
		return nil
	}
	for _, e := range l.Runs {
		if e.Error == "" && fit(e) {
			out = append(out, e.Name()+"\t"+e.CommandLine())
		}
	}
	return out
}

// results completes results files and, after an @, the names of runs.
func results(runs func() []string, most int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) (
		[]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if strings.HasPrefix(typed, "@") {
			return runs(), cobra.ShellCompDirectiveNoFileComp |
				cobra.ShellCompDirectiveKeepOrder
		}
		return []cobra.Completion{resultsFile}, cobra.ShellCompDirectiveFilterFileExt
	}
}

func endingIn(ending string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return []cobra.Completion{ending}, cobra.ShellCompDirectiveFilterFileExt
	}
}

func modeWords() []string {
	var out []string
	for _, m := range mode.All() {
		out = append(out, string(m.Name)+"\t"+m.Docker)
	}
	return out
}

func loadWords(names []string) []string {
	var out []string
	for _, n := range names {
		w, _ := workload.Find(n)
		out = append(out, n+"\t"+w.Gist)
	}
	return out
}

// targetWords returns the words of --to.
func targetWords() []string {
	return []string{"loopback\t127.0.0.1", "loopback6\t::1", "address\tthe machine's own",
		"address6\tthe machine's own, of IPv6",
		"container\tthe container's own", "container6\tthe container's own, of IPv6",
		"outside\ta server on another machine",
		"outside6\ta server on another machine, of IPv6"}
}

// tuneStarts returns completions for tunes. They end at the = where many values are possible.
func tuneStarts() (out []string) {
	for _, form := range mode.Forms() {
		key, values, _ := strings.Cut(form, "=")
		words := strings.Split(values, "|")
		if len(words) == 1 {
			words[0] = ""
		}
		for _, w := range words {
			out = append(out, key+"="+w)
		}
	}
	return out
}

func recipeWords() []string {
	var out []string
	for _, r := range program.Recipes() {
		out = append(out, r.Name)
	}
	return out
}

// bashWords makes bash complete @1 as one word: bash itself breaks words at an @, and replaces only
// what follows the last one.
var bashWords = strings.NewReplacer(
	"_completion -n =: ", "_completion -n =:@ ",
	"    __toll_handle_special_char \"$cur\" =\n", `    __toll_handle_special_char "$cur" =
    if [[ "${cur##*[:=]}" == *@* && "$COMP_WORDBREAKS" == *@* ]]; then
        local idx=${#COMPREPLY[*]}
        while ((--idx >= 0)); do
            COMPREPLY[idx]=${COMPREPLY[idx]#"${cur%@*}"}
        done
    fi
`)

func keepAtInWords(root *cobra.Command) {
	c, _, err := root.Find([]string{"completion", "bash"})
	if err != nil || c.Name() != "bash" {
		return
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		var script strings.Builder
		if err := c.Root().GenBashCompletionV2(&script, true); err != nil {
			return err
		}
		_, err := bashWords.WriteString(c.OutOrStdout(), script.String())
		return err
	}
}
