package tokens

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// mysqlPacket is a packet of MySQL's protocol.
func mysqlPacket(number byte, body string) string {
	n := len(body)
	return string([]byte{byte(n), byte(n >> 8), byte(n >> 16), number}) + body
}

const (
	mysqlQuery = "\x03select 1"
	mysqlPlain = "\x0d\xa2\x02\x00" // capabilities
)

func conversing() *conversation {
	l := NewServer()
	l.Serve(theServer, nil)
	return &conversation{log: l, asked: 100, replied: 9000,
		client: netip.AddrPortFrom(relayAt2, 41000)}
}

// open opens the connection, so that it is not older than the log.
func (c *conversation) open() {
	c.log.Add(2, &capture.Packet{At: c.at, Src: c.client, Dst: serverAt, Flags: capture.SYN,
		Seq: c.asked - 1})
	c.log.Add(2, &capture.Packet{At: c.at, Out: true, Src: serverAt, Dst: c.client,
		Flags: capture.SYN | capture.ACK, Seq: c.replied - 1})
}

// mysqlRows returns the packets of a reply with n rows.
func mysqlRows(n int) (out string) {
	for i := range n {
		out += mysqlPacket(byte(1+i), "\x011")
	}
	return out + mysqlPacket(byte(1+n), "\xfe\x00\x00")
}

// TestServedMySQL has connections that are new and that are older than the log. A command that nobody
// answers comes long before the one that follows it.
func TestServedMySQL(t *testing.T) {
	greet := func(c *conversation) {
		c.open()
		c.send(true, mysqlPacket(0, "\x0a10.11.19-MariaDB\x00salt"))
		c.send(false, mysqlPacket(1, mysqlPlain+"user"))
		c.send(true, mysqlPacket(2, "\xfe method"))
		c.send(false, mysqlPacket(3, "secret"))
		c.send(true, mysqlPacket(4, "\x00\x00\x00"))
	}
	for name, begin := range map[string]func(*conversation){"new": greet,
		"older": func(*conversation) {}} {
		for _, captured := range []int{0, 300} {
			c := conversing()
			c.captured = captured
			begin(c)
			c.send(false, mysqlPacket(0, mysqlQuery))
			c.send(true, mysqlRows(3))
			c.send(false, mysqlPacket(0, "\x19\x01\x00\x00\x00")) // closes a statement
			c.at += 1_000_000 * us
			c.send(false, mysqlPacket(0, mysqlQuery))
			c.send(true, mysqlRows(254)) // the end has number 255
			c.send(false, mysqlPacket(0, mysqlQuery))
			long := mysqlRows(600)
			c.send(true, long[:3000])
			c.send(true, long[3000:])
			c.send(false, mysqlPacket(0, "\x03load data local infile 'a' into table a"))
			c.send(true, mysqlPacket(1, "\xfba"))
			for i := range 4 {
				c.send(false, mysqlPacket(byte(2+i), strings.Repeat("a,b\n", 100)))
			}
			c.send(false, mysqlPacket(6, ""))
			c.send(true, mysqlPacket(7, "\x00\x00\x00"))
			c.send(false, mysqlPacket(0, mysqlQuery), mysqlPacket(0, mysqlQuery)) // pipelined
			c.send(true, mysqlRows(2), mysqlRows(2))
			c.send(false, mysqlPacket(0, "\x01"))
			got := c.served()
			pipelined := 1
			if captured > 0 { // what follows a file is found again with the next packet's first command
				pipelined = got.Pipelined
			}
			if got.Requests != 6 || got.Unread+got.Unmatched+got.Unanswered > 0 ||
				got.Pipelined != pipelined {
				t.Errorf("%s, %d captured: %+v", name, captured, got)
			}
			var took []float64
			for _, x := range got.Slowest {
				took = append(took, math.Round(x.Whole*1e6))
			}
			// The file's request ends with the acknowledgement.
			if want := []float64{70, 20, 10, 10, 10, 10}; !slices.Equal(took, want) {
				t.Errorf("%s, %d captured: the requests took %v µs, want %v", name, captured, took, want)
			}
		}
	}
}

