package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// More than any client in the tests keeps open, so that each request is forwarded at once.
const idleConnections = 1024

type proxy struct {
	upstream  *httputil.ReverseProxy
	synthetic map[string]*syntheticBucket
	delay     atomic.Int64 // nanoseconds
	held      atomic.Int64
	faults    *faults
	access    *access
	bandwidth bandwidth
	rate      rate

	mutex       sync.Mutex
	counts      map[string]int
	inFlight    int
	maxInFlight int
	requests    io.Writer // nil: not logged
}

func newProxy(server *url.URL) *proxy {
	return &proxy{
		// Keep the host that the client has signed.
		upstream: &httputil.ReverseProxy{
			Director:      func(r *http.Request) { r.URL.Scheme, r.URL.Host = server.Scheme, server.Host },
			FlushInterval: -1,
			BufferPool:    bodyBuffers{},
			Transport: &http.Transport{
				MaxIdleConns: idleConnections, MaxIdleConnsPerHost: idleConnections, DisableCompression: true,
			},
		},
		synthetic: map[string]*syntheticBucket{},
		faults:    newFaults(),
		access:    newAccess("", ""),
		counts:    map[string]int{},
	}
}

// The size of one write to a connection.
const chunkBytes = 128 << 10

var chunks = sync.Pool{New: func() any { return new([chunkBytes]byte) }}

// bodyBuffers are for the bodies of the server's replies.
type bodyBuffers struct{}

func (bodyBuffers) Get() []byte       { return chunks.Get().(*[chunkBytes]byte)[:] }
func (bodyBuffers) Put(buffer []byte) { chunks.Put((*[chunkBytes]byte)(buffer)) }

// server serves the proxy, and gives each connection its own pace.
func (p *proxy) server() *http.Server {
	return &http.Server{Handler: p.handler(), ConnContext: withPace}
}

func (p *proxy) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/__bed/statistics", p.writeStatistics)
	mux.HandleFunc("/__bed/reset", p.reset)
	mux.HandleFunc("/__bed/delay", p.setDelay)
	mux.HandleFunc("/__bed/bandwidth", p.bandwidth.set)
	mux.HandleFunc("/__bed/rate", p.rate.set)
	mux.HandleFunc("/__bed/refused", p.rate.writeRefused)
	mux.HandleFunc("/__bed/faults", p.setFaults)
	p.access.handle(mux)
	mux.HandleFunc("/__bed/struck", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, p.faults.count()) })
	mux.HandleFunc("/__bed/held", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, p.held.Load()) })
	// Not through the mux, which would redirect a key with // in it.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/__bed/") {
			mux.ServeHTTP(w, r)
		} else {
			p.pass(w, r)
		}
	})
}

// pass serves an S3 request. The delay is added to the server's time.
func (p *proxy) pass(w http.ResponseWriter, r *http.Request) {
	operation := operationOf(r)
	p.arrive(operation, r.URL.Path)
	defer p.leave()
	if !p.rate.admits() {
		_, _ = io.Copy(io.Discard, r.Body)
		writeError(w, r, http.StatusServiceUnavailable, "SlowDown", "above the rate of the bed")
		return
	}
	// On arrival: a token that expires while its request is served is valid.
	if rule, code := p.access.admit(operation, r); rule != nil {
		time.Sleep(time.Duration(p.delay.Load()))
		_, _ = io.Copy(io.Discard, r.Body)
		writeError(w, r, rule.Status, code, "refused by a rule of the bed")
		return
	}
	fault, replaced := p.faults.next(operation, r.URL)
	time.Sleep(time.Duration(p.delay.Load()))
	switch {
	case fault == nil:
		p.serve(operation, w, r)
	case fault.Do == "truncate":
		p.serve(operation, &truncated{w, fault.Bytes}, r)
	case fault.Do == "hold" && !fault.After:
		if p.hold(r, replaced) {
			p.serve(operation, w, r)
		}
	default:
		p.strike(fault, replaced, w, r)
	}
}

