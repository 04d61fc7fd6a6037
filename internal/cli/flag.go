package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
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

// add adds flags to those of a command. The help of a backend's flag begins with the backend's
// name, except for the lab's.
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

// bounded is the value of a flag with bounds, which are checked when the command line is parsed.
type bounded[T int | int64 | uint64 | float64 | time.Duration] struct {
	to          *T
	least, most T
	orZero      bool   // also accepts 0
	kind        string // as shown in help texts
	parse       func(string) (T, error)
	format      func(T) string
}

func (b *bounded[T]) Type() string { return b.kind }

// String returns "" for a value that the user could not give.
func (b *bounded[T]) String() string {
	if *b.to == 0 && b.least > 0 && !b.orZero {
		return ""
	}
	return b.format(*b.to)
}

// Set parses the text and checks the bounds. pflag adds the flag's name to its errors.
func (b *bounded[T]) Set(s string) error {
	x, err := b.parse(s)
	var unclear interface{ Meant() string }
	if errors.As(err, &unclear) && unclear.Meant() != "" {
		if y, wrong := b.parse(unclear.Meant()); wrong == nil && !b.allows(y) {
			x, err = y, strconv.ErrRange // its hint would be refused
		}
	}
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return err
	case err == nil && b.allows(x):
		*b.to = x
		return nil
	}
	text := fmt.Sprintf("must be from %s to %s", b.format(b.least), b.format(b.most))
	if b.most == unlimited[T]() {
		switch _, time := any(b.least).(time.Duration); {
		case time && x < b.least && b.least == 1:
			text = "must be more than 0"
		case x < b.least:
			text = "must be at least " + b.format(b.least)
		case time:
			text = err.Error() // the bound in digits would be hard to read
		}
	}
	if b.orZero {
		text += ", or 0"
	}
	return boundsError(text)
}

// allows reports whether x is within the bounds. NaN is not.
func (b *bounded[T]) allows(x T) bool {
	return x >= b.least && x <= b.most || b.orZero && x == 0
}

type boundsError string

func (e boundsError) Error() string { return string(e) }

func unlimited[T int | int64 | uint64 | float64 | time.Duration]() (most T) {
	switch m := any(&most).(type) {
	case *int:
		*m = math.MaxInt
	case *int64:
		*m = math.MaxInt64
	case *uint64:
		*m = math.MaxUint64
	case *float64:
		*m = math.MaxFloat64
	case *time.Duration:
		*m = math.MaxInt64
	}
	return most
}

func wholeFlag(to *int, preset, least, most int) pflag.Value {
	*to = preset
	return &bounded[int]{to: to, least: least, most: most, kind: "int", format: strconv.Itoa,
		parse: func(s string) (int, error) {
			n, err := strconv.ParseInt(s, 0, strconv.IntSize)
			return int(n), plainly(err, "must be a whole number")
		}}
}

func seedFlag(to *uint64) pflag.Value {
	return &bounded[uint64]{to: to, most: math.MaxUint64, kind: "uint64",
		format: func(n uint64) string { return strconv.FormatUint(n, 10) },
		parse: func(s string) (uint64, error) {
			n, err := strconv.ParseUint(s, 0, 64)
			return n, plainly(err, "must be a whole number")
		}}
}

func numberFlag(to *float64, preset, least, most float64) pflag.Value {
	*to = preset
	return &bounded[float64]{to: to, least: least, most: most, kind: "float64",
		format: func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) },
		parse: func(s string) (float64, error) {
			x, err := strconv.ParseFloat(s, 64)
			return x, plainly(err, "must be a number")
		}}
}

func timeFlag(to *time.Duration, preset, least, most time.Duration) *bounded[time.Duration] {
	*to = preset
	return &bounded[time.Duration]{to: to, least: least, most: most, kind: "duration",
		format: units.FormatTime, parse: units.ParseTime}
}

func sizeFlag(to *int64, preset, least, most int64) pflag.Value {
	*to = preset
	return &bounded[int64]{to: to, least: least, most: most, kind: "size", format: units.FormatSize,
		parse: units.ParseSize}
}

// rateFlag returns the value of a flag for a rate in bit/s.
func rateFlag(to *float64, preset, least, most float64) pflag.Value {
	*to = preset
	return &bounded[float64]{to: to, least: least, most: most, kind: "rate",
		format: units.FormatRate, parse: units.ParseRate}
}

// shareFlag returns the value of a flag for a share, which is given in per cent or as a fraction.
func shareFlag(to *float64, preset float64) pflag.Value {
	*to = preset
	return &bounded[float64]{to: to, most: 1, kind: "share", format: units.FormatShare,
		parse: units.ParseShare}
}

// plainly replaces Go's error with want, which describes what the text must be. It keeps the error
// of a number that is too large, for the check of bounds.
func plainly(err error, want string) error {
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return err
	}
	return errors.New(want)
}

