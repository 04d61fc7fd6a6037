package document

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
