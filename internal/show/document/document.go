// Package document is the model of what a command has to say: sections of paragraphs, lists, tables
// and routes, and the same content as JSON, figures and charts. Views build a document; every format
// writes it. The model has the content and its meaning; a format decides how that looks. Numbers
// are in base units, texts as people read them.
package document

import (
	"iter"
	"strings"
)

// Kind is what a document is about.
type Kind string

// The kinds, as messages name them.
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
)

// Document is what a command has to say.
type Document struct {
	Kind     Kind
	Sections []Section
	JSON     any              // what formats encode as JSON, and nothing else
	Run      *Run             // nil: it is not about a run
	Figures  iter.Seq[Figure] // nil: there are none
	Data     *Table           // the figures of a document without Figures, with a name for each column
	Page     func() Page      // nil: only the sections
}

// Section holds blocks that belong together, with or without a title.
type Section struct {
	Title  Text
	Level  int  // 0: of the document; 1: of the section above
	Close  bool // no empty line separates it from what is above
	Blocks []Block
}

// Add appends blocks to the section.
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

// Span is text of one style.
type Span struct {
	Text  string
	Style Style
}

// Text is a line of spans.
type Text []Span

// Plainly returns text without a style.
func Plainly(s string) Text { return Text{{Text: s}} }

// Strongly returns text in bold.
func Strongly(s string) Text { return Text{{s, Strong}} }

// Then returns the text with another span at the end. It does not change t.
func (t Text) Then(s string, style Style) Text { return append(t[:len(t):len(t)], Span{s, style}) }

// String returns the text without styles.
func (t Text) String() string {
	var b strings.Builder
	for _, s := range t {
		b.WriteString(s.Text)
	}
	return b.String()
}

// Where a paragraph may be broken into lines.
const (
	Words = " "   // between words
	Facts = " · " // between facts
)

// Paragraph is one or several sentences, or a list of facts.
type Paragraph struct {
	Text  Text
	Level int    // of indentation
	Break string // Words or Facts; "": Words
	Style Style  // of the whole paragraph
}

// Topic says what a list is about.
type Topic string

// The topics of lists.
const (
	Answer   Topic = "answer"
	Findings Topic = "findings"
	Failed   Topic = "failed"
	Skipped  Topic = "skipped"
	Warnings Topic = "warnings"
	Notes    Topic = "notes"
)

// List is a list of points about one topic. Each point is a paragraph.
type List struct {
	Topic Topic
	Items []string
	Level int
}

// Command is a command line to copy.
type Command struct{ Line string }

// Route is the way from a client to a server.
type Route struct {
	Level int
	Steps []Step
	Break string // of the steps' texts, as in Paragraph
	Ends  string // why it ends after the last step; "": it reaches the server
}

// Step is a point of a route: the client, a hop or the server.
type Step struct {
	Kind     string
	Text     Text
	Counters []Counter
}

// Counter is what a hop counted.
type Counter struct {
	What          string
	Before, After uint64
}

func (Paragraph) block() {}
func (List) block()      {}
func (Command) block()   {}
func (Route) block()     {}
func (Table) block()     {}
