package tokens

import (
	"cmp"
	"slices"
)

// ranked returns those of n indexes that are possible, with the least cost first.
func ranked(n int, cost func(i int) (cost int64, ok bool)) (out []int) {
	costs := make([]int64, n)
	for i := range n {
		var ok bool
		if costs[i], ok = cost(i); ok {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(costs[a], costs[b]) })
	return out
}

// assign gives as many rows as possible one of their choices among n columns, each column to one
// row, by augmenting paths. Rows with few choices come first. A row gets its first free choice; if
// there is none, other rows move to theirs. It returns the column of each row, or -1.
func assign(choices [][]int, n int) (columns []int) {
	owner := slices.Repeat([]int{-1}, n) // the row of each column
	tried := make([]bool, n)
	free := func(c int) bool { return owner[c] < 0 }
	var give func(row int) bool
	give = func(row int) bool {
		if i := slices.IndexFunc(choices[row], free); i >= 0 {
			owner[choices[row][i]] = row
			return true
		}
		for _, c := range choices[row] {
			if tried[c] {
				continue
			}
			if tried[c] = true; give(owner[c]) {
				owner[c] = row
				return true
			}
		}
		return false
	}
	rows := make([]int, len(choices))
	for i := range rows {
		rows[i] = i
	}
	slices.SortStableFunc(rows, func(a, b int) int {
		return cmp.Compare(len(choices[a]), len(choices[b]))
	})
	columns = slices.Repeat([]int{-1}, len(choices))
	for _, row := range rows {
		clear(tried)
		give(row)
	}
	for c, row := range owner {
		if row >= 0 {
			columns[row] = c
		}
	}
	return columns
}
