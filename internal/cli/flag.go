package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// A flagDef is one flag of a command: everything that help, completion, errors and the commands in
// results files have to know of it. Help lists flags in the order in which they are added.
type flagDef struct {
	name, short string // short is one letter, or ""
	group       group
	value       pflag.Value // its kind and default
	word        string      // what help calls the value; "": by its kind
	help        string
	main        string   // the commands whose short help has the flag
	of          []string // the backends whose flag it is; nil: it belongs to none
	offer       []string // completions; a tab begins a description
	files       string   // the suffix of the files that completion offers
	not         string   // the flags that it excludes
	use         use
}

// use tells what commands in results files may contain.
type use int

const (
	// shows flags change what is printed, and are not recorded.
	shows use = 1 << iota
	// trusts flags name files, programs or machines. A command that is read from a results file may
	// not set them.
	trusts
)

// A group is the title of flags that help lists together.
type group string

const (
	toMeasure  group = "What to measure"
	toRead     group = "Input"
	toSend     group = "Load"
	howLong    group = "How long"
	where      group = "Where the modes are built"
	toWrite    group = "Output"
	otherFlags group = "Other flags"
)

var groups = []group{toMeasure, toRead, toSend, howLong, where, toWrite, otherFlags}

// The commands that measure, for flagDef.main.
const measuring = "compare ladder trace advise scale run mesh stream sql"

// The annotations of pflag's flags that hold what pflag has no field for.
const (
	inGroup = "group"
	asWord  = "word"
	mainOf  = "main"
	ofOnes  = "backends"
	offers  = "offers"
	ofFiles = "files"
	usedFor = "use"
	notWith = "not"
)

// add adds flags to those of a command. The help of a backend's flag begins with the backend's name,
// except for the lab's.
func add(fl *pflag.FlagSet, flags ...flagDef) {
	fl.SortFlags = false
	for _, x := range flags {
		help := x.help
		if len(x.of) > 0 && x.of[0] != sample.Lab {
			help = strings.Join(x.of, ", ") + ": " + help
		}
		f := fl.VarPF(x.value, x.name, x.short, help)
		if x.value.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
		x.describe(f)
	}
}

// describe puts into f what pflag has no field for.
func (x flagDef) describe(f *pflag.Flag) {
	f.Annotations = map[string][]string{inGroup: {string(x.group)}, asWord: {x.word},
		mainOf: strings.Fields(x.main), ofOnes: x.of, offers: x.offer, ofFiles: {x.files},
		usedFor: {strconv.Itoa(int(x.use))}, notWith: strings.Fields(x.not)}
}

func usedAs(f *pflag.Flag, u use) bool {
	n, _ := strconv.Atoi(note(f, usedFor)) // 0 for flags that add did not add
	return use(n)&u != 0
}

// checkExclusive returns an error if two flags were given that exclude each other.
func checkExclusive(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		for _, name := range f.Annotations[notWith] {
			if c.Flags().Changed(name) && err == nil {
				err = usage(fmt.Errorf("--%s and --%s exclude each other", f.Name, name),
					"leave one of them out")
			}
		}
	})
	return err
}

// note returns the flag's annotation, or "".
func note(f *pflag.Flag, name string) string { return strings.Join(f.Annotations[name], "") }

// isMain reports whether the command's short help has the flag.
func isMain(c *cobra.Command, f *pflag.Flag) bool {
	return c.HasParent() && !c.Parent().HasParent() &&
		slices.Contains(f.Annotations[mainOf], c.Name())
}

// offer sets the flag's completions, which the command decides.
func offer(fl *pflag.FlagSet, flag string, words []string) {
	_ = fl.SetAnnotation(flag, offers, words) // fails for flags that do not exist
}

// text is the value of a flag that takes any text.
func text(to *string, preset string) pflag.Value {
	*to = preset
	return (*wordFlag)(to)
}

// list is the value of a flag that takes words between commas.
func list(to *[]string, preset ...string) pflag.Value {
	fl := pflag.NewFlagSet("", pflag.ContinueOnError)
	fl.StringSliceVar(to, "list", preset, "")
	return fl.Lookup("list").Value
}

// texts is the value of a flag that takes a text, and may be repeated.
func texts(to *[]string) pflag.Value {
	fl := pflag.NewFlagSet("", pflag.ContinueOnError)
	fl.StringArrayVar(to, "texts", nil, "")
	return fl.Lookup("texts").Value
}

// toggle is the value of a flag that is on or off.
func toggle(to *bool) pflag.Value { return (*toggleFlag)(to) }