// TestServedMySQLSealed has packets that cannot be read behind the login.
func TestServedMySQLSealed(t *testing.T) {
	for name, capabilities := range map[string]string{"TLS": "\x0d\xaa\x02\x00",
		"compressed": "\x2d\xa2\x02\x00"} {
		c := conversing()
		c.open()
		c.send(true, mysqlPacket(0, "\x0a10.11.19-MariaDB\x00salt"))
		c.send(false, mysqlPacket(1, capabilities+"user"))
		c.send(true, "sealed")
		c.send(false, "sealed")
		c.send(true, "sealed")
		if got := c.served(); got.Requests != 2 || got.Unread != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestServedTwoWay has protocols in which what a server sends need not answer what a client sent. Some
// begin with requests.
func TestServedTwoWay(t *testing.T) {
	const deliver = "\x01\x00\x01\x00\x00\x00\x05abcde\xce"
	const redisGet, redisValue = "*2\r\n$3\r\nGET\r\n$1\r\na\r\n", "$7\r\nmessage\r\n"
	requests := map[string]int{"WebSocket": 1, "publish/subscribe": 2, "Redis' pushes": 1,
		"Redis' monitoring": 2, "a subscription lost": 1, "MySQL's replication": 1,
		"PostgreSQL's replication": 1, "Redis' replication": 1}
	upgrade := "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
	for name, begin := range map[string]func(*conversation){
		"AMQP":       func(c *conversation) { c.send(false, "AMQP\x00\x00\x09\x01") },
		"AMQP older": func(c *conversation) { c.send(false, deliver) },
		"AMQP 1.0 older": func(c *conversation) {
			c.send(false, "\x00\x00\x00\x0d\x02\x00\x00\x01\x00\x53\x15\xc0\x01")
		},
		"MQTT": func(c *conversation) { c.send(false, "\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00") },
		"NATS": func(c *conversation) {
			c.open()
			c.send(true, `INFO {"server_id":"a"}`+"\r\n")
			c.send(false, `CONNECT {"verbose":false}`+"\r\nPING\r\n")
		},
		"NATS older": func(c *conversation) { c.send(false, "PUB a 1\r\nb\r\n") },
		"SSH": func(c *conversation) {
			c.open()
			c.send(true, "SSH-2.0-OpenSSH_9.2\r\n")
		},
		"WebSocket": func(c *conversation) {
			c.send(false, "GET / HTTP/1.1\r\n\r\n")
			c.send(true, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			c.send(false, "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			c.send(true, upgrade)
		},
		"publish/subscribe": func(c *conversation) {
			c.send(false, redisGet)
			c.send(true, redisValue)
			c.send(false, "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n")
			c.send(true, "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n")
			c.send(true, "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n")
		},
		"Redis' pushes": func(c *conversation) {
			c.send(false, redisGet)
			c.send(true, redisValue)
			c.send(false, "*2\r\n$10\r\npsubscribe\r\n$1\r\na\r\n")
			c.send(true, ">3\r\n$10\r\npsubscribe\r\n$1\r\na\r\n:1\r\n")
		},
		"Redis' monitoring": func(c *conversation) {
			c.send(false, redisGet)
			c.send(true, redisValue)
			c.send(false, "*1\r\n$7\r\nMONITOR\r\n")
			c.send(true, "+OK\r\n", "+1.5 [0 127.0.0.1:60866] \"keys\" \"*\"\r\n")
		},
		"Redis' replication": func(c *conversation) {
			c.send(false, redisGet)
			c.send(true, redisValue)
			c.send(false, "*3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n")
			c.send(true, "+FULLRESYNC a 0\r\n", "$4\r\ndata", redisGet)
		},
		"Redis' replication, older": func(c *conversation) {
			c.send(false, "*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$1\r\n0\r\n")
			c.send(true, redisGet)
		},
		"a subscription lost": func(c *conversation) {
			c.send(false, redisGet)
			c.send(true, redisValue)
			c.lose("*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n")
			c.send(true, "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n")
		},
		"PostgreSQL's replication": func(c *conversation) {
			c.send(false, kinds("Q"))
			c.send(true, kinds("TDCZ"))
			c.send(false, message('Q', "START_REPLICATION 0/0\x00"))
			c.send(true, kinds("Wd"))
		},
		"PostgreSQL's replication, older": func(c *conversation) {
			c.send(false, kinds("d"))
			c.send(true, kinds("d"))
		},
		"MySQL's replication": func(c *conversation) {
			c.send(false, mysqlPacket(0, mysqlQuery))
			c.send(true, mysqlRows(3))
			c.send(false, mysqlPacket(0, "\x12\x04\x00\x00\x00"))
			c.send(true, mysqlPacket(1, "event"))
		},
	} {
		c := conversing()
		begin(c)
		for range 3 { // the client acknowledges, and later another message comes
			c.send(true, deliver)
			c.send(false, deliver)
			c.at += 1_000_000 * us
		}
		got := c.served()
		if got.TwoWay != 1 || got.Requests != requests[name] ||
			got.Unread+got.Unanswered+got.Unmatched > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// lose sends a request that the capture loses.
func (c *conversation) lose(text string) {
	c.at += 10 * us
	c.asked += uint32(len(text))
}

// TestServedLostRequests has a capture that lost a request. No reply can be told to be one to a later
// request.
func TestServedLostRequests(t *testing.T) {
	for name, tt := range map[string]struct{ ask, answer string }{
		"Redis": {"*2\r\n$3\r\nGET\r\n$1\r\na\r\n", "$1\r\nb\r\n"},
		"Redis' arrays": {"*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n",
			"*2\r\n$5\r\nmessa\r\n$7\r\nmessage\r\n"},
		"HTTP": {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"},
		"PostgreSQL": {message('Q', "select 1\x00"),
			message('D', "1") + message('C', "SELECT 1") + message('Z', "I")},
		"MySQL": {mysqlPacket(0, mysqlQuery), mysqlRows(3)},
	} {
		c := conversing()
		c.send(false, tt.ask)
		c.send(true, tt.answer)
		c.send(false, tt.ask)
		c.lose(tt.ask)
		c.send(true, tt.answer, tt.answer[:7])
		c.send(true, tt.answer[7:])
		var all Requests
		all.Take(c.log, theServer, 0)
		for range 2 {
			c.send(false, tt.ask)
			c.send(true, tt.answer)
		}
		all.Take(c.log, theServer, 0)
		all.Take(c.log, theServer, math.MaxInt64)
		got := &sample.Served{}
		all.Note(got, time.Unix(0, 0))
		if got.Requests != 2 || got.Unmatched != 3 || got.TwoWay+got.Unread+got.Unanswered > 0 ||
			math.Abs(got.Whole.Max-20e-6) > 1e-9 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestServedContinues has a client that sends a body once the server wants it, and a request for
// another protocol that the server does not speak.
func TestServedContinues(t *testing.T) {
	c := conversing()
	c.send(false, "POST / HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
	c.send(true, "HTTP/1.1 100 Continue\r\n\r\n")
	c.send(false, "body")
	c.at += 100 * us
	c.send(true, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	c.send(false, "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
	c.send(true, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	got := c.served()
	if got.Requests != 2 || got.Unmatched+got.Unread > 0 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []float64{20e-6, 110e-6, 0} { // request, server, reply
		if x := got.Slowest[0]; math.Abs(x.Parts[i]-want) > 1e-9 {
			t.Errorf("%s: %+v, want %v", got.Parts[i].Part, x, want)
		}
	}
}

// TestServedMySQLFiles has files of LOAD DATA LOCAL whose packets' numbers begin again. The server asks
// for them first or, behind other results, last.
func TestServedMySQLFiles(t *testing.T) {
	const load, ok = "\x03load data local infile 'a' into table a", "\x00\x00\x00"
	file := func(first, n int) (out []string) { // with its end
		for i := range n {
			out = append(out, mysqlPacket(byte(first+i), "\x03a,b\n"))
		}
		return append(out, mysqlPacket(byte(first+n), ""), mysqlPacket(byte(first+n+1), ok))
	}
	for name, tt := range map[string]struct {
		before   string // of the reply
		packets  []string
		captured int
	}{
		"short":                {packets: file(2, 3)},
		"long":                 {packets: file(2, 600)},
		"long, cut":            {packets: file(2, 600), captured: 300},
		"ends behind 255, cut": {packets: file(2, 255), captured: 300},
		"then number 0":        {packets: file(2, 253)},
		"then number 1":        {packets: file(2, 254)},
		"empty":                {packets: file(2, 0)},
		"behind results":       {before: mysqlRows(5), packets: file(8, 300)},
		"behind 254 packets":   {before: mysqlRows(253), packets: file(0, 300)},
		"cut, behind results":  {before: mysqlRows(5), packets: file(8, 300), captured: 300},
	} {
		c := conversing()
		c.captured = tt.captured
		c.send(false, mysqlPacket(0, load))
		n := len(tt.packets) - 1
		first := tt.packets[0][3]
		c.send(true, tt.before, mysqlPacket(first-1, "\xfba"))
		for part := range slices.Chunk(tt.packets[:n-1], 127) {
			c.send(false, part...)
		}
		c.send(false, tt.packets[n-1])
		c.send(true, tt.packets[n])
		for range 4 {
			c.at += 1_000_000 * us
			c.send(false, mysqlPacket(0, mysqlQuery))
			c.send(true, mysqlRows(3))
		}
		got := c.served()
		if got.Requests != 5 || got.Unread+got.Unmatched+got.Unanswered+got.Pipelined > 0 {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for _, x := range got.Slowest[1:] {
			if math.Abs(x.Whole-10e-6) > 1e-9 {
				t.Errorf("%s: a query took %g s", name, x.Whole)
			}
		}
	}
}

// TestServedMySQLEnds has a server that ends an idle connection and says why, and a client that begins
// another protocol.
func TestServedMySQLEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		end    func(*conversation)
		unread int
	}{
		"idle": {func(c *conversation) { c.send(true, mysqlPacket(0, "\xff\xbf\x0f#HY000idle")) }, 0},
		"clone": {func(c *conversation) {
			c.send(false, mysqlPacket(0, "\x20"))
			c.send(true, mysqlPacket(1, "\x00\x00\x00"))
			c.send(false, "other")
			c.send(true, "other")
		}, 4},
	} {
		c := conversing()
		for range 2 {
			c.send(false, mysqlPacket(0, mysqlQuery))
			c.send(true, mysqlRows(3))
			c.at += 1_000_000 * us
		}
		tt.end(c)
		got := c.served()
		if got.Requests != max(2, tt.unread) || got.Unread != tt.unread ||
			got.Unmatched+got.Unanswered > 0 || math.Abs(got.Whole.Max-10e-6) > 1e-9 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