func parseOne[T any](word string, parse func(string) (T, error)) (T, error) {
	v, err := parse(word)
	if err != nil {
		return v, usage(err, "")
	}
	return v, nil
}

// parseAll parses words. Repeated words count once. The error names all unknown words.
func parseAll[T comparable](words []string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	var unknown *suggest.UnknownError
	for _, w := range words {
		v, err := parse(w)
		var u *suggest.UnknownError
		switch {
		case errors.As(err, &u) && unknown == nil:
			unknown = u
		case errors.As(err, &u):
			if !slices.Contains(unknown.Words, w) {
				unknown.Words = append(unknown.Words, u.Words...)
			}
		case err != nil:
			return nil, usage(err, "")
		case !slices.Contains(out, v):
			out = append(out, v)
		}
	}
	if unknown != nil {
		return nil, usage(unknown, "")
	}
	return out, nil
}

const allModes = "all"

func parseModes(words, on []string) ([]mode.Name, error) {
	if slices.Contains(words, allModes) {
		return modesOn(on), nil
	}
	for _, w := range words {
		if _, _, host, _ := addressIn(w); host != "" {
			return nil, usage(fmt.Errorf("%q is an address, not a mode", w), asRoutes([]string{w}))
		}
		if _, err := mode.ParseName(w); err != nil && meant(w) != "" {
			return nil, usage(err, meant(w))
		}
	}
	return parseAll(words, mode.ParseName)
}

// meant returns commands that take a word that is no mode, because it is a port, a recipe or a backend,
// or "".
func meant(word string) string {
	if n, err := strconv.ParseUint(word, 10, 16); err == nil && n > 0 {
		return fmt.Sprintf("toll ports %d shows who answers that port, %s where its requests wait", n,
			remedy.AsRoot(fmt.Sprintf("toll trace --attach %d", n)))
	}
	if slices.ContainsFunc(program.Recipes(), func(r program.Recipe) bool {
		return r.Name == word
	}) {
		return "toll run --recipe " + word
	}
	if slices.Contains(backendNames(), word) {
		return "--on " + word + " builds the modes there"
	}
	return ""
}

var tuneWords = strings.Join(mode.Forms(), ", ")

func parseWire(s string) (sample.Wire, error) { return parseOne(s, lab.ParseWire) }

func closed(what string, known ...string) func(string) (string, error) {
	return func(s string) (string, error) { return suggest.Parse(what, s, known) }
}

var parseLoad = closed("load", loadNames...)

type loadFlag struct {
	value pflag.Value
	put   func(of workload.Value, l *sample.Load) error
}

func newLoadFlag(of workload.Value) loadFlag {
	switch v := of.(type) {
	case workload.Whole:
		to := new(int)
		return loadFlag{wholeFlag(to, v.Preset, v.Least, v.Most),
			func(of workload.Value, l *sample.Load) error {
				of.(workload.Whole).Put(l, *to)
				return nil
			}}
	case workload.Number:
		to := new(float64)
		return loadFlag{numberFlag(to, v.Preset, v.Least, v.Most),
			func(of workload.Value, l *sample.Load) error {
				of.(workload.Number).Put(l, *to)
				return nil
			}}
	case workload.Size:
		to := new(int64)
		return loadFlag{sizeFlag(to, v.Preset, v.Least, v.Most),
			func(of workload.Value, l *sample.Load) error {
				of.(workload.Size).Put(l, *to)
				return nil
			}}
	case workload.Rate:
		to := new(float64)
		return loadFlag{rateFlag(to, 0, v.Least, v.Most),
			func(of workload.Value, l *sample.Load) error {
				of.(workload.Rate).Put(l, *to)
				return nil
			}}
	case workload.Choice:
		to := wordFlag(v.Preset)
		return loadFlag{&to, func(of workload.Value, l *sample.Load) error {
			v := of.(workload.Choice)
			if to != "" {
				if _, err := parseOne(string(to), closed(v.What, v.Words...)); err != nil {
					return err
				}
			}
			v.Put(l, string(to))
			return nil
		}}
	}
	to := toggleFlag(false)
	return loadFlag{&to, func(of workload.Value, l *sample.Load) error {
		of.(workload.Toggle).Put(l, bool(to))
		return nil
	}}
}

type wordFlag string

func (f *wordFlag) String() string { return string(*f) }
func (f *wordFlag) Type() string   { return "string" }

// Set accepts any word, which the load checks later.
func (f *wordFlag) Set(s string) error {
	*f = wordFlag(s)
	return nil
}

type toggleFlag bool

func (f *toggleFlag) String() string { return strconv.FormatBool(bool(*f)) }
func (f *toggleFlag) Type() string   { return "bool" }

func (f *toggleFlag) Set(s string) error {
	on, err := strconv.ParseBool(s)
	*f = toggleFlag(on)
	return err
}
