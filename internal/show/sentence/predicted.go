package sentence

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

const ofApplication = "What would each mode cost this application?"

var ofPredictions = []template{
	{code: predict.Over, text: "{added}", most: all, question: ofApplication},
	{code: predict.NoMode, text: "Nothing can be compared: the file has no mode but the baseline " +
		"{baseline}.", most: all, question: ofApplication},
}

// ofNotes are the sentences of a prediction's notes, whose blanks doubted fills.
var ofNotes = map[string]string{
	predict.OtherPlacement: "Predicted from the results on {pin}, because there are none on {pin2}.",
	analysis.Varying: "{what}'s {why} varies in the range {range}. The prediction uses its median; at " +
		"the range's worse end, the cost is higher.",
	predict.NoBulk: "The file has no bulk, so the cost of replies of {asked} bytes includes only " +
		"the measured {measured}.",
	predict.NoBulkCPU: "The file has no CPU time of bulk, so that of replies of {asked} bytes " +
		"includes only the measured {measured}.",
}

// fillNotes puts a prediction's notes into words, if it has any.
func fillNotes(r Told) {
	p, is := r.(*predict.Prediction)
	if !is || len(p.Noted) == 0 {
		return
	}
	p.Notes = nil
	for _, f := range p.Noted {
		if row := ofNotes[f.Code]; row != "" {
			p.Notes = append(p.Notes, fillDoubted(row, f))
		} else {
			p.Notes = append(p.Notes, printable.Capital(warning(f))+".")
		}
	}
}

var predictedHeads = map[string]string{predict.Page: "Time of a page",
	predict.CPU:       "CPU time of the queries, of a core",
	predict.StreamCPU: "CPU time of the tokens, of a core"}

// added returns what modes have over the baseline in one quantity, and where, if there are several
// places.
func added(w *writer, fs []analysis.Finding) string {
	f, rows := fs[0], w.study.(*predict.Prediction).Rows
	head := predictedHeads[f.What] + ", over " + w.r.Plan.Baseline + "'s"
	if slices.ContainsFunc(rows, func(r predict.Row) bool {
		return r.From != rows[0].From || r.On != rows[0].On
	}) {
		head += ", from " + f.From.Words() + " on " + f.On
	}
	var prices []analysis.Priced
	for _, i := range f.Rows {
		prices = append(prices, analysis.Priced{Name: rows[i].Label, Price: rows[i].Over[f.What]})
	}
	return analysis.SayPrices(head, prices)
}
