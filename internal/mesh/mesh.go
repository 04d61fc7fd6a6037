// Package mesh says in which order the pairs of a cluster's nodes are measured,
// and what is wrong with which node or link, from what was measured. It is
// pure: numbers in, numbers out.
package mesh
