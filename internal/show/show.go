// Package show makes documents of reports, by a view for each study, and writes documents
// for people and for programs, in each of Formats. It does no arithmetic beyond scaling base
// units for print.
package show

// Options say how a document is written.
type Options struct {
	Color bool // for terminals
	Width int  // columns of the text; 0 is DefaultWidth
}

// DefaultWidth is the text's width in columns.
const DefaultWidth = 100
