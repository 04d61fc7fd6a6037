package document

// Page is what a document shows besides its sections in formats with drawings.
type Page struct {
	Title   string
	Command string // that made the document's subject; "": none
	Lede    string // when and where; "": not known
	Groups  []ChartGroup
	Paths   []PathGroup
	Facts   []FactGroup
}

type ChartGroup struct {
	Title  string
	Charts []Chart
}

// Chart is a drawing with the table of its figures, its text alternative.
type Chart struct {
	Kind  string `json:"kind"` // a file of show/page/web/src; "": only the table
	Title string `json:"title"`
	Spec  any    `json:"spec"` // as that file reads it
	How   string `json:"-"`
	// Aside means that the chart is for doubts about the others: paper does without it.
	Aside bool  `json:"-"`
	Table Table `json:"-"`
}

type PathGroup struct {
	Title string
	Paths []Path
}

type Path struct {
	Name, Dial   string
	Hops, Guards []Hop
}

// Hop is a point of a path, or a guard.
type Hop struct {
	Kind, Name, Where string
	Counts            []Count
}

// Count is a counter's value, rounded and exact.
type Count struct{ What, Text, Exact string }

type FactGroup struct {
	Title string
	Facts []Fact
}

type Fact struct{ Name, Value string }

// Add appends a fact unless its value is empty.
func (f *FactGroup) Add(name, value string) {
	if value != "" {
		f.Facts = append(f.Facts, Fact{name, value})
	}
}
