// Package show makes documents of reports, with a view for each study, and writes them for people
// and for programs, in each of Formats. Its only arithmetic is to scale base units for print.
package show

// Options say how a document is written.
type Options struct {
	Color bool // for terminals
	Width int  // columns of the text; 0 is DefaultWidth
}

// DefaultWidth is the width of text in columns unless Options sets another.
const DefaultWidth = 100
