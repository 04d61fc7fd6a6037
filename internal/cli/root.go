package cli

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	secrets "github.com/bridgetoll/bridgetoll/internal/text/secret"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

func run(ctx context.Context, e env, args []string) int {
	e.args = args
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &output{Writer: e.stdout, gone: cancel}
	said := &output{Writer: e.stderr, gone: cancel}
	e.stdout, e.stderr = out, said
	root := newRoot(e)
	root.SetArgs(args)
	defer sayWaiting(e.stderr)()
	err := stoppedBy(ctx, out.result(root.ExecuteContext(ctx)))
	if left := unsaid(err); left != nil {
		// Text from flags and arguments is made printable here, without the passwords in it.
		typed := secrets.InArguments(args)
		say(e.stderr, "toll: error: "+typed.Hide(printable.Line(path.OneLine(left))))
		if h := hintOf(err, left); h != "" {
			say(e.stderr, "toll: hint: "+typed.Hide(printable.Line(retyped(h, args))))
		}
	}
	if text := withoutSudo(out, said); text != "" {
		say(e.stderr, "toll: note: "+text)
	}
	return exitCode(err)
}

// sameCommand matches what stands in hints for the command that was typed.
var sameCommand = regexp.MustCompile(`\btoll (\w+ )?…`)

// retyped returns a hint in which the command that was typed has its arguments, so that it can be
// pasted. A long one stays as it is.
func retyped(hint string, args []string) string {
	const most = 120
	line := sample.CommandLine(args)
	if len(line) > most || line != printable.Line(line) || slices.ContainsFunc(args, hasCommand) {
		return hint
	}
	return sameCommand.ReplaceAllLiteralString(hint, line)
}

// hasCommand reports whether an argument is a flag whose value is a command, which may have a password
// that only its program knows, or the value itself.
func hasCommand(arg string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return strings.ContainsAny(arg, " \t") || strings.HasPrefix(arg, "--") &&
		slices.Contains([]string{"client", "server", "ready"}, name)
}

// Manual returns toll's commands for manual pages, its version, and the time of the build's commit,
// or the epoch if the build was not stamped with one.
func Manual() (root *cobra.Command, of string, date time.Time) {
	date, err := time.Parse(time.RFC3339, stamped(debug.ReadBuildInfo()).time)
	if err != nil {
		date = time.Unix(0, 0).UTC()
	}
	return newRoot(env{stdout: io.Discard, stderr: io.Discard}), version, date
}

func newRoot(e env) *cobra.Command {
	root := &cobra.Command{
		Use:   "toll",
		Short: "What does your container network cost?",
		Long: `toll measures what a container's network mode costs. It builds the modes side by side,
sends real traffic over each, proves from packet counters that the bytes took the
expected path, and reports throughput, latency and CPU time with 95 % intervals.

It needs neither root nor Docker, and changes nothing on this machine: the modes
are built in private network namespaces. --on docker builds them with the
machine's own Docker Engine instead.`,
		Example: `  toll                                Docker's usual modes, in a minute
  toll compare bridge publish-proxy   two modes against --network host
  toll run --recipe redis             the usual modes under a real Redis
  toll ports 8080                     who answers a port, and by which route
  toll explain p99                    what a word of the output means`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noCommand,

		PersistentPreRunE: prepare,
	}
	e.root = root
	compare := newCompare(e)
	root.RunE = compare.RunE
	if os.Getenv(dockerEnv) != "" {
		root.Annotations = map[string]string{
			cobra.CommandDisplayNameAnnotation: "docker " + root.Name()}
	}
	root.Flags().AddFlagSet(compare.Flags())
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(compare, newLadder(e), newTrace(e), newAdvise(e), newScale(e), newMesh(e), newRun(e),
		newStream(e), newSQL(e), newPublished(e), newModes(e), newPath(e), newPorts(e),
		newReport(e), newPredict(e), newImage(e), newClean(e), newAgent(), newVersion(e))
	root.AddCommand(newDiff(e), newGate(e), newView(e))
	root.AddCommand(newFast(e))
	root.AddCommand(newExplain(e))
	root.AddCommand(newHistory(e))
	root.AddCommand(newKubernetes(e))
	forKubectl(root)
	completeValues(root)
	addTopics(root)
	helpful(root)
	return root
}

func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := seeHelp(c)
	if _, err := parseModes(args, backendNames()); err == nil {
		hint = "toll compare " + strings.Join(args, " ")
	} else if near := suggest.Words(args[0], commandNames(c)); len(near) > 0 {
		hint = "did you mean toll " + strings.Join(near, " or toll ") + "?"
	} else if h := hintOf(err, err); strings.HasPrefix(h, "did you mean ") {
		hint = strings.Replace(h, "did you mean ", "did you mean toll compare ", 1)
	}
	return usage(fmt.Errorf("unknown command %q", args[0]), hint)
}

func commandNames(root *cobra.Command) (names []string) {
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return names
}

func flagError(c *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		bare    *pflag.ValueRequiredError
		bad     *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(c, unknown)
	case errors.As(err, &bare):
		f := bare.GetFlag()
		hint := seeHelp(c)
		if preset := strings.Trim(f.DefValue, "[]"); preset != "" && preset != "0" {
			hint = "such as --" + f.Name + " " + preset
		}
		return usage(fmt.Errorf("--%s needs a value", f.Name), hint)
	case errors.As(err, &bad):
		return badValue(c, bad)
	}
	return usage(err, seeHelp(c))
}

func seeHelp(c *cobra.Command) string {
	if shortened(c) {
		return "see " + c.CommandPath() + " --" + helpAllFlag
	}
	return "see " + c.CommandPath() + " --help"
}

