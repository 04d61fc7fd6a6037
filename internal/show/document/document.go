// Package document is the model of what a command prints: sections of paragraphs, lists, tables and
// routes, and the same content as JSON, figures and charts. Every format decides how content looks.
// Numbers are in base units, texts as people read them.
package document

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind names what a document is about, in messages.
type Kind string

const (
	AReport     Kind = "a report"
	APlan       Kind = "a plan"
	APrediction Kind = "a prediction"
	AComparison Kind = "published comparisons"
	ADifference Kind = "a difference"
	AGate       Kind = "a gate's answer"
	AHistory    Kind = "the history"
	ModeList    Kind = "a list of modes"
	APath       Kind = "a path"
	PortList    Kind = "ports"
	FastState   Kind = "the state of fast"
	Requests    Kind = "requests to a server"
)

type Document struct {
	Kind     Kind
	Sections []Section
	JSON     any              // nothing else is encoded as JSON
	Run      *Run             // nil: not about a run
	Figures  iter.Seq[Figure] // nil: none
	Data     *Table           // figures of a document without Figures, with a name for each column
	Page     func() Page      // nil: only the sections
	// Conditions lists what the user expects, and whether it holds.
	Conditions []Condition
}

// Add appends sections, except those that have neither a title nor blocks.
func (d *Document) Add(sections ...Section) {
	for _, s := range sections {
		if len(s.Title) > 0 || len(s.Blocks) > 0 {
			d.Sections = append(d.Sections, s)
		}
	}
}

// Condition is something that a user expects to hold.
type Condition struct {
	Text  string
	Holds Style // Good, Bad or Doubtful
	Why   string
}

type Section struct {
	Title  Text
	Level  int  // 0: of the document; 1: of the section above
	Close  bool // no empty line above it
	Blocks []Block
}

// Add appends blocks.
func (s *Section) Add(bs ...Block) { s.Blocks = append(s.Blocks, bs...) }

// Block is a Paragraph, a List, a Command, a Table or a Route.
type Block interface{ block() }

// Style is the meaning of a text to the reader.
type Style int

// The styles. Verdicts are Good, Bad or Doubtful.
const (
	Plain Style = iota
	Strong
	Faint
	Good
	Bad
	Doubtful
)

type Span struct {
	Text  string
	Style Style
}

type Text []Span

// Plainly returns text without a style.
func Plainly(s string) Text { return Text{{Text: s}} }

// Strongly returns bold text.
func Strongly(s string) Text { return Text{{s, Strong}} }

// Then returns the text with another span. It does not change t.
func (t Text) Then(s string, style Style) Text { return append(t[:len(t):len(t)], Span{s, style}) }

// String returns the text without styles.
func (t Text) String() string {
	var b strings.Builder
	for _, s := range t {
		b.WriteString(s.Text)
	}
	return b.String()
}

// Separators at which a paragraph may be broken into lines: between words or facts.
const (
	Words = " "
	Facts = " · "
)

// Paragraph has sentences, or a list of facts.
type Paragraph struct {
	Text  Text
	Level int    // of indentation
	Break string // Words or Facts; "": Words
	Style Style
}

type Topic string

const (
	Answer   Topic = "answer"
	Findings Topic = "findings"
	Failed   Topic = "failed"
	Skipped  Topic = "skipped"
	Warnings Topic = "warnings"
	Notes    Topic = "notes"
)

// List has points about one topic. Each point is a paragraph.
type List struct {
	Topic Topic
	Items []string
	Level int
}

// Command is a command line to copy.
type Command struct {
	Line  string
	Level int // 0: below a paragraph of level 1
}

// Route is the path from a client to a server.
type Route struct {
	Level int
	Steps []RoutePoint
	Break string // as in Paragraph, of the steps' texts
	Ends  string // why it ends early; "": it reaches the server
}

// RoutePoint is a point of a route: the client, a hop or the server.
type RoutePoint struct {
	Kind     string
	Text     Text
	Counters []Counter
}

type Counter struct {
	What          string
	Before, After uint64
}

func (Paragraph) block() {}
func (List) block()      {}
func (Command) block()   {}
func (Route) block()     {}
func (Table) block()     {}

// Units are the units that may follow a number in a sentence.
var Units = []string{"%", "ns", "µs", "ms", "s", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "kB/s",
	"MB/s",
	"GB/s", "s/GB", "/s", "1000/s", "B", "KiB", "MiB", "GiB", "k", "M", "G", "T", "MB", "GB", "×"}

// Together reports whether no line may end between two words: a number and its unit, interval or
// sign, and a fact and the separator after it.
func Together(before, word string) bool {
	word = strings.TrimRight(word, ".,;:)")
	last, _ := utf8.DecodeLastRuneInString(before)
	digit := unicode.IsDigit(last)
	switch {
	case before == "±" || strings.HasSuffix(before, " ±") || before == "×" ||
		strings.HasSuffix(before, " ×"):
		return true
	case word == strings.TrimSpace(Facts):
		return true
	case strings.HasPrefix(word, "±"), len(word) > 1 && word[0] == '(' &&
		unicode.IsDigit(rune(word[1])):
		return digit || last == '%'
	}
	return digit && slices.Contains(Units, word)
}

// Unbroken returns text with no-break spaces (U+00A0) where no line may end.
func Unbroken(text string) string {
	words := strings.Split(text, Words)
	var b strings.Builder
	for i, word := range words {
		switch {
		case i == 0:
		case Together(words[i-1], word):
			b.WriteString("\u00a0")
		default:
			b.WriteString(Words)
		}
		b.WriteString(word)
	}
	return b.String()
}
