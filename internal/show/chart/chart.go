package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
)

type intervals struct {
	Axis string      `json:"axis"`
	Line *float64    `json:"line,omitempty"`
	Band *[2]float64 `json:"band,omitempty"` // what counts as the same
	// Beside names the second values, which are drawn as diamonds; "": none.
	Beside string `json:"beside,omitempty"`
	// Change means that the axis shows by how many per cent the values exceed the line.
	Change bool `json:"change,omitempty"`
	// Limits are the ends of the axis. What lies beyond is cut and marked. Nil: nothing is cut.
	Limits *[2]float64   `json:"limits,omitempty"`
	Rows   []intervalRow `json:"rows"`
}

type intervalRow struct {
	Label   string   `json:"label"`
	Docker  string   `json:"docker,omitempty"` // in Docker's words
	Figure  string   `json:"figure,omitempty"` // with its unit
	Value   float64  `json:"value"`
	None    bool     `json:"none,omitempty"` // no value: only its text is drawn
	Low     *float64 `json:"low,omitempty"`
	High    *float64 `json:"high,omitempty"`
	Varies  bool     `json:"varies,omitempty"` // Low and High are a range without a value
	Verdict string   `json:"verdict"`
	Text    string   `json:"text"`
	More    string   `json:"more,omitempty"` // shown if space permits
	// Beside is the second value; without a verdict it is the only one.
	Beside *float64 `json:"beside,omitempty"`
}

type lines struct {
	Axis   string `json:"axis"`
	Series []line `json:"series"`
}

type line struct {
	Label  string       `json:"label"`
	Points [][2]float64 `json:"points"`
}

type strips struct {
	Axis     string `json:"axis"`
	Baseline string `json:"baseline"`
	// Top is the end of the values' axis, where higher rounds are marked; nil: the axis reaches the
	// highest.
	Top  *float64 `json:"top,omitempty"`
	Rows []line   `json:"rows"`
}

type stacks struct {
	Axis   string     `json:"axis"`
	Parts  []string   `json:"parts"`
	Colors string     `json:"colors"` // stem of CSS variables
	Whole  float64    `json:"whole,omitempty"`
	Dense  bool       `json:"dense,omitempty"`
	Rows   []stackRow `json:"rows"`
}

type stackRow struct {
	Label  string    `json:"label"`
	Values []float64 `json:"values"`
	Text   string    `json:"text"`
}

type scale struct {
	by   float64
	unit string
}

func scaleFor(unit string, largest float64) scale {
	const thousand = 1e3
	switch {
	case unit == "s", unit == "bit/s":
		name, by := heads.Unit(unit, largest)
		return scale{by, name}
	case unit == "1/s" && largest >= thousand:
		return scale{heads.Kilo, "1000/s"}
	case unit == "s/B":
		return scale{heads.PerGB, "s/GB"}
	}
	return scale{1, unit}
}

func (s scale) text(x float64) string {
	return strings.TrimSpace(threeDigits(x*s.by) + " " + s.unit)
}

func threeDigits(x float64) string {
	const most = 3
	digits := most
	for a := math.Abs(x); digits > 0 && a >= 0.9995; a /= 10 {
		digits--
	}
	return fmt.Sprintf("%.*f", digits, x)
}

// fourDigits rounds to four significant digits, which is as exact as a chart can be. NaN and
// infinities become 0.
func fourDigits(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	by := math.Pow(10, 4-math.Ceil(math.Log10(math.Abs(x))))
	return math.Round(x*by) / by
}

// medianIn returns the head of a column of medians. unit may be "".
func medianIn(unit string) string { return strings.TrimSuffix("median, "+unit, ", ") }

// tableOf returns a table whose first column names the rows. The others have figures.
func tableOf(rows [][]string, heads ...string) document.Table {
	var t document.Table
	for i, h := range heads {
		t.Columns = append(t.Columns, document.Column{Head: [2]string{"", h}, Right: i > 0})
	}
	for _, r := range rows {
		t.Rows = append(t.Rows, document.Row{Cells: document.Texts(r...)})
	}
	return t
}

func ends(low, high float64) (*float64, *float64) { return &low, &high }

func largest(xs ...float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	return slices.Max(xs)
}
