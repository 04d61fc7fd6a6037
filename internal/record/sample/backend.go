package sample

// Lab is the backend whose machines are toll's own. Others build on real machines, and
// their cells are held against the lab's.
const Lab = "lab"