func badValue(c *cobra.Command, bad *pflag.InvalidValueError) error {
	flag, cause, hint := bad.GetFlag(), bad.Unwrap(), seeHelp(c)
	var (
		outside boundsError
		quotes  *csv.ParseError
	)
	switch {
	case errors.As(cause, &outside):
		return usage(fmt.Errorf("--%s %s: %w", flag.Name, bad.GetValue(), cause), "")
	case ownHint(cause) != "":
		hint = ownHint(cause)
	case errors.As(cause, &quotes): // from pflag's lists
		cause = errors.New("must be words separated by commas, without quotation marks")
	case flag.Value.Type() == "bool":
		cause = errors.New("must be true or false")
	}
	return usage(fmt.Errorf("--%s %q: %w", flag.Name, bad.GetValue(), cause), hint)
}

// publishFlags are flags of docker run that publish ports.
var publishFlags = map[string]bool{"p": true, "P": true, "publish": true, "publish-all": true}

// formerFlags has what replaces flags that toll had, after the command's name if other commands
// have them.
var formerFlags = map[string]string{
	"reverse":       "--load bulk-reverse",
	"sweeps":        "--rounds",
	"seconds":       "--window 2s",
	"no-history":    historyEnv.name + "=" + historyEnv.value + " in the environment",
	"try-file":      "--try @FILE",
	"no-stream":     "--load batch",
	"request-json":  "--prompt @FILE",
	"expect-now":    "--format expect",
	"on all":        "toll fast on all",
	"stream batch":  "--load chat,batch",
	"trace against": "--baseline",
}

func unknownFlag(c *cobra.Command, err *pflag.NotExistError) error {
	name, text := err.GetSpecifiedName(), error(err)
	if now := cmp.Or(formerFlags[c.Name()+" "+name], formerFlags[name]); now != "" {
		return usage(text, now)
	}
	if short := err.GetSpecifiedShortnames(); short != "" {
		name, text = short, fmt.Errorf("unknown flag: -%s", short)
	}
	if publishFlags[name] && strings.Contains(c.Use, "MODE") {
		return usage(text, "docker run's "+strings.TrimPrefix(text.Error(), "unknown flag: ")+
			" is the mode publish: "+c.CommandPath()+" publish")
	}
	near := suggest.Words(name, flagNames(c))
	if len(name) == 1 {
		near = slices.DeleteFunc(flagNames(c), func(n string) bool { return n[0] != name[0] })
	}
	if f := cutCommand(c); f != nil && (len(name) == 1 || len(near) == 0) {
		return usage(text, fmt.Sprintf("quote the whole command: --%s '%s …'", f.Name, f.Value))
	}
	if len(near) > 0 {
		return usage(text, "did you mean --"+strings.Join(near, " or --")+"?")
	}
	if f, ok := format.Find(name); ok && c.Flags().Lookup("format") != nil {
		return usage(text, "--format "+f.Name)
	}
	var have []string
	for _, other := range c.Root().Commands() {
		if f := other.Flags().Lookup(name); !other.Hidden && f != nil && !f.Hidden {
			have = append(have, other.CommandPath())
		}
	}
	if len(have) > 0 {
		return usage(text, fmt.Sprintf("--%s is a flag of %s", name, strings.Join(have, ", ")))
	}
	return usage(text, seeHelp(c))
}

// cutCommand returns the flag whose value is the first word of a command, or nil. What is taken for
// a flag of toll may then be the command's.
func cutCommand(c *cobra.Command) (cut *pflag.Flag) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if word := f.Annotations[asWord]; len(word) > 0 && strings.HasPrefix(word[0], "COMMAND") &&
			!strings.ContainsAny(f.Value.String(), " @\n") {
			cut = f
		}
	})
	return cut
}

func flagNames(c *cobra.Command) (names []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// checkEmpty returns an error for an empty value, such as that of --save "$FILE" if FILE is not
// set.
func checkEmpty(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		list, is := f.Value.(pflag.SliceValue)
		empty := is && len(list.GetSlice()) == 0 || !is && f.Value.String() == ""
		if empty && err == nil {
			err = usage(fmt.Errorf("--%s is empty", f.Name),
				"leave it out for the default, or see "+c.CommandPath()+" --help")
		}
	})
	return err
}

// nameStdout replaces the file "-" of --output and --save by the standard output.
func nameStdout(c *cobra.Command) {
	for _, name := range []string{outputFlag, saveFlag} {
		if f := c.Flags().Lookup(name); f != nil && f.Value.String() == "-" {
			_ = f.Value.Set("/dev/stdout") // a string
		}
	}
}

func prepare(c *cobra.Command, _ []string) error {
	if askedForAll(c) {
		return &failure{code: exitOK}
	}
	nameStdout(c)
	return cmp.Or(checkSwitches(c), checkEmpty(c), checkExclusive(c), ownHeadroom())
}

// An envSwitch is an environment variable that commands with the flag obey if it has this value.
type envSwitch struct{ name, value, flag string }

func (s envSwitch) set() bool { return os.Getenv(s.name) == s.value }

// checkSwitches refuses values without a meaning, such as TOLL_BUSY=1, because the user relies on
// them.
func checkSwitches(c *cobra.Command) error {
	for _, s := range []envSwitch{busyEnv, historyEnv} {
		if v := os.Getenv(s.name); v != "" && !s.set() && c.Flags().Lookup(s.flag) != nil {
			return usage(fmt.Errorf("the environment has %s=%q", s.name, v),
				fmt.Sprintf("use %s=%s, or unset it", s.name, s.value))
		}
	}
	return nil
}

var historyEnv = envSwitch{"TOLL_HISTORY", "off", saveFlag}

// busyEnv also silences the warning before the run.
var busyEnv = envSwitch{"TOLL_BUSY", "yes", "busy"}
