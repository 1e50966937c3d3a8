package scenarios

import (
	"fmt"
	"strings"
)

// Nearest gives the word among some that was probably meant, or "" when none
// is near: at most a third of the letters, and always two, may be wrong. Case
// does not count. Of two equally near words the first wins.
func Nearest(word string, among []string) string {
	best, least := "", max(2, len([]rune(word))/3)+1
	for _, candidate := range among {
		d := distance(strings.ToLower(word), strings.ToLower(candidate))
		// A word that shares no letter with a short one is not near it, even
		// when two edits lead there.
		if d < least && d < len([]rune(candidate)) {
			best, least = candidate, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour (Damerau and Levenshtein, in the variant that touches no letter
// twice): swapped letters are the commonest slip of all.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			replace := rows[i-1][j-1]
			if x[i-1] != y[j-1] {
				replace++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replace)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}

// meant ends a message about a wrong word: with the nearest right one, or with
// all of them when none is near.
func meant(word string, among []string) string {
	if len([]rune(word)) <= 64 { // the search is quadratic, and no word is that long
		if n := Nearest(word, among); n != "" {
			return fmt.Sprintf("; did you mean %q?", n)
		}
	}
	return ": write " + list(among)
}

// list joins words as a sentence does: a, b or c.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
