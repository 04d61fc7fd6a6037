package sentence

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
)

const ofApplication = "What would each mode cost this application?"

var ofPredictions = []template{
	{code: predict.Over, text: "{added}", most: all, question: ofApplication},
	{code: predict.NoMode, text: "Nothing can be compared: the file has no mode but the baseline " +
		"{baseline}.", most: all, question: ofApplication},
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
