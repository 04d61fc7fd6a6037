package replica

// SetHere makes m this machine's.
func SetHere(m *Machine) { m.here = true }

// Processes returns the process numbers of a session's copies.
func Processes(s *Session) (out []int) {
	for _, c := range s.copies {
		out = append(out, c.process.PID)
	}
	return out
}
