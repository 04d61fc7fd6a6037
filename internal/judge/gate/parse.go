package gate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// Sentence is a condition on figures: `bridge.throughput >= 0.9 of host from container`.
type Sentence struct {
	Text    string
	Mode    Name    // whose figure is compared
	Metric  string  // name as in a report, or an alias
	Compare string  // >=, <=, > or <
	Limit   float64 // in the unit, or as a ratio
	Unit    string  // base unit of the limit; "" for a plain number
	Of      Name    // mode that the ratio is to; zero: the limit is on the figure itself
	// filters for the cells; "" matches all
	From, To, Load, On string
	At                 string
	Pin                string
}

// Name is a mode, with a variant of it if Tune is set.
type Name struct{ Mode, Tune string }

func (n Name) of(c sample.Cell) bool { return c.Name() == n.Mode && string(c.Tune) == n.Tune }

func (n Name) String() string {
	if n.Tune == "" {
		return n.Mode
	}
	return n.Mode + "+" + n.Tune
}

// SyntaxError is the position and text of a parse error in a sentence.
type SyntaxError struct {
	Text string
	At   int // number of the character, from 1; 0: the end
	Err  error
	hint string
}

func (e *SyntaxError) Error() string {
	at := "at its end"
	if e.At > 0 {
		at = fmt.Sprintf("at character %d", e.At)
	}
	return fmt.Sprintf("%q, %s: %v", e.Text, at, e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

// Hint suggests a correction, or explains the form of a sentence.
func (e *SyntaxError) Hint() string {
	return cmp.Or(e.hint, hint.Of(e.Err), "for example bridge.throughput >= 0.9 of host, or publish-nat.latency_p99 <= 50us from container load rr")
}

// Aliases of metrics.
const (
	Latency = "latency"
	CPU     = "cpu" // CPU time per unit of the load's work
)

// Words holds the names that sentences about a results file may use in addition to the catalogues'.
type Words struct {
	Modes, Backends, Points []string
	Metrics                 map[string]string // those of programs, with their base units
}

// WordsOf returns the words of a file.
func WordsOf(f *sample.File) Words {
	var w Words
	for _, c := range f.Header.Plan.Cells {
		w.Modes, w.Backends = append(w.Modes, c.Name()), append(w.Backends, c.On)
	}
	if s := f.Header.Plan.Sweep; s != nil {
		for _, p := range s.Points {
			w.Points = append(w.Points, p.Name)
		}
	}
	w.Metrics = map[string]string{}
	for _, l := range f.Header.Plan.Loads {
		for _, g := range gauges(l) {
			w.Metrics[g.Name] = g.Unit
		}
	}
	return w
}

func gauges(l sample.Load) []sample.Gauge {
	if p := workload.ExecOf(l).Program; p != nil {
		return p.Gauges
	}
	return nil
}

const longest = 1000

// Parse reads a sentence. An error is a *SyntaxError.
func Parse(text string, known Words) (Sentence, error) {
	p := &parser{text: text, words: split(text), known: known, s: Sentence{Text: text}}
	if len(text) > longest || !utf8.ValidString(text) {
		p.text = text[:min(len(text), 20)]
		return p.s, p.fail(word{}, fmt.Errorf(
			"it has %d bytes; it must be UTF-8 text of at most %d", len(text), longest))
	}
	for _, step := range []func() error{p.subject, p.comparator, p.limit, p.qualifiers} {
		if err := step(); err != nil {
			return p.s, err
		}
	}
	return p.s, nil
}

// at is the number of the first character, from 1.
type word struct {
	text string
	at   int
}

type class int

const (
	space class = iota
	comparator
	number
	name
)

func split(text string) []word {
	var out []word
	before, at := space, 0
	for _, r := range text {
		at++
		now := classOf(r, before)
		switch {
		case now == number && len(out) == 0:
			now = name
		case r == '=' && before == name && len(out) == 1 && endsFigure(out[0].text):
			now = comparator
		}
		switch now {
		case space:
		case before:
			out[len(out)-1].text += string(r)
		default:
			out = append(out, word{string(r), at})
		}
		before = now
	}
	return out
}

// endsFigure reports whether an = after text does not belong to a setting of its mode: bridge.cpu=,
// but not bridge+mtu=.
func endsFigure(text string) bool {
	return strings.Contains(text[strings.LastIndex(text, "+")+1:], ".")
}

func classOf(r rune, before class) class {
	within := before == name
	switch {
	case unicode.IsSpace(r):
		return space
	// In bridge+mtu=9000, the = is part of the name.
	case strings.ContainsRune("<>≥≤", r), r == '=' && !within && before != number:
		return comparator
	case within:
		return name
	case r >= '0' && r <= '9', r == '.', r == ',',
		strings.ContainsRune("+-", r) && before != number:
		return number
	}
	return name
}

type parser struct {
	text  string
	words []word
	known Words
	s     Sentence
}

func (p *parser) fail(w word, err error) error {
	return &SyntaxError{Text: p.text, At: w.at, Err: err}
}

func (p *parser) hinted(w word, hint, format string, args ...any) error {
	return &SyntaxError{Text: p.text, At: w.at, Err: fmt.Errorf(format, args...), hint: hint}
}

// next removes and returns the next word, or an empty word at the end.
func (p *parser) next() word {
	if len(p.words) == 0 {
		return word{}
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

// subject parses MODE.METRIC. Both may contain dots: the last one with a known word on either side
// separates them.
func (p *parser) subject() error {
	w := p.next()
	if w.text == "" {
		return p.fail(w, errors.New("it is empty"))
	}
	dot := strings.LastIndex(w.text, ".")
	if dot < 0 {
		return p.hinted(w, w.text+".throughput, "+w.text+".latency or "+w.text+".cpu",
			"%q is not a figure: it has no metric", w.text)
	}
	metrics := append(append([]string{workload.Throughput, Latency, CPU},
		workload.MetricNames()...), slices.Sorted(maps.Keys(p.known.Metrics))...)
	var failed error
	half := false // failed is about a dot with a known word on one side
	for ; dot >= 0; dot = strings.LastIndex(w.text[:dot], ".") {
		m, err := p.mode(word{w.text[:dot], w.at})
		metric := w.text[dot+1:]
		known := slices.Contains(metrics, metric)
		if err == nil && known {
			p.s.Mode, p.s.Metric = m, metric
			return nil
		}
		if now := err == nil || known; failed == nil || now && !half {
			half = now
			if failed = err; err == nil {
				failed = p.fail(word{at: w.at + utf8.RuneCountInString(w.text[:dot+1])},
					unknown("metric", metric, metrics))
			}
		}
	}
	return failed
}

func (p *parser) mode(w word) (Name, error) {
	n, err := ParseName(w.text, p.known.Modes)
	if err != nil {
		return n, p.fail(w, err)
	}
	return n, nil
}

// ParseName parses a mode or a variant of one, with its settings in any order. own are further
// names, such as those of endpoints. The error suggests a correction.
func ParseName(text string, own []string) (Name, error) {
	if slices.Contains(own, text) { // it may contain a plus
		return Name{Mode: text}, nil
	}
	known := slices.Clip(own)
	base, tune, tuned := strings.Cut(text, "+")
	for _, m := range mode.Names() {
		known = append(known, string(m))
		rest, ok := strings.CutPrefix(text+"+", string(m)+"+")
		if ok && len(m) > len(base) { // the mode's name contains a plus
			base, tune, tuned = string(m), strings.TrimSuffix(rest, "+"), rest != ""
		}
	}
	if !slices.Contains(known, base) {
		return Name{}, unknown("mode", base, known)
	}
	if !tuned {
		return Name{Mode: base}, nil
	}
	tunes, err := mode.ParseTunes(tune)
	return Name{base, string(tunes)}, err
}

func unknown(what, word string, known []string) error {
	var once []string
	for _, k := range known {
		if !slices.Contains(once, k) {
			once = append(once, k)
		}
	}
	return &suggest.UnknownError{What: what, Words: []string{word}, Known: once}
}

func (p *parser) comparator() error {
	w := p.next()
	p.s.Compare = strings.NewReplacer("≥", ">=", "≤", "<=").Replace(w.text)
	switch p.s.Compare {
	case ">=", "<=", ">", "<":
		return nil
	case "=>", "=<":
		return p.hinted(w, "did you mean "+p.s.Compare[1:]+"=?", "unknown comparator %q", w.text)
	case "=", "==":
		return p.hinted(w, "use >= or <=", "a measured figure never equals a number exactly")
	case "":
		return p.hinted(w, "comparators are: >=, <=, >, <", "a comparator is missing")
	}
	return p.hinted(w, "comparators are: >=, <=, >, <", "unknown comparator %q", w.text)
}

// joined returns the next words as one if there is no space between them: split makes two words of
// 16k, or of 127.0.0.1:80.
func (p *parser) joined() word {
	w := p.next()
	for w.text != "" && len(p.words) > 0 && p.words[0].at == w.at+utf8.RuneCountInString(w.text) {
		w.text += p.next().text
	}
	return w
}

// qualifiers are the words that may follow a limit, each with its value.
var qualifiers = []string{"from", "to", "load", "on", "at", "pin"}

// qualifiers parses from PLACEMENT, to TARGET, load LOAD, on BACKEND, at POINT and pin PIN, in any
// order.
func (p *parser) qualifiers() error {
	var loads []string
	for _, l := range workload.All() {
		loads = append(loads, l.Name)
	}
	var from []string
	for _, f := range mode.Placements() {
		from = append(from, string(f))
	}
	all := []struct { // in the order of qualifiers
		to    *string
		known []string
	}{
		{&p.s.From, append(from, sample.FromHere)},
		{&p.s.To, targetWords()},
		{&p.s.Load, loads},
		{&p.s.On, append(sample.Backends(), p.known.Backends...)},
		{&p.s.At, p.known.Points},
		{&p.s.Pin, []string{sample.PinFar, sample.PinNear}},
	}
	for len(p.words) > 0 {
		w := p.next()
		k := slices.Index(qualifiers, w.text)
		if k < 0 {
			return p.fail(w, unknown("word", w.text, qualifiers))
		}
		if *all[k].to != "" {
			return p.fail(w, fmt.Errorf("%s is given twice", w.text))
		}
		value := p.joined()
		if value.text == "" {
			return p.hinted(value, "", "a word is missing after %s", w.text)
		}
		if !slices.Contains(all[k].known, value.text) {
			if w.text == "at" && len(p.known.Points) == 0 {
				return p.hinted(w, "leave it out, or toll compare --sweep",
					"the run is not a sweep: it has no points")
			}
			what := map[string]string{"from": "placement", "to": "target", "load": "load",
				"on": "backend", "at": "point", "pin": "placement on CPUs"}[w.text]
			return p.fail(value, unknown(what, value.text, all[k].known))
		}
		*all[k].to = value.text
	}
	return nil
}

func targetWords() (out []string) {
	for _, t := range mode.Targets() {
		out = append(out, string(t))
	}
	return out
}
