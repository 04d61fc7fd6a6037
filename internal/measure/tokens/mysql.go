package tokens

import "encoding/binary"

// mysql is the protocol of MySQL and MariaDB, without TLS and compression. A request is a command,
// whose packet has number 0. Its reply begins with number 1, and goes on until the next one.
type mysql struct {
	counted
	asks     bool
	logsIn   bool // the client's first packet is next
	lost     bool // the next byte need not begin a packet
	head     []byte
	lead     []byte // of a packet's data
	size     int64  // of a packet's data
	number   byte
	last     byte // the packet before's number
	goesOn   bool // the packet continues the one before, which was full
	sends    bool // a client's packet is no command, but of a file or a login that the server asked for
	start    int64
	messages int // requests that are answered, or replies, so far
	other    *mysql
}

const (
	mysqlHead = 4
	mysqlFull = 1<<24 - 1
	mysqlLead = 4
	mysqlLast = 255 // number, behind which they begin again
	// mysqlHello is the version of the protocol with which a server greets.
	mysqlHello = 10
	// mysqlSealed are a client's capabilities after which packets look otherwise: two kinds of
	// compression, and TLS.
	mysqlSealed = 1<<5 | 1<<26 | 1<<11
)

// The commands that matter.
const (
	mysqlQuit     = 0x01
	mysqlBinlog   = 0x12
	mysqlLongData = 0x18
	mysqlClose    = 0x19
	mysqlBinlogOf = 0x1e
	mysqlCommands = 0x20
	mysqlBulk     = 0xfa
)

// newMySQL returns framers of requests and replies. logsIn means that the connection begins.
func newMySQL(logsIn bool) (asks, answers *mysql) {
	asks, answers = &mysql{asks: true, logsIn: logsIn}, &mysql{}
	for _, m := range []*mysql{asks, answers} {
		m.end = m.ended
	}
	asks.other, answers.other = answers, asks
	return asks, answers
}

// greetsMySQL reports whether a server begins so before it is asked.
func greetsMySQL(b []byte) bool {
	return len(b) > mysqlHead && b[mysqlHead] == mysqlHello && b[3] == 0 &&
		mysqlSize(b) == len(b)-mysqlHead
}

// areMySQL reports whether bytes are commands. The last one may go on if cut is true.
func areMySQL(b []byte, cut bool) bool {
	for n := 0; ; n++ {
		if len(b) <= mysqlHead {
			return n > 0 && len(b) == 0
		}
		size, command := mysqlSize(b), b[mysqlHead]
		if size == 0 || b[3] != 0 || command == 0 || command >= mysqlCommands && command != mysqlBulk {
			return false
		}
		if size > len(b)-mysqlHead {
			return cut
		}
		b = b[mysqlHead+size:]
	}
}

// mysqlSize returns the size of a packet's data.
func mysqlSize(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

func (m *mysql) feed(b []byte) {
	if m.lost = m.lost && !m.resumes(b); m.lost {
		m.lose(int64(len(b)))
		return
	}
	for len(b) > 0 && !m.failed {
		if n := min(mysqlLead-len(m.lead), int(m.left), len(b)); n > 0 {
			m.lead = append(m.lead, b[:n]...)
		}
		if m.left > 0 {
			b = m.take(b)
			continue
		}
		n := min(mysqlHead-len(m.head), len(b))
		m.head, m.at, b = append(m.head, b[:n]...), m.at+int64(n), b[n:]
		if len(m.head) == mysqlHead {
			m.header()
		}
	}
}

// resumes reports whether bytes begin a packet, after others that were not captured: a client's with a
// command, unless it was sending a file, and a server's the reply to one that came meanwhile.
func (m *mysql) resumes(b []byte) bool {
	if m.asks {
		return !m.sends && areMySQL(b, true)
	}
	return m.messages < m.other.messages
}

func (m *mysql) skip(n int64) {
	if !m.lost && n <= m.left && len(m.lead) > 0 {
		m.data(n)
		return
	}
	m.lost, m.left, m.size, m.head = true, 0, 0, m.head[:0]
	m.lose(n)
}

// lose passes over bytes that are not read. Those of a server are the last reply's.
func (m *mysql) lose(n int64) {
	m.at += n
	if m.asks {
		return
	}
	m.other.sends = false
	if k := len(m.frames); k > 0 {
		m.frames[k-1].end = m.at
	}
}

func (m *mysql) header() {
	if m.goesOn = m.size == mysqlFull; m.asks && !m.goesOn {
		m.sends = m.head[3] != 0 || m.wraps()
	}
	m.size = int64(mysqlSize(m.head))
	m.last, m.number = m.number, m.head[3]
	if !m.goesOn {
		m.lead, m.start = m.lead[:0], m.at-mysqlHead
	}
	m.head = m.head[:0]
	if m.left = m.size; m.left == 0 {
		m.ended()
	}
}

// wraps reports whether a client's packet with number 0 is of a file. Behind number 255, of the file's
// packet before or of the server's that asked for it, numbers begin again.
func (m *mysql) wraps() bool {
	const file = 0xfb
	if m.sends {
		return m.number == mysqlLast && m.size > 0
	}
	s := m.other
	return s.number == mysqlLast && len(s.lead) > 0 && s.lead[0] == file
}

// ended handles the end of a packet.
func (m *mysql) ended() {
	switch {
	case !m.asks:
		m.replied()
	case m.logsIn:
		m.logsIn = false
		m.failed = len(m.lead) < mysqlLead || binary.LittleEndian.Uint32(m.lead)&mysqlSealed != 0
	case m.size == mysqlFull, m.sends, len(m.lead) == 0: // not all, or no command
	default:
		m.asked(m.lead[0])
	}
}

// asked handles the end of a command.
func (m *mysql) asked(command byte) {
	switch command {
	case mysqlQuit, mysqlLongData, mysqlClose: // nobody answers
	case mysqlBinlog, mysqlBinlogOf:
		m.failed, m.twoWay = true, true
	default:
		m.failed = command >= mysqlCommands && command != mysqlBulk // and another protocol follows
		m.messages++
		m.frames = append(m.frames, frame{start: m.start, end: m.at})
	}
}

// replied handles the end of a packet of a reply. Behind number 255, numbers begin again, and behind
// what a client sends because it was asked for it, they go on.
func (m *mysql) replied() {
	n := len(m.frames)
	again := m.goesOn || m.other.sends ||
		m.last == 0 && m.messages > 0 && m.messages >= m.other.messages
	m.other.sends = false
	switch {
	case m.number == 1 && !again:
		if m.messages++; n > 0 {
			m.frames[n-1].open = false
		}
		m.frames = append(m.frames, frame{start: m.start, end: m.at, open: true})
	case m.number == 0 && m.last != mysqlLast && !m.goesOn: // unasked, before the server hangs up
	case n > 0:
		m.frames[n-1].end = m.at
	}
}