// serve makes and sends the reply, at the bandwidth limit of its body.
func (p *proxy) serve(operation string, w http.ResponseWriter, r *http.Request) {
	if operation == "GetObject" {
		reply := p.bandwidth.begin(w, r)
		defer reply.end()
		w = reply
	}
	p.serverOf(r).ServeHTTP(w, r)
}

// serverOf is the synthetic bucket that the request concerns, the Security Token Service, or the server behind the proxy.
func (p *proxy) serverOf(r *http.Request) http.Handler {
	if isAssumeRole(r) {
		return http.HandlerFunc(p.access.assumeRole)
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if bucket := p.synthetic[name]; bucket != nil {
		return bucket
	}
	return p.upstream
}

// strike lets the server do its work if the fault concerns the reply, and sends the fault's reply.
func (p *proxy) strike(f *fault, replaced <-chan struct{}, w http.ResponseWriter, r *http.Request) {
	if f.After {
		p.serverOf(r).ServeHTTP(lost{http.Header{}}, r)
	} else {
		// Read the body first: a reply before that would be another kind of fault.
		_, _ = io.Copy(io.Discard, r.Body)
	}
	if f.Do == "hold" {
		p.hold(r, replaced)
	}
	if f.Do != "answer" {
		panic(http.ErrAbortHandler)
	}
	for name, value := range f.Headers {
		w.Header().Set(name, value)
	}
	if f.Body == "" {
		writeError(w, r, f.Status, f.Code, "injected by the bed")
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(f.Status)
	_, _ = io.WriteString(w, f.Body)
}

// writeError answers with an S3 error; a reply to HEAD has no body.
func writeError(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_ = xml.NewEncoder(w).Encode(s3Error{Code: code, Message: message})
	}
}

type s3Error struct {
	XMLName xml.Name `xml:"Error"`
	Code    string
	Message string
}

// hold keeps a request until the faults are replaced. False: its client is gone, which the server notices once the body
// is read.
func (p *proxy) hold(r *http.Request, replaced <-chan struct{}) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.held.Add(1)
	defer p.held.Add(-1)
	select {
	case <-replaced:
		return true
	case <-r.Context().Done():
		return false
	}
}

// lost discards a reply.
type lost struct{ header http.Header }

func (l lost) Header() http.Header              { return l.header }
func (l lost) Write(answer []byte) (int, error) { return len(answer), nil }
func (l lost) WriteHeader(int)                  {}

func (p *proxy) arrive(operation, path string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.counts[operation]++
	p.inFlight++
	p.maxInFlight = max(p.maxInFlight, p.inFlight)
	if p.requests != nil {
		fmt.Fprintln(p.requests, operation, path)
	}
}

func (p *proxy) leave() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.inFlight--
}

func (p *proxy) writeStatistics(w http.ResponseWriter, _ *http.Request) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	operations, total := []string{}, 0
	for operation, count := range p.counts {
		operations = append(operations, operation)
		total += count
	}
	sort.Strings(operations)
	for _, operation := range operations {
		fmt.Fprintf(w, "%s=%d ", operation, p.counts[operation])
	}
	fmt.Fprintf(w, "total=%d max_inflight=%d\n", total, p.maxInFlight)
}

func (p *proxy) reset(http.ResponseWriter, *http.Request) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.counts, p.maxInFlight = map[string]int{}, p.inFlight
}

func (p *proxy) setDelay(w http.ResponseWriter, r *http.Request) {
	us, err := strconv.Atoi(r.URL.Query().Get("us"))
	if err != nil || us < 0 {
		http.Error(w, "us: microseconds", http.StatusBadRequest)
		return
	}
	p.delay.Store(int64(time.Duration(us) * time.Microsecond))
}

func (p *proxy) setFaults(w http.ResponseWriter, r *http.Request) {
	var list []*fault
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&list)
	for _, f := range list {
		if err == nil {
			err = f.check()
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.faults.replace(list)
}
