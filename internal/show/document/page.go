package document

// Page is what a document shows besides its sections where there is space for drawings.
type Page struct {
	Title   string
	Command string // that made what the document is about; "": none
	Lede    string // when and where that was; "": not known
	Groups  []ChartGroup
	Paths   []PathGroup
	Facts   []FactGroup
}

// ChartGroup is charts under one title.
type ChartGroup struct {
	Title  string
	Charts []Chart
}

// Chart is a drawing and a table of its figures, which is its text alternative.
type Chart struct {
	Kind  string `json:"kind"` // a file of show/page/web/src; "": only the table
	Title string `json:"title"`
	Spec  any    `json:"spec"` // what is drawn, as that file reads it
	How   string `json:"-"`    // how to read it
	Table Table  `json:"-"`
}

// PathGroup holds the paths of one placement, load and backend.
type PathGroup struct {
	Title string
	Paths []Path
}

// Path leads from a client to a server. It has what each hop counted.
type Path struct {
	Name, Dial   string
	Hops, Guards []Hop
}

// Hop is a point of a path, or a guard beside it.
type Hop struct {
	Kind, Name, Where string
	Counts            []Count
}

// Count is a counter's value, rounded for reading and exact.
type Count struct{ What, Text, Exact string }

// FactGroup is facts under one title.
type FactGroup struct {
	Title string
	Facts []Fact
}

// Fact is a name with its value.
type Fact struct{ Name, Value string }

// Add appends a fact unless its value is empty.
func (f *FactGroup) Add(name, value string) {
	if value != "" {
		f.Facts = append(f.Facts, Fact{name, value})
	}
}
