package main

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A reply that is late, because its goroutine was woken late or its client read late, catches up for this long.
const catchUp = 20 * time.Millisecond

// bandwidth limits the bodies of GetObject, in total and for each connection. A body is written in pieces, each as soon
// as both limits allow it; so a limit costs a sleep for every 128 KB.
type bandwidth struct {
	totalRate, connectionRate atomic.Int64 // bytes/s; 0: no limit
	total                     pace
}

// A pace is a token bucket, in the form of the time at which the bytes so far have been paid for.
type pace struct {
	mutex   sync.Mutex
	paid    time.Time
	replies int
}

// begin starts a reply. Idle time is not saved up.
func (p *pace) begin() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.replies++; p.replies == 1 {
		p.paid = later(p.paid, time.Now())
	}
}

func (p *pace) end() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.replies--
}

// take is the time at which `bytes` more bytes may be written.
func (p *pace) take(bytes int, rate int64) time.Time {
	if rate == 0 {
		return time.Time{}
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.paid = later(p.paid, time.Now().Add(-catchUp)).Add(time.Duration(float64(bytes) / float64(rate) * float64(time.Second)))
	return p.paid
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

type paceOfConnection struct{}

// withPace is for http.Server.ConnContext.
func withPace(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, paceOfConnection{}, &pace{})
}

// pacedReply is a reply whose body is limited.
type pacedReply struct {
	http.ResponseWriter
	bandwidth  *bandwidth
	connection *pace
}

func (b *bandwidth) begin(w http.ResponseWriter, r *http.Request) *pacedReply {
	reply := &pacedReply{w, b, r.Context().Value(paceOfConnection{}).(*pace)}
	b.total.begin()
	reply.connection.begin()
	return reply
}

func (r *pacedReply) end() {
	r.bandwidth.total.end()
	r.connection.end()
}

func (r *pacedReply) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *pacedReply) Write(body []byte) (int, error) {
	written := 0
	for {
		total, connection := r.bandwidth.totalRate.Load(), r.bandwidth.connectionRate.Load()
		piece := body[written:min(len(body), written+pieceBytes(total, connection))]
		time.Sleep(time.Until(later(r.bandwidth.total.take(len(piece), total), r.connection.take(len(piece), connection))))
		n, err := r.ResponseWriter.Write(piece)
		if written += n; err != nil || written == len(body) {
			return written, err
		}
	}
}

// pieceBytes is the size of one write: what the slower limit allows in some milliseconds.
func pieceBytes(rates ...int64) int {
	size := int64(chunkBytes)
	for _, rate := range rates {
		if rate > 0 {
			size = min(size, max(1, rate/128))
		}
	}
	return int(size)
}

// set is /__bed/bandwidth.
func (b *bandwidth) set(w http.ResponseWriter, r *http.Request) {
	rates := [2]int64{}
	for i, name := range []string{"total", "connection"} {
		if text := r.URL.Query().Get(name); text != "" {
			rate, err := strconv.ParseInt(text, 10, 64)
			if err != nil || rate < 0 {
				http.Error(w, name+": bytes per second", http.StatusBadRequest)
				return
			}
			rates[i] = rate
		}
	}
	b.totalRate.Store(rates[0])
	b.connectionRate.Store(rates[1])
}
